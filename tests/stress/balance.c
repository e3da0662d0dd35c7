/* Nothing is lost without being counted: 64 threads that come and go, rings small and large,
 * readers, flushes and forks beside them; in the end every sum is the program's own.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "kit.h"
#include "session/session.h"
#include "trace.h"
#include "walk.h"

#define THREADS 64

typedef struct plan {
    unsigned ring_records, regions, lives; /* threads that follow each other in one place */
    const char *trace;                     /* NULL: none */
    unsigned readers, forks;
    uint32_t report_threads;
    unsigned spares; /* segments that full rings may reach into */
} plan;

typedef struct place {
    const plan *p;
    unsigned number;
    pthread_t thread;
    walk_sums sums;
} place;

static bool readers_on;

static void *live(void *argument)
{
    place *at = argument;
    unsigned share = at->p->regions / at->p->lives + 1;
    walk(&at->sums, at->number * 1000 + at->sums.begun, share, at->number == 0);
    return NULL;
}

static void *succeed(void *argument)
{
    place *at = argument;
    pthread_t one;
    for (unsigned i = 0; i < at->p->lives; i++) {
        must(pthread_create(&one, NULL, live, at) == 0);
        must(pthread_join(one, NULL) == 0);
    }
    return NULL;
}

/* Names come up while others look through all of them. */
static void use_a_new_name(uint64_t round)
{
    char name[32];
    snprintf(name, sizeof name, "watch %llu", (unsigned long long)round % 3000);
    (void)pk_region_named(name);
}

/* What it sees never runs backwards, and statistics never run ahead of calls. */
static void *watch(void *argument)
{
    static _Thread_local pk_stats stats;
    pk_counts counts = {.size = sizeof counts};
    uint64_t calls[WALK_REGIONS] = {0}, recorded = 0, round = 0;
    (void)argument;
    while (__atomic_load_n(&readers_on, __ATOMIC_RELAXED)) {
        unsigned i = (unsigned)(round++ % WALK_REGIONS);
        if (pk_region_stats(walk_region(i), &stats) == PK_OK) {
            uint64_t in_buckets = 0;
            for (unsigned b = 0; b < PK_STATS_BUCKETS; b++)
                in_buckets += stats.buckets[b];
            must(stats.count >= calls[i]);
            must(in_buckets + 2 * THREADS >= stats.count); /* each owner may be amid a lost call */
            calls[i] = stats.count;
        }
        must_equal(pk_get_counts(&counts), PK_OK);
        must(counts.recorded >= recorded);
        must(counts.recorded + counts.dropped <= counts.begun);
        recorded = counts.recorded;
        if (round % 8 == 0)
            must_equal(pk_flush(), PK_OK);
        use_a_new_name(round);
        kit_sleep_us(200);
    }
    return NULL;
}

/* Off, and alone. */
static void be_a_child(void)
{
    pk_counts counts = {.size = sizeof counts};
    alarm(240);
    must_equal(pk_get_counts(&counts), PK_EOFF);
    must_equal(pk_flush(), PK_EOFF);
    pk_region_begin(walk_region(0));
    pk_region_end(walk_region(0));
    _exit(0);
}

static void fork_amid(unsigned times)
{
    int status;
    for (unsigned i = 0; i < times; i++) {
        kit_sleep_us(2000);
        pid_t child = fork();
        must(child >= 0);
        if (child == 0)
            be_a_child();
        must(waitpid(child, &status, 0) == child);
        must_equal(status, 0);
    }
}

static void run(const plan *p, walk_sums *sums)
{
    static place places[THREADS];
    pthread_t readers[4];
    memset(places, 0, sizeof places);
    __atomic_store_n(&readers_on, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < p->readers; i++)
        must(pthread_create(&readers[i], NULL, watch, NULL) == 0);
    for (unsigned i = 0; i < THREADS; i++) {
        places[i].p = p;
        places[i].number = i;
        must(pthread_create(&places[i].thread, NULL, succeed, &places[i]) == 0);
    }
    if (!kit_sanitized("address")) /* whose own locks may be held when another thread forks */
        fork_amid(p->forks);
    for (unsigned i = 0; i < THREADS; i++) {
        must(pthread_join(places[i].thread, NULL) == 0);
        walk_add(sums, &places[i].sums);
    }
    __atomic_store_n(&readers_on, false, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < p->readers; i++)
        must(pthread_join(readers[i], NULL) == 0);
}

static void check_counts(const walk_sums *sums, const pk_counts *c, const plan *p)
{
    assert_int_equal(c->begun, sums->begun);
    assert_int_equal(c->recorded + c->dropped, c->begun);
    assert_int_equal(c->too_deep, sums->too_deep);
    assert_int_equal(c->unbalanced, sums->unbalanced);
    assert_int_equal(c->stray_ends, 0);
    assert_int_equal(c->points + c->points_dropped, sums->points);
    assert_int_equal(c->steps, sums->steps);
    assert_int_equal(c->threads, THREADS * p->lives);
    assert_true(c->dropped >= c->too_deep);
}

/* Drops do not bias. */
static void check_statistics(const walk_sums *sums)
{
    static pk_stats stats;
    for (unsigned i = 0; i < WALK_REGIONS; i++) {
        uint64_t in_buckets = 0;
        assert_int_equal(pk_region_stats(walk_region(i), &stats), PK_OK);
        for (unsigned b = 0; b < PK_STATS_BUCKETS; b++)
            in_buckets += stats.buckets[b];
        assert_int_equal(stats.count, sums->calls[i]);
        assert_int_equal(stats.bytes, sums->bytes[i]);
        assert_int_equal(in_buckets, stats.count);
        assert_true(stats.self <= stats.sum && stats.min <= stats.max);
    }
    assert_int_equal(pk_step_stats(&stats), PK_OK);
    assert_int_equal(stats.count, sums->steps);
}

static void check_trace(const walk_sums *sums, const pk_counts *c, const char *path)
{
    trace t;
    if (!trace_read(&t, path) || !trace_nests(&t))
        fail_msg("%s", t.why);
    assert_true(t.has_report);
    assert_int_equal(c->unwritten, 0);
    assert_int_equal(t.count, c->written);
    if (!strstr(path, ".gz")) { /* a head that has been compressed stays as it was at the start */
        assert_true(t.complete);
        assert_int_equal(t.written, c->written);
    }
    assert_int_equal(trace_slices(&t, NULL), c->recorded);
    assert_int_equal(t.count, c->recorded + c->points);
    for (unsigned i = 0; i < WALK_REGIONS; i++)
        assert_true(trace_slices(&t, walk_region(i)->name) <= sums->calls[i]);
    trace_free(&t);
}

/* Else they are for rings of the usual size only. */
static void make_spares(const plan *p)
{
    uint32_t bytes = p->ring_records * (uint32_t)sizeof(pki_record);
    pki_session *s = &pki_the_session;
    pthread_mutex_lock(&pki_drain_lock);
    for (unsigned i = 0; i < p->spares; i++)
        assert_true(pki_spare_make(&s->registry->spares, s->arena, bytes, p->spares));
    pthread_mutex_unlock(&pki_drain_lock);
}

static void balance(const plan *p)
{
    walk_sums sums = {0};
    pk_counts counts = {.size = sizeof counts};
    const char *path = p->trace ? kit_path(p->trace) : NULL;
    assert_int_equal(pk_start(pk_options(.trace_path = path, .ring_records = p->ring_records,
                                         .report_threads = p->report_threads, .backends = "none")),
                     PK_OK);
    make_spares(p);
    run(p, &sums);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    printf("%llu begun, %llu dropped\n", (unsigned long long)counts.begun,
           (unsigned long long)counts.dropped);
    check_counts(&sums, &counts, p);
    check_statistics(&sums);
    if (path)
        check_trace(&sums, &counts, path);
    if (p->ring_records > p->regions * 4)
        assert_int_equal(counts.dropped, counts.too_deep);
}

static void small_rings(void **state)
{
    (void)state;
    balance(&(plan){.ring_records = 64, .regions = kit_scaled(20000), .lives = 1, .readers = 2});
}

static void small_rings_with_a_trace(void **state)
{
    (void)state;
    balance(&(plan){
        .ring_records = 64, .regions = kit_scaled(4000), .lives = 1, .trace = "small.json"});
}

static void large_rings_with_a_trace(void **state)
{
    (void)state;
    balance(&(plan){.ring_records = 16384,
                    .regions = kit_scaled(3000),
                    .lives = 1,
                    .trace = "large.json.gz",
                    .readers = 1,
                    .forks = 3});
}

static void segments(void **state)
{
    (void)state;
    balance(&(plan){
        .ring_records = 64, .regions = kit_scaled(10000), .lives = 1, .readers = 2, .spares = 40});
}

static void segments_with_a_trace(void **state)
{
    (void)state;
    balance(&(plan){.ring_records = 128,
                    .regions = kit_scaled(3000),
                    .lives = kit_scaled(10),
                    .trace = "segments.json",
                    .readers = 1,
                    .forks = 2,
                    .spares = 60});
}

static void churn(void **state)
{
    (void)state;
    balance(&(plan){.ring_records = 128,
                    .regions = kit_scaled(4000),
                    .lives = kit_scaled(40),
                    .trace = "churn.json",
                    .readers = 2,
                    .report_threads = 1});
}

static void forks(void **state)
{
    (void)state;
    balance(&(plan){.ring_records = 256,
                    .regions = kit_scaled(20000),
                    .lives = 2,
                    .forks = kit_scaled(20),
                    .readers = 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_rings),
        cmocka_unit_test(segments),
        cmocka_unit_test(segments_with_a_trace),
        cmocka_unit_test(small_rings_with_a_trace),
        cmocka_unit_test(large_rings_with_a_trace),
        cmocka_unit_test(churn),
        cmocka_unit_test(forks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
