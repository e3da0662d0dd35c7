/* What threads record, however many and short-lived they are, and however little room there is. */
#include "kit.h"
#include "trace.h"
#include "tuning.h"

#include <pk/pk.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "core/names.h"
#include "session/session.h"

/* ---- one thread's random walk through all calls that record, and what perfkit has to make of it
 * ---- */

/* One thread's random walk through all calls that record, and what perfkit has to make of it.
 *
 * The walk keeps a stack of its own and counts as the headers promise: so every sum that perfkit
 * gives in the end is known beforehand, whatever was dropped. */

#define WALK_REGIONS 12
#define WALK_DEEPEST 72 /* perfkit keeps 64 */

typedef struct walk_sums {
    uint64_t begun, too_deep, unbalanced, points, steps;
    uint64_t calls[WALK_REGIONS]; /* those that have to enter a distribution */
    uint64_t bytes[WALK_REGIONS];
} walk_sums;

/* ---- the walk ---- */

#define KEPT 64 /* the depth that the headers promise */

/* Declared, and named at run time; the last three are variants. */
static pk_region declared[] = {
    PK_REGION("w0"),
    PK_REGION_OF(PK_COMPUTE, "w1"),
    PK_REGION_OF(PK_DATA, "w2"),
    PK_REGION_OF(PK_COMM, "w3"),
    PK_REGION_OF(PK_IO, "w4"),
    PK_REGION_OF(PK_WAIT, "w5"),
};
static pk_region variants = PK_REGION_OF(PK_COMPUTE, "variants");
static pk_counter counter = PK_COUNTER("walk.counter", "steps");

#define DECLARED (sizeof declared / sizeof *declared)

static pk_region *walk_region(unsigned i)
{
    static const char *const names[] = {"named 6", "named 7", "named 8"};
    if (i < DECLARED)
        return &declared[i];
    if (i < 9)
        return pk_region_named(names[i - 6]);
    return pk_region_variant(&variants, "n", (int64_t)i - 10);
}

typedef struct walker {
    walk_sums *sums;
    uint64_t chance;
    unsigned depth;
    uint8_t open[WALK_DEEPEST];
} walker;

static unsigned choose(walker *w, unsigned n)
{
    return (unsigned)(kit_random(&w->chance) >> 33) % n;
}

static void count_begin(walker *w, unsigned region)
{
    bool kept = w->depth < KEPT;
    w->open[w->depth++] = (uint8_t)region;
    w->sums->begun++;
    w->sums->too_deep += !kept;
    w->sums->calls[region] += kept;
}

static void begin(walker *w)
{
    unsigned region = choose(w, WALK_REGIONS);
    pk_region_begin(walk_region(region));
    count_begin(w, region);
}

static void end(walker *w)
{
    pk_region_end(walk_region(w->open[--w->depth]));
}

static void next(walker *w)
{
    unsigned region = choose(w, WALK_REGIONS);
    pk_region_next(walk_region(w->open[--w->depth]), walk_region(region));
    count_begin(w, region);
}

static void add(walker *w)
{
    unsigned region = w->open[w->depth - 1], bytes = 1 + choose(w, 1000);
    if (w->depth > KEPT)
        return;
    pk_region_add(walk_region(region), bytes, 0);
    w->sums->bytes[region] += bytes;
}

/* As after a longjmp: an end of a region further out. */
static void end_outer(walker *w)
{
    unsigned at = choose(w, w->depth);
    if (w->depth > KEPT)
        return;
    for (unsigned i = at + 1; i < w->depth; i++)
        if (w->open[i] == w->open[at])
            at = i; /* the innermost of that name is meant */
    pk_region_end(walk_region(w->open[at]));
    w->sums->unbalanced += w->depth - 1 - at;
    w->depth = at;
}

static void point(walker *w, bool steps)
{
    unsigned which = choose(w, steps ? 3 : 2);
    if (which == 0)
        pk_region_mark(walk_region(choose(w, WALK_REGIONS)));
    else if (which == 1)
        pk_counter_set(&counter, w->depth);
    else
        pk_step(w->depth);
    w->sums->points++;
    w->sums->steps += which == 2;
}

static void wander(walker *w, bool steps)
{
    unsigned dice = choose(w, 1000);
    if (dice < 20)
        point(w, steps);
    else if (dice < 40 && w->depth)
        add(w);
    else if (dice < 45 && w->depth)
        end_outer(w);
    else if (dice < 100 && w->depth)
        next(w);
    else if ((dice < 560 || !w->depth) && w->depth < WALK_DEEPEST)
        begin(w);
    else
        end(w);
}

/* At least so many regions begun and all of them ended; adds to sums. Only one thread may make
 * steps. */
static void walk(walk_sums *sums, uint64_t seed, unsigned regions, bool steps)
{
    walker w = {.sums = sums, .chance = seed * UINT64_C(0x9E3779B97F4A7C15) | 1};
    uint64_t until = sums->begun + regions;
    while (sums->begun < until)
        wander(&w, steps);
    while (w.depth)
        end(&w);
}

static void walk_add(walk_sums *to, const walk_sums *from)
{
    const uint64_t *more = &from->begun;
    uint64_t *sum = &to->begun;
    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
        sum[i] += more[i];
}

/* ---- nothing is lost without being counted ---- */

/* 64 threads that come and go, rings small and large, readers, flushes and forks beside them; in
 * the end every sum is the program's own. */

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
    assert_int_equal(pk_start(pk_options(.trace_path = path, .backends = "none",
                                         .tuning = kit_tuning("ring_records=%u,report_threads=%u",
                                                              p->ring_records, p->report_threads))),
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

static int run_balance(int argc, char **argv)
{
    (void)argc, (void)argv;
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

/* ---- the bound of recording memory is reached, by threads and by distributions ---- */

/* What finds no room is dropped and counted, and the program does not notice. */

#define BOUND_THREADS 100
#define BOUND (4u << 20)
#define SOME_ERRNO 4242

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner");
static pk_counter bound_counter = PK_COUNTER("bound.counter", "");
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
        pk_counter_set(&bound_counter, i);
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
    pthread_t threads[BOUND_THREADS];
    sums each[BOUND_THREADS] = {{0, 0}}, all = {0, 0};
    pthread_barrier_init(&all_there, NULL, BOUND_THREADS);
    for (unsigned i = 0; i < BOUND_THREADS; i++)
        must(pthread_create(&threads[i], NULL, be_one_of_many, &each[i]) == 0);
    for (unsigned i = 0; i < BOUND_THREADS; i++) {
        must(pthread_join(threads[i], NULL) == 0);
        all.begun += each[i].begun;
        all.points += each[i].points;
    }
    pthread_barrier_destroy(&all_there);
    return all;
}

static void bound_check_counts(const pk_counts *c, const sums *s)
{
    assert_int_equal(c->begun, s->begun);
    assert_int_equal(c->recorded + c->dropped, c->begun);
    assert_int_equal(c->points + c->points_dropped, s->points);
    assert_int_equal(c->stray_ends + c->unbalanced, 0);
    assert_true(c->memory_bytes <= BOUND);
    assert_true(c->recorded > 0);
}

static void bound_check_trace(const char *path, const pk_counts *c)
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
    assert_int_equal(pk_start(pk_options(.trace_path = path, .memory_bytes = BOUND,
                                         .report_path = kit_path("report"), .backends = "none",
                                         .tuning = "ring_records=4096")),
                     PK_OK);
    sums all = run_threads();
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&c), PK_OK);
    printf("%u of %u threads had memory\n", c.threads, BOUND_THREADS);
    bound_check_counts(&c, &all);
    assert_true(c.threads > 0 && c.threads < BOUND_THREADS);
    /* Those that had a block were counted with every call, recorded or not. */
    uint64_t calls = calls_of(&outer) + calls_of(&inner);
    assert_true(calls >= c.recorded && calls < c.begun);
    if (path)
        bound_check_trace(path, &c);
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
    assert_int_equal(pk_start(pk_options(.memory_bytes = BOUND, .backends = "none",
                                         .tuning = kit_tuning("ring_records=64,report_threads=%u",
                                                              threads > 1))),
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

static int run_bound(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads),
        cmocka_unit_test(threads_with_a_trace),
        cmocka_unit_test(names),
        cmocka_unit_test(names_of_threads_that_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- spans ---- */

/* Spans that many threads hand to each other, through rings that are too small for them: each is
 * counted once, and each is in the distribution, whatever was dropped. */

enum { SPANS_THREADS = 64, BATCH = 100, ROUNDS = 40 };

static pk_region request = PK_REGION("request"), seen = PK_REGION("seen");
static pk_span spans[SPANS_THREADS][BATCH];
static pthread_barrier_t together;
static unsigned rounds;

static void *hand_over(void *argument)
{
    unsigned me = (unsigned)(uintptr_t)argument, neighbour = (me + 1) % SPANS_THREADS;
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < BATCH; i++)
            spans[me][i] = pk_span_begin(&request, me);
        pthread_barrier_wait(&together);
        for (unsigned i = 0; i < BATCH; i++) {
            must_equal(spans[neighbour][i].id, neighbour);
            pk_span_mark(&spans[neighbour][i], &seen);
            pk_span_end(&spans[neighbour][i]);
        }
        pthread_barrier_wait(&together);
    }
    return NULL;
}

static void run_all(void)
{
    pthread_t threads[SPANS_THREADS];
    pthread_barrier_init(&together, NULL, SPANS_THREADS);
    for (uintptr_t i = 0; i < SPANS_THREADS; i++)
        must(pthread_create(&threads[i], NULL, hand_over, (void *)i) == 0);
    for (unsigned i = 0; i < SPANS_THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
    pthread_barrier_destroy(&together);
}

static uint64_t samples_of(const pk_region *region)
{
    static pk_stats stats;
    assert_int_equal(pk_region_stats(region, &stats), PK_OK);
    return stats.count;
}

static void check(uint32_t ring_records, const char *file)
{
    rounds = kit_scaled(ROUNDS);
    uint64_t all = (uint64_t)SPANS_THREADS * BATCH * rounds;
    assert_int_equal(pk_start(pk_options(.trace_path = file, .backends = "none",
                                         .tuning = kit_tuning("ring_records=%u", ring_records))),
                     PK_OK);
    run_all();
    assert_int_equal(pk_stop(), PK_OK);
    pk_span_counts c = {.size = sizeof c};
    pk_counts counts = {.size = sizeof counts};
    assert_int_equal(pk_get_span_counts(&c), PK_OK);
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_int_equal(c.begun, all);
    assert_int_equal(c.ended, all);
    assert_int_equal(c.open + c.ended_twice + c.of_earlier, 0);
    assert_int_equal(samples_of(&request), all);
    assert_int_equal(samples_of(&seen), all);
    assert_int_equal(counts.points_dropped, c.dropped);
    assert_int_equal(counts.points + counts.points_dropped, 3 * all);
    assert_int_equal(counts.begun, 0);
}

static void none_is_lost_where_there_is_room(void **state)
{
    (void)state;
    check(0, NULL);
}

static void none_is_lost_where_there_is_none(void **state)
{
    (void)state;
    check(256, kit_path("spans.json"));
}

static int run_spans(int argc, char **argv)
{
    (void)argc, (void)argv;
    kit_watchdog(280);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_lost_where_there_is_room),
        cmocka_unit_test(none_is_lost_where_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* stress-records NAME [ARGUMENT] */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } programs[] = {
        {"balance", run_balance},
        {"bound", run_bound},
        {"spans", run_spans},
    };
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argc - 1, argv + 1);
    return 2;
}
