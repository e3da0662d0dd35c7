/* A rank that makes steps of some milliseconds until it is told to end: capture_run MILLISECONDS.
 * "ready" on stdout once it has made the first ones; it ends when stdin does. */
#include <pk/pk.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");

static int is_over(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    return poll(&in, 1, 0) > 0;
}

int main(int argc, char **argv)
{
    useconds_t pause = (useconds_t)(argc > 1 ? atoi(argv[1]) : 5) * 1000;
    if (pk_start(NULL) != PK_OK) {
        fprintf(stderr, "%s\n", pk_error_message());
        return 1;
    }
    for (unsigned long n = 0; !is_over(); n++) {
        PK_SCOPE(work) {
            usleep(pause);
        }
        pk_step(1);
        if (n == 20) {
            puts("ready");
            fflush(stdout);
        }
    }
    return pk_stop() != PK_OK;
}
