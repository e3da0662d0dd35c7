/* The bound of recording memory is reached, by threads and by distributions: what finds no room is
 * dropped and counted, and the program does not notice.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "core/names.h"
#include "kit.h"
#include "trace.h"

#define THREADS 100
#define BOUND (4u << 20)
#define SOME_ERRNO 4242

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner");
static pk_counter counter = PK_COUNTER("bound.counter", "");
static pthread_barrier_t all_there;

typedef struct sums {
    uint64_t begun, points;
} sums;

static void record(sums *s, unsigned n)
{
    errno = SOME_ERRNO;
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&outer);
        pk_region_begin(&inner);
        pk_region_add(&inner, 10, 0);
        pk_region_next(&inner, &outer);
        pk_counter_set(&counter, i);
        pk_region_mark(&inner);
        pk_region_end(&outer);
        pk_region_end(&outer);
        must_equal(errno, SOME_ERRNO);
    }
    s->begun += 3ull * n;
    s->points += 2ull * n;
}

static void *be_one_of_many(void *argument)
{
    record(argument, 1);
    pthread_barrier_wait(&all_there);
    record(argument, kit_scaled(3000));
    pthread_barrier_wait(&all_there);
    return NULL;
}

static uint64_t calls_of(const pk_region *region)
{
    static pk_stats stats;
    pk_status status = pk_region_stats(region, &stats);
    assert_true(status == PK_OK || status == PK_ENOENT);
    return stats.count;
}

/* All alive at once: most of them find no block. */
static sums run_threads(void)
{
    pthread_t threads[THREADS];
    sums each[THREADS] = {{0, 0}}, all = {0, 0};
    pthread_barrier_init(&all_there, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, be_one_of_many, &each[i]) == 0);
    for (unsigned i = 0; i < THREADS; i++) {
        must(pthread_join(threads[i], NULL) == 0);
        all.begun += each[i].begun;
        all.points += each[i].points;
    }
    pthread_barrier_destroy(&all_there);
    return all;
}

static void check_counts(const pk_counts *c, const sums *s)
{
    assert_int_equal(c->begun, s->begun);
    assert_int_equal(c->recorded + c->dropped, c->begun);
    assert_int_equal(c->points + c->points_dropped, s->points);
    assert_int_equal(c->stray_ends + c->unbalanced, 0);
    assert_true(c->memory_bytes <= BOUND);
    assert_true(c->recorded > 0);
}

static void check_trace(const char *path, const pk_counts *c)
{
    trace t;
    if (!trace_read(&t, path) || !trace_nests(&t))
        fail_msg("%s", t.why);
    assert_int_equal(t.count, c->written);
    assert_int_equal(trace_slices(&t, NULL), c->recorded);
    assert_int_equal(t.count, c->recorded + c->points);
    assert_true(t.has_report);
    trace_free(&t);
}

static void more_threads_than_memory(const char *path)
{
    pk_counts c = {.size = sizeof c};
    assert_int_equal(
        pk_start(pk_options(.trace_path = path, .memory_bytes = BOUND, .ring_records = 4096,
                            .report_path = kit_path("report"), .backends = "none")),
        PK_OK);
    sums all = run_threads();
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&c), PK_OK);
    printf("%u of %u threads had memory\n", c.threads, THREADS);
    check_counts(&c, &all);
    assert_true(c.threads > 0 && c.threads < THREADS);
    /* Those that had a block were counted with every call, recorded or not. */
    uint64_t calls = calls_of(&outer) + calls_of(&inner);
    assert_true(calls >= c.recorded && calls < c.begun);
    if (path)
        check_trace(path, &c);
}

static void threads(void **state)
{
    (void)state;
    more_threads_than_memory(NULL);
}

static void threads_with_a_trace(void **state)
{
    (void)state;
    more_threads_than_memory(kit_path("bound.json"));
}

/* Many names with durations of many sizes: their distributions take all memory there is. */
static void *use_many_names(void *argument)
{
    uint64_t *chance = argument;
    for (unsigned i = 0; i < 20000; i++) {
        pk_region *one = pk_region_variant(&outer, "n", i % 10000);
        errno = SOME_ERRNO;
        pk_region_begin(one);
        for (volatile uint64_t n = kit_random(chance) % 300; n > 0; n--)
            ;
        pk_region_end(one);
        must_equal(errno, SOME_ERRNO);
    }
    return NULL;
}

/* Calls without room for their name's distribution share one: then all together are all. */
static void check_calls(uint64_t begun)
{
    const pk_region too_many = {.id = PKI_NAME_TOO_MANY};
    pk_counts c = {.size = sizeof c};
    uint64_t calls = 0, shared = calls_of(&too_many);
    assert_int_equal(pk_get_counts(&c), PK_OK);
    for (unsigned i = 0; i < 10000; i++)
        calls += calls_of(pk_region_variant(&outer, "n", i));
    printf("%llu calls share a distribution\n", (unsigned long long)shared);
    assert_int_equal(c.begun, begun);
    assert_int_equal(c.recorded + c.dropped, begun);
    assert_true(c.memory_bytes <= BOUND);
    assert_true(shared > 0);
    assert_int_equal(calls + shared, begun);
}

static void more_names_than_memory(unsigned threads)
{
    pthread_t one;
    uint64_t chance = 5;
    assert_int_equal(pk_start(pk_options(.memory_bytes = BOUND, .ring_records = 64,
                                         .report_threads = threads > 1, .backends = "none")),
                     PK_OK);
    for (unsigned i = 0; i < threads; i++) {
        must(pthread_create(&one, NULL, use_many_names, &chance) == 0);
        must(pthread_join(one, NULL) == 0);
        assert_int_equal(pk_flush(), PK_OK); /* its block is the next one's */
    }
    check_calls(20000ull * threads);
    assert_int_equal(pk_stop(), PK_OK);
    check_calls(20000ull * threads);
}

static void names(void **state)
{
    (void)state;
    more_names_than_memory(1);
}

static void names_of_threads_that_end(void **state)
{
    (void)state;
    more_names_than_memory(6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads),
        cmocka_unit_test(threads_with_a_trace),
        cmocka_unit_test(names),
        cmocka_unit_test(names_of_threads_that_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
