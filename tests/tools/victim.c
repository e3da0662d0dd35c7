/* victim.c - a program that records, says so, and goes on until it is killed. */
#include <pk/pk.h>

#include <stdio.h>
#include <unistd.h>

int main(void)
{
    static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_WAIT, "inner");
    if (pk_start(NULL) != PK_OK)
        return 1;
    alarm(60); /* should nobody kill it */
    for (int i = 0; i < 500; i++) {
        PK_SCOPE_NAMED("done")
        {
            pk_region_mark(pk_region_variant(&outer, "i", i % 5));
        }
        pk_step(1);
    }
    pk_flush();
    pk_region_begin(&outer);
    pk_region_begin(&inner);
    puts("under way");
    fflush(stdout);
    for (;;)
        pause();
}
