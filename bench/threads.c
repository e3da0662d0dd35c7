/* Two threads at once, each on its own processor: do they get in each other's way? Both run the
 * same case at the same time. */
#include <pk/pk.h>

#include <pthread.h>
#include <string.h>

#include "harness.h"

enum { PAIRS = 9984, THREADS = 2, CASES = 2 };

static pk_region one = PK_REGION("one");
static pthread_barrier_t together;
static unsigned long rounds;

static void run_one(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        pk_region_end(&one);
    }
}

static void meet(void)
{
    pthread_barrier_wait(&together);
}

/* Nobody empties rings while the other thread is still measuring. */
static void meet_and_empty(void)
{
    meet();
    pk_flush();
}

static const bench_case cases[CASES] = {
    {.name = "floor", .run = bench_floor_run, .n = PAIRS, .before = meet, .after = meet_and_empty},
    {.name = "begin + end", .run = run_one, .n = PAIRS, .before = meet, .after = meet_and_empty},
};

typedef struct worker {
    pthread_t thread;
    unsigned index;
    bench_case cases[CASES];
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    bench_pin(w->index);
    bench_floor_prepare();
    memcpy(w->cases, cases, sizeof cases);
    bench_rounds(w->cases, CASES, rounds);
    return NULL;
}

int main(int argc, char **argv)
{
    static worker workers[THREADS];
    static const char *const titles[] = {"two threads at once: one", "the other"};
    rounds = bench_number(argc, argv, "--rounds", 101);
    if (pthread_barrier_init(&together, NULL, THREADS) != 0)
        bench_fail("pthread_barrier_init");
    if (pk_start(pk_options(.trace_path = bench_scratch("threads.json"))) != PK_OK)
        bench_fail(pk_error_message());
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].index = i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_fail("pthread_create");
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        bench_print(titles[i], workers[i].cases, CASES);
    return pk_stop() == PK_OK ? 0 : 1;
}
