/* exact_run.c - a second of regions inside each other on two threads, steps and a counter; trace
 * and report as the environment asks. */
#include <pk/pk.h>

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define RUN_NS 1000000000u /* long enough for the first corrections of the clock */

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner");
static pk_region next = PK_REGION_OF(PK_IO, "next");

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void work(unsigned n)
{
    for (volatile unsigned i = 0; i < n;)
        i = i + 1;
}

static void record(unsigned i)
{
    pk_region_begin(&outer);
    work(10 + i % 1000);
    pk_region_begin(&inner);
    work(100 + i % 7 * 100);
    pk_region_next(&inner, &next);
    work(50);
    pk_region_end(&next);
    work(20);
    pk_region_end(&outer);
}

static void *record_for_a_while(void *steps)
{
    static pk_counter memory = PK_COUNTER("memory", "bytes");
    uint64_t until = now_ns() + RUN_NS;
    for (unsigned i = 0; now_ns() < until; i++) {
        for (unsigned k = 0; k < 20; k++)
            record(20 * i + k);
        if (steps) {
            pk_counter_set(&memory, i & 1 ? 8e10 + 1000 : 8e10 - 1000);
            if (i % 7 == 3)
                pk_step_kind(i % 2 ? "evaluation \"full\"" : "evaluation");
            pk_step(1);
        }
        nanosleep(&(struct timespec){0, 200000}, NULL);
        if (steps && i % 5 == 4)
            pk_step_begin();
    }
    return NULL;
}

int main(void)
{
    pthread_t other;
    int steps;
    if (pk_start(NULL) || pthread_create(&other, NULL, record_for_a_while, NULL))
        return 1;
    record_for_a_while(&steps);
    pthread_join(other, NULL);
    return pk_stop() != PK_OK;
}
