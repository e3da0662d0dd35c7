/* A user's program: it only has to build against the installed tree, record, and say what it got.
 */
#include <stdio.h>
#include <string.h>

#include <pk/pk.h>

static pk_region work = PK_REGION("work");

int main(void)
{
    char compiled[32];
    snprintf(compiled, sizeof compiled, "%d.%d.%d", PK_VERSION_MAJOR, PK_VERSION_MINOR,
             PK_VERSION_PATCH);
    if (strcmp(compiled, pk_version()) != 0) {
        fprintf(stderr, "headers of %s, library of %s\n", compiled, pk_version());
        return 1;
    }
    if (pk_start(pk_options(.trace_path = "consumer.json")) != PK_OK) {
        fprintf(stderr, "pk_start: %s\n", pk_error_message());
        return 1;
    }
    for (int i = 0; i < 100; i++) {
        PK_REGION_SCOPE(work);
        pk_step(1);
    }
    pk_counts counts = {.size = sizeof counts};
    if (pk_stop() != PK_OK || pk_get_counts(&counts) != PK_OK) {
        fprintf(stderr, "pk_stop: %s\n", pk_error_message());
        return 1;
    }
    printf("%llu of %llu regions recorded\n", (unsigned long long)counts.recorded,
           (unsigned long long)counts.begun);
    return counts.recorded == 100 ? 0 : 1;
}
