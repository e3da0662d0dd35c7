/* A server's hundred thousand threads, each there for a moment: their memory is used again, what
 * they did is kept.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "kit.h"
#include "trace.h"

#define SPAWNERS 4
#define MiB (1u << 20)

static pk_region request = PK_REGION_OF(PK_COMPUTE, "request"), part = PK_REGION("part");

typedef struct spawner {
    pthread_t thread;
    unsigned threads, regions, burst;
    uint64_t most_memory;
} spawner;

static void *serve(void *argument)
{
    const spawner *s = argument;
    for (unsigned i = 0; i < s->regions; i++) {
        pk_region_begin(&request);
        pk_region_begin(&part);
        pk_region_end(&part);
        if (i % 2)
            pk_region_end(&request); /* else the thread's end closes it, or the next one's end */
    }
    return NULL;
}

/* So many at once, then the next ones. Every now and then what they have left is drained. */
static void *spawn(void *argument)
{
    spawner *s = argument;
    pthread_t burst[64];
    pk_counts counts = {.size = sizeof counts};
    for (unsigned done = 0; done < s->threads; done += s->burst) {
        for (unsigned i = 0; i < s->burst; i++)
            must(pthread_create(&burst[i], NULL, serve, s) == 0);
        for (unsigned i = 0; i < s->burst; i++)
            must(pthread_join(burst[i], NULL) == 0);
        if (done % 128 == 0)
            must_equal(pk_flush(), PK_OK);
        must_equal(pk_get_counts(&counts), PK_OK);
        s->most_memory =
            counts.memory_bytes > s->most_memory ? counts.memory_bytes : s->most_memory;
    }
    return NULL;
}

static uint64_t run(spawner spawners[SPAWNERS], unsigned threads, unsigned regions, unsigned burst)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < SPAWNERS; i++) {
        spawners[i] = (spawner){
            .threads = threads / SPAWNERS / burst * burst, .regions = regions, .burst = burst};
        must(pthread_create(&spawners[i].thread, NULL, spawn, &spawners[i]) == 0);
    }
    for (unsigned i = 0; i < SPAWNERS; i++) {
        must(pthread_join(spawners[i].thread, NULL) == 0);
        most = spawners[i].most_memory > most ? spawners[i].most_memory : most;
    }
    return most;
}

static uint64_t calls_of(const pk_region *region)
{
    static pk_stats stats;
    assert_int_equal(pk_region_stats(region, &stats), PK_OK);
    return stats.count;
}

static void serve_many(unsigned threads, unsigned regions, unsigned burst, const char *path)
{
    spawner spawners[SPAWNERS];
    pk_counts c = {.size = sizeof c};
    assert_int_equal(pk_start(pk_options(.trace_path = path, .ring_records = 256,
                                         .report_threads = path != NULL, .backends = "none")),
                     PK_OK);
    uint64_t most = run(spawners, threads, regions, burst);
    uint64_t served = (uint64_t)spawners[0].threads * SPAWNERS;
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&c), PK_OK);
    printf("%u threads, at most %llu KiB\n", c.threads, (unsigned long long)most / 1024);
    assert_int_equal(c.threads, served);
    assert_int_equal(c.begun, served * regions * 2);
    assert_int_equal(c.recorded + c.dropped, c.begun);
    assert_int_equal(calls_of(&request), served * regions);
    assert_int_equal(calls_of(&part), served * regions);
    /* A block takes 16 KiB: more than a thousand at once would be those of threads long gone. */
    assert_true(most < 20 * MiB);
    assert_true(c.memory_bytes < 20 * MiB);
}

static void one_after_the_other(void **state)
{
    (void)state;
    serve_many(kit_scaled(100000), 1, 1, NULL);
}

static void in_bursts(void **state)
{
    (void)state;
    serve_many(kit_scaled(20000), 8, 32, NULL);
}

static void with_a_trace(void **state)
{
    trace t;
    pk_counts c = {.size = sizeof c};
    const char *path = kit_path("served.json");
    (void)state;
    serve_many(kit_scaled(10000), 2, 8, path);
    assert_int_equal(pk_get_counts(&c), PK_OK);
    if (!trace_read(&t, path) || !trace_nests(&t))
        fail_msg("%s", t.why);
    assert_int_equal(t.count, c.written);
    assert_int_equal(trace_slices(&t, NULL), c.recorded);
    trace_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(in_bursts),
        cmocka_unit_test(with_a_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
