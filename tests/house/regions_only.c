/* A program that makes regions and steps, and nothing else: linked.py looks at what is in it. */
#include <pk/pk.h>

int main(void)
{
    static pk_region region = PK_REGION("region");
    pk_start(NULL);
    pk_region_begin(&region);
    pk_region_end(&region);
    pk_step(1);
    return pk_stop();
}
