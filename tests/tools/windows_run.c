/* windows_run.c STEPS [kill|full|slow] - a loop of so many steps with regions inside each other, a
 * counter and a second thread that records more than its ring holds; what is written the
 * environment says. With "kill" the process ends as by somebody else's hand; with "full" no file
 * may grow any more once half of the steps are done; with "slow" a step takes a millisecond more.
 */
#include <pk/pk.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region reduce = PK_REGION_OF(PK_COMM, "reduce \"all\"");
static pk_region load = PK_REGION_OF(PK_DATA, "load");
static pk_region flood = PK_REGION("flood");
static pk_counter level = PK_COUNTER("level", "m");

/* The same in each run. */
static unsigned next_random(void)
{
    static unsigned state = 12345;
    state = state * 1103515245u + 12345u;
    return state >> 16;
}

static void work(unsigned n)
{
    for (volatile unsigned i = 0; i < n;)
        i = i + 1;
}

/* Faster than anybody could take it. */
static void *overflow(void *unused)
{
    for (int i = 0; i < 60000; i++) {
        pk_region_begin(&flood);
        pk_region_end(&flood);
    }
    return unused;
}

static void step(unsigned i)
{
    pk_region_begin(&load);
    work(next_random() % 500);
    pk_region_end(&load);
    pk_region_begin(&forward);
    work(next_random() % 3000);
    pk_region_begin(&reduce);
    pk_region_add(&reduce, next_random(), 7);
    work(next_random() % 300);
    pk_region_end(&reduce);
    pk_region_end(&forward);
    if (i % 1000 == 999) {
        pk_region_begin(pk_region_variant(&load, "i", i / 1000));
        work(20000);
        pk_region_end(pk_region_variant(&load, "i", i / 1000));
    }
    if (i % 100 == 50) {
        pk_step_kind("evaluation");
        work(1000);
    }
    pk_counter_set(&level, next_random() / 7.0 - 2000);
    pk_step(32);
    if (i % 200 == 100)
        pk_step_begin();
}

static void fill_disk(void)
{
    struct rlimit limit = {1000, 1000};
    pk_flush();
    setrlimit(RLIMIT_FSIZE, &limit);
}

int main(int argc, char **argv)
{
    pthread_t other;
    unsigned steps = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    if (pk_start(NULL) != PK_OK || pthread_create(&other, NULL, overflow, NULL)) {
        fprintf(stderr, "%s\n", pk_error_message());
        return 1;
    }
    for (unsigned i = 0; i < steps; i++) {
        if (argc > 2 && strcmp(argv[2], "full") == 0 && i == steps / 2)
            fill_disk();
        if (argc > 2 && strcmp(argv[2], "slow") == 0)
            usleep(1000);
        step(i);
    }
    pthread_join(other, NULL);
    if (argc > 2 && strcmp(argv[2], "kill") == 0) {
        pk_flush();
        kill(getpid(), SIGKILL);
    }
    if (pk_stop() == PK_OK)
        return 0;
    fprintf(stderr, "%s\n", pk_error_message());
    return 3;
}
