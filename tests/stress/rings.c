/* Threads' rings and counts under handlers, under readers, thinned, and of the short-lived. */
#include "kit.h"
#include "trace.h"
#include "tuning.h"

#include <pk/pk.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "core/join.h"
#include "core/names.h"
#include "core/registry.h"
#include "core/ring.h"
#include "core/thin.h"
#include "session/session.h"

/* ---- handlers ---- */

/* Signal handlers that record, ten thousand times a second and more, whatever the thread below
 * them is doing: beginning and ending regions, joining, naming, making steps, flushing, starting
 * and stopping sessions, allocating memory. Nothing hangs, nothing crashes, and everything is
 * recorded or counted. */

enum { THREADS = 3, HITS = 6000, NAMES = 4000, SECONDS = 200 };

static pk_region work = PK_REGION("work"), inner = PK_REGION_OF(PK_COMPUTE, "inner"),
                 below = PK_REGION("below"), hit = PK_REGION_OF(PK_IO, "hit"),
                 next_hit = PK_REGION("next hit"), family = PK_REGION("family");
static pk_counter level = PK_COUNTER("level", ""), hits = PK_COUNTER("hits", "");
static pk_comm *comm;

static uint64_t begun_here, begun_there; /* regions, by the program and by its handlers */
static uint32_t names_made, signals;
static uint32_t recording; /* threads */

static void add(uint64_t *to, uint64_t n)
{
    __atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

static uint64_t value_of(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/* -- what handlers do -- */

static void name_something(void)
{
    uint32_t n = __atomic_fetch_add(&names_made, 1, __ATOMIC_RELAXED) % NAMES;
    char name[] = "handler 0000";
    for (int i = 0; i < 4; i++, n /= 10)
        name[sizeof name - 2 - (unsigned)i] = (char)('0' + n % 10);
    pk_region_begin(pk_region_named(name));
    pk_region_end(pk_region_named(name));
    pk_region *variant = pk_region_variant(&family, "n", names_made % NAMES);
    pk_region_begin(variant);
    pk_region_end(variant);
    pk_counter_set(pk_counter_named(name, "things"), 1);
    add(&begun_there, 2);
}

static void record_all(int signal)
{
    int before = errno;
    (void)signal;
    __atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
    pk_region_begin(&hit);
    pk_region_add(&hit, 64, 1);
    pk_region_next(&hit, &next_hit);
    pk_counter_set(&hits, 1);
    pk_region_mark(&hit);
    pk_step(1);
    pk_region_end(&next_hit);
    add(&begun_there, 2);
    pk_comm_request request =
        pk_comm_start(comm, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 8, -1);
    pk_comm_finish(&request, 0);
    name_something();
    if (errno != before)
        abort();
}

static void record_regions(int signal)
{
    (void)signal;
    __atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 5; i++) {
        pk_region_begin(&hit);
        pk_region_end(&hit);
    }
    pk_counter_set(&hits, 1);
    add(&begun_there, 5);
}

static void on_signal(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    must(sigaction(SIGPROF, &action, NULL) == 0);
}

/* -- who sends the signals -- */

typedef struct victim {
    pthread_t thread, pest;
    bool there, done;
} victim;

static void *pester(void *argument)
{
    victim *v = argument;
    while (!__atomic_load_n(&v->done, __ATOMIC_ACQUIRE)) {
        pthread_kill(v->thread, SIGPROF);
        kit_sleep_us(20);
    }
    return NULL;
}

static void pester_me(victim *v)
{
    *v = (victim){.thread = pthread_self()};
    must(pthread_create(&v->pest, NULL, pester, v) == 0);
}

static void leave_me_alone(victim *v)
{
    __atomic_store_n(&v->done, true, __ATOMIC_RELEASE);
    must(pthread_join(v->pest, NULL) == 0);
}

/* -- what they interrupt -- */

static void work_once(uint64_t i)
{
    pk_region_begin(&work);
    pk_region_begin(&inner);
    if (i % 8 == 0)
        pk_region_add(&inner, 1, 1);
    pk_region_next(&inner, &below);
    pk_region_end(&below);
    if (i % 16 == 0)
        pk_counter_set(&level, (double)i);
    if (i % 64 == 0)
        pk_step(1);
    pk_region_end(&work);
    add(&begun_here, 3);
}

static bool go_on(void)
{
    return __atomic_load_n(&signals, __ATOMIC_RELAXED) < kit_scaled(HITS);
}

/* Whatever has been undone, there is room in a ring that has been emptied. */
static void goes_on(void)
{
    must(pk_flush() == PK_OK);
    uint64_t dropped = pki_own->dropped;
    for (int i = 0; i < 10; i++)
        work_once(1);
    must_equal(pki_own->dropped, dropped);
}

static void *record(void *argument)
{
    victim v;
    pester_me(&v);
    for (uint64_t i = 0; go_on(); i++) {
        work_once(i);
        if (i % 100 == 0) /* let the rings be emptied */
            kit_sleep_us(500);
    }
    leave_me_alone(&v);
    goes_on();
    __atomic_fetch_sub(&recording, 1, __ATOMIC_RELAXED);
    return argument;
}

/* What is counted amid the storm never goes back, and is no more than there was. What a thread is
 * at just now it has not told us yet. */
static void watch(void)
{
    pk_counts before = {.size = sizeof before}, now = before;
    while (__atomic_load_n(&recording, __ATOMIC_RELAXED) > 0) {
        must(pk_get_counts(&now) == PK_OK);
        uint64_t most = value_of(&begun_here) + value_of(&begun_there) + THREADS * (3 + 5);
        must(now.recorded >= before.recorded && now.dropped >= before.dropped);
        must(now.recorded + now.dropped <= most);
        before = now;
        kit_sleep_us(2000);
    }
}

static void record_on_all(void)
{
    pthread_t threads[THREADS];
    recording = THREADS;
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, record, NULL) == 0);
    watch();
    for (int i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
}

/* Segments for rings that are full: handlers go on into them, and back, too. */
static void make_spares(void)
{
    pki_session *s = &pki_the_session;
    pthread_mutex_lock(&pki_drain_lock);
    for (int i = 0; i < 20; i++)
        must(pki_spare_make(&s->registry->spares, s->arena, 512 * sizeof(pki_record), 20));
    pthread_mutex_unlock(&pki_drain_lock);
}

static void start(const char *clock, const char *path)
{
    comm = pk_comm_create("test", "world", 1, 0, 2);
    must(pk_start(pk_options(.trace_path = path, .backends = "none",
                             .tuning = kit_tuning("clock=%s,ring_records=512", clock))) == PK_OK);
    if (path)
        make_spares();
}

static pk_counts stop(void)
{
    pk_counts counts = {.size = sizeof counts};
    must(pk_stop() == PK_OK);
    must(pk_get_counts(&counts) == PK_OK);
    printf("%u signals, %llu regions, %llu in handlers; begun %llu, recorded %llu, dropped %llu\n",
           signals, (unsigned long long)value_of(&begun_here),
           (unsigned long long)value_of(&begun_there), (unsigned long long)counts.begun,
           (unsigned long long)counts.recorded, (unsigned long long)counts.dropped);
    fflush(stdout);
    must_equal(counts.recorded + counts.dropped, counts.begun);
    return counts;
}

/* With a clock of which every call is a slow path, nothing is missing. */
static void all_is_counted(void *argument)
{
    on_signal(record_all);
    start("monotonic", argument);
    record_on_all();
    must_equal(stop().begun, value_of(&begun_here) + value_of(&begun_there));
}

/* A handler that interrupts the fast path may be undone by it, but nothing appears that was not. */
static void nothing_is_made_up(void *argument)
{
    pk_stats stats;
    on_signal(record_regions);
    start("", argument);
    record_on_all();
    pk_counts counts = stop();
    must(counts.begun <= value_of(&begun_here) + value_of(&begun_there));
    must(counts.begun >= value_of(&begun_here) / 2);
    must(pk_region_stats(&work, &stats) == PK_OK);
    must(stats.count <= value_of(&begun_here) / 3);
}

static void *allocate(void *argument)
{
    victim v;
    pester_me(&v); /* whose first signal makes this thread join */
    for (unsigned i = 0; i < kit_scaled(50000); i++) {
        void *volatile some = malloc(100 + i % 5000);
        free(some);
    }
    leave_me_alone(&v);
    return argument;
}

/* First uses, and threads that join, in handlers amid malloc. */
static void first_uses_amid_malloc(void *argument)
{
    on_signal(record_all);
    start("monotonic", argument);
    for (unsigned i = 0; i < kit_scaled(40); i++) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, allocate, NULL) == 0);
        must(pthread_join(thread, NULL) == 0);
    }
    must_equal(stop().begun, value_of(&begun_there));
}

static void control(unsigned i)
{
    static pk_stats stats;
    pk_counts counts = {.size = sizeof counts};
    char name[24];
    snprintf(name, sizeof name, "control %u", i % NAMES);
    pk_flush();
    pk_get_counts(&counts);
    pk_region_stats(&work, &stats);
    pk_thread_set_name(name);
    work_once(i);
    pk_region_begin(pk_region_named(name));
    pk_region_end(pk_region_named(name));
    pk_comm_destroy(pk_comm_create("test", name, i, 0, 1));
    if (i % 16 == 0) {
        pk_stop();
        start("", NULL);
    }
}

static void control_calls(void *argument)
{
    victim v;
    on_signal(record_all);
    start("", argument);
    pester_me(&v);
    for (unsigned i = 0; i < kit_scaled(800); i++)
        control(i);
    leave_me_alone(&v);
    stop();
}

static void run_apart(void (*body)(void *), const char *path)
{
    assert_int_equal(kit_child(body, (void *)(uintptr_t)path, SECONDS), 0);
}

static void every_call_is_recorded_or_counted(void **state)
{
    (void)state;
    run_apart(all_is_counted, NULL);
    run_apart(all_is_counted, kit_path("handlers.json"));
}

static void nothing_is_recorded_twice(void **state)
{
    (void)state;
    run_apart(nothing_is_made_up, NULL);
    run_apart(nothing_is_made_up, kit_path("twice.json"));
}

static void handlers_need_no_malloc(void **state)
{
    (void)state;
    run_apart(first_uses_amid_malloc, NULL);
}

static void handlers_amid_control_calls(void **state)
{
    (void)state;
    run_apart(control_calls, kit_path("control.json"));
}

static int run_handlers(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_recorded_or_counted),
        cmocka_unit_test(nothing_is_recorded_twice),
        cmocka_unit_test(handlers_need_no_malloc),
        cmocka_unit_test(handlers_amid_control_calls),
    };
    if (kit_sanitized("thread"))
        kit_skip("ThreadSanitizer delivers signals only within the calls that it intercepts");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- how far a thread's ring has come, asked by others while it goes round and round ---- */

/* Laps and offset are two words, and must be read as one. */

#define RECORDS 64u

static pki_thread *block;
static uint64_t recorded; /* by the owner's count, once an end has returned */
static bool position_done;

/* A block of its own, which no session knows; one region in five has work and takes two slots. */
static void *go_round(void *argument)
{
    pk_region region = {.name = "", .id = PKI_NAME_TOO_MANY, .file = ""};
    pki_thread *mine = pki_own;
    pki_thread_be(block);
    for (uint64_t i = 0, dropped = 0; recorded < kit_scaled(1000000); i++) {
        if (block->dropped > dropped) /* the ring is full: let the other side run */
            sched_yield();
        dropped = block->dropped;
        pk_region_begin_on_(&region);
        if (i % 5 == 0)
            pk_region_add_on_(&region, 1, 0);
        pk_region_end_on_(&region);
        __atomic_store_n(&recorded, i + 1 - block->dropped, __ATOMIC_RELEASE);
    }
    pki_thread_be(mine);
    __atomic_store_n(&position_done, true, __ATOMIC_RELEASE);
    return argument;
}

static uint64_t look(void)
{
    pki_position at = pki_thread_position(block);
    must_equal(at.bytes % sizeof(pki_record), 0);
    must(pki_depth_in(at.state) <= 1);
    return at.bytes / sizeof(pki_record) - at.others;
}

/* What it records may be ahead of its count by the region in hand, and by the second slot of it. */
static void position_watch(void)
{
    uint64_t most = 0;
    for (uint64_t looks = 0; !__atomic_load_n(&position_done, __ATOMIC_ACQUIRE); looks++) {
        uint64_t before = __atomic_load_n(&recorded, __ATOMIC_ACQUIRE);
        uint64_t seen = look();
        uint64_t after = __atomic_load_n(&recorded, __ATOMIC_ACQUIRE);
        must(seen >= before && seen <= after + 2);
        if (looks % 4 == 0) { /* the collector's part */
            pki_store_release(&block->released, pki_thread_head(block));
            pki_store_release(&block->losses_folded, pki_load_acquire(&block->losses_made));
        }
        most = seen > most ? seen : most;
    }
    must_equal(look(), recorded);
    printf("%llu regions, %llu dropped\n", (unsigned long long)recorded,
           (unsigned long long)block->dropped);
    must(recorded > RECORDS);
}

static pki_registry alone;

static int make_block(void **state)
{
    (void)state;
    pki_owned file;
    alone.arena = pki_mem_file(&file, "position") ? pki_arena_create(&file, 4 << 20) : NULL;
    block = pki_arena_claim(alone.arena, sizeof *block + RECORDS * sizeof(pki_record));
    pki_block_init(block, (pki_record *)(block + 1), RECORDS * (uint32_t)sizeof(pki_record), 0);
    block->registry = &alone;
    return 0;
}

static int drop_block(void **state)
{
    (void)state;
    pki_arena_destroy(alone.arena);
    return 0;
}

static void laps_and_offset_are_one(void **state)
{
    pthread_t owner;
    (void)state;
    must(pthread_create(&owner, NULL, go_round, NULL) == 0);
    position_watch();
    must(pthread_join(owner, NULL) == 0);
}

static void fill(pk_region *region)
{
    for (unsigned i = 0; i < 2 * RECORDS; i++) {
        pk_region_begin_on_(region);
        pk_region_end_on_(region);
    }
}

/* What is told of lost calls has bounded room: the ring's has to wait for it. */
static void losses_wait_to_be_folded(void **state)
{
    pk_region region = {.name = "", .id = PKI_NAME_TOO_MANY, .file = ""};
    pki_thread *mine = pki_own;
    (void)state;
    pki_thread_be(block);
    for (unsigned i = 0; i < 4 * PKI_LOSSES; i++) {
        fill(&region);
        pki_store(&block->released, pki_thread_head(block));
        must(block->losses_made <= PKI_LOSSES);
    }
    uint64_t before = block->dropped;
    fill(&region);
    must_equal(block->dropped, before + 2 * RECORDS); /* there would be room for 63 */
    block->losses_folded = block->losses_made;
    fill(&region);
    must_equal(block->dropped, before + 2 * RECORDS + RECORDS + 1);
    pki_thread_be(mine);
}

static int run_position(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(laps_and_offset_are_one, make_block, drop_block),
        cmocka_unit_test_setup_teardown(losses_wait_to_be_folded, make_block, drop_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- regions that are thinned, more and less and not at all, while threads call them ---- */

/* Nested, one after the other, left open, with bytes, in short-lived threads and small rings. In
 * the end each call has been counted once, and each region that was left open, too. */

enum { REGIONS = 5, THINNED_THREADS = 8, LIVES = 6, TURNS = 10000 /* of each life */ };

/* The last two are one name in two files, so to say. */
static pk_region thinned_regions[REGIONS] = {PK_REGION("outer"), PK_REGION("work"),
                                             PK_REGION("leaf"), PK_REGION("shared"),
                                             PK_REGION("shared")};
static bool going;

typedef struct sums {
    uint64_t calls[REGIONS], unbalanced, bytes;
} sums;

static void begin(sums *s, unsigned which)
{
    s->calls[which]++;
    pk_region_begin(&thinned_regions[which]);
}

static void end(unsigned which)
{
    pk_region_end(&thinned_regions[which]);
}

static void leaves(sums *s, unsigned n)
{
    begin(s, 2);
    for (unsigned i = 0; i < n; i++) {
        pk_region_next(&thinned_regions[2], &thinned_regions[2]);
        s->calls[2]++;
    }
    end(2);
}

/* Now and then the end of the outer region closes what is open inside. */
static void turn(sums *s, uint64_t random)
{
    bool leave_open = random % 7 == 0;
    begin(s, 0);
    begin(s, 1);
    pk_region_add(&thinned_regions[1], 3, 0);
    s->bytes += 3;
    leaves(s, (unsigned)(random % 3));
    begin(s, 3 + random % 2);
    if (!leave_open) {
        end(4 - random % 2);
        end(1);
    }
    s->unbalanced += leave_open ? 2 : 0;
    end(0);
    if (random % 64 == 0)
        pk_step(1);
}

static void *live(void *argument)
{
    sums *s = argument;
    uint64_t random = (uint64_t)(uintptr_t)s;
    for (int i = 0; i < (int)kit_scaled(TURNS); i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        turn(s, random >> 33);
    }
    return NULL;
}

static void *succeed(void *argument)
{
    pthread_t one;
    for (int i = 0; i < LIVES; i++) {
        must(pthread_create(&one, NULL, live, argument) == 0);
        must(pthread_join(one, NULL) == 0);
    }
    return NULL;
}

/* What session/collector/thinning.c does, at random. */
static void *change(void *argument)
{
    static const uint32_t thins[] = {0, 2, 8, 64, PKI_THIN_UNTRACED, 512};
    uint64_t round = 0;
    (void)argument;
    while (__atomic_load_n(&going, __ATOMIC_RELAXED)) {
        pki_thin_set(pki_region_id(&thinned_regions[round % 4]), thins[round / 4 % 6]);
        pki_registry_lock();
        pki_thin_watch(pki_registry_now(), round % 3 == 0);
        pki_registry_unlock();
        if (round++ % 16 == 0)
            pk_flush();
        kit_sleep_us(300);
    }
    return NULL;
}

static uint64_t count_of(unsigned which)
{
    static pk_stats stats;
    uint64_t in_buckets = 0;
    assert_int_equal(pk_region_stats(&thinned_regions[which], &stats), PK_OK);
    for (unsigned b = 0; b < PK_STATS_BUCKETS; b++)
        in_buckets += stats.buckets[b];
    assert_int_equal(in_buckets, stats.count);
    assert_true(stats.untimed < stats.count);
    assert_int_equal(stats.untimed > 0, stats.sampling_error > 0);
    return stats.count;
}

static void check(const sums *all)
{
    pk_counts c = {.size = sizeof c};
    pk_stats stats;
    uint64_t calls = 0;
    for (unsigned i = 0; i < REGIONS; i++)
        calls += all->calls[i];
    assert_int_equal(pk_get_counts(&c), PK_OK);
    assert_int_equal(c.recorded + c.dropped, c.begun);
    assert_int_equal(c.begun, calls);
    assert_int_equal(c.unbalanced, all->unbalanced);
    assert_int_equal(c.stray_ends, 0);
    assert_true(c.untimed > 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(count_of(i), all->calls[i]);
    assert_int_equal(count_of(3), all->calls[3] + all->calls[4]);
    assert_int_equal(pk_region_stats(&thinned_regions[1], &stats), PK_OK);
    assert_int_equal(stats.bytes, all->bytes);
}

static void run(const pk_options *options)
{
    static sums each[THINNED_THREADS];
    pthread_t threads[THINNED_THREADS], changer;
    sums all = {{0}, 0, 0};
    memset(each, 0, sizeof each);
    assert_int_equal(pk_start(options), PK_OK);
    pki_thin_set(pki_region_id(&thinned_regions[2]),
                 8); /* though `change` may not get a processor */
    __atomic_store_n(&going, true, __ATOMIC_RELAXED);
    must(pthread_create(&changer, NULL, change, NULL) == 0);
    for (int i = 0; i < THINNED_THREADS; i++)
        must(pthread_create(&threads[i], NULL, succeed, &each[i]) == 0);
    for (int i = 0; i < THINNED_THREADS; i++) {
        must(pthread_join(threads[i], NULL) == 0);
        for (unsigned k = 0; k < REGIONS; k++)
            all.calls[k] += each[i].calls[k];
        all.unbalanced += each[i].unbalanced;
        all.bytes += each[i].bytes;
    }
    __atomic_store_n(&going, false, __ATOMIC_RELAXED);
    must(pthread_join(changer, NULL) == 0);
    assert_int_equal(pk_stop(), PK_OK);
    check(&all);
    pki_thin_reset();
}

static void counts_stay_exact(void **state)
{
    (void)state;
    run(pk_options(.backends = "none"));
}

static void in_small_rings_too(void **state)
{
    (void)state;
    run(pk_options(.backends = "none", .tuning = "ring_records=64,report_threads=1"));
}

static void without_a_cycle_counter(void **state)
{
    (void)state;
    run(pk_options(.backends = "none", .tuning = "clock=monotonic"));
}

static int run_thinned(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_stay_exact),
        cmocka_unit_test(in_small_rings_too),
        cmocka_unit_test(without_a_cycle_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- a server's hundred thousand threads, each there for a moment ---- */

/* Their memory is used again, what they did is kept. */

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

static uint64_t short_threads_run(spawner spawners[SPAWNERS], unsigned threads, unsigned regions,
                                  unsigned burst)
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
    assert_int_equal(pk_start(pk_options(.trace_path = path, .backends = "none",
                                         .tuning = kit_tuning("ring_records=256,report_threads=%u",
                                                              path != NULL))),
                     PK_OK);
    uint64_t most = short_threads_run(spawners, threads, regions, burst);
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
    serve_many(kit_scaled(20000), 1, 1, NULL);
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

static int run_short_threads(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(in_bursts),
        cmocka_unit_test(with_a_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* stress-rings NAME [ARGUMENT] */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } programs[] = {
        {"handlers", run_handlers},
        {"position", run_position},
        {"thinned", run_thinned},
        {"short_threads", run_short_threads},
    };
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argc - 1, argv + 1);
    return 2;
}
