/* Spare segments: how a thread goes on in them, and who gets them. */
#include "spares.h"
#include "../kit/rounds.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/registry.h"
#include "out/salvage.h"

/* ---- a ring that is full, and a collector that is held up ---- */

/* Its owner goes on in spare segments, and comes back. */

enum { SEGMENTS = 3 };

static pk_region outer = PK_REGION("outer"), middle = PK_REGION("middle"),
                 inner = PK_REGION("inner");
static pk_counter counter = PK_COUNTER("level", "");

static int start_held(void **state)
{
    (void)state;
    return start_with_spares(NULL, SEGMENTS);
}

static void record(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&inner);
        pk_region_end(&inner);
    }
}

static void a_full_ring_goes_on(void **state)
{
    enum { ALL = HOLDS * (1 + SEGMENTS) };
    (void)state;
    pk_region_begin(&outer);
    record(ALL + 50);
    pk_region_end(&outer);
    assert_int_equal(count_free(), 0);
    uint64_t inner_sum = stats_of(&inner)->sum;
    assert_true(the_stats.count == ALL + 50 && the_stats.self == inner_sum);
    uint64_t outer_sum = stats_of(&outer)->sum;
    expect_sum(outer_sum, the_stats.self + inner_sum, 3);
    pk_counts counts = stop_now();
    assert_true(counts.begun == ALL + 51 && counts.recorded == ALL && counts.dropped == 51);
}

/* As in one ring that is large enough. */
static void nothing_is_dropped_meanwhile(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        pk_region_begin(&outer);
        record(i * 37 % 100);
        pk_region_begin(&middle);
        record(i * 11 % 40);
        pk_counter_set(&counter, i);
        pk_region_end(&middle);
        pk_region_end(&outer);
        let_go();
    }
    assert_int_equal(count_of(&inner), 14850 + 5830);
    pk_counts counts = stop_now();
    assert_true(counts.dropped == 0 && counts.points_dropped == 0 && counts.points == 301);
}

static bool is_zero(const pki_spare *s)
{
    const char *at = pki_arena_at(pki_the_session.arena, (uint64_t)s->segment * PKI_PAGE);
    for (size_t i = 0; i < RING * sizeof(pki_record); i++)
        if (at[i])
            return false;
    return true;
}

static void the_ring_is_taken_again(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        record(3 * HOLDS);
        assert_true(pki_is_in_segment(pki_own));
        let_go();
        record(HOLDS); /* past where it looks */
        assert_false(pki_is_in_segment(pki_own));
        let_go();
        assert_int_equal(count_free(), SEGMENTS);
        for (int k = 0; k < SEGMENTS; k++)
            assert_true(is_zero(&the_spares()->all[k]));
    }
    assert_int_equal(stop_now().dropped, 0);
}

/* What there is no room for is dropped as without segments, wherever the thread is then. */
static void drops_are_counted(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    for (unsigned i = 0; i < 200; i++) {
        pk_region_begin(&middle);
        record(i * 37 % 400);
        if (i % 3 == 0)
            let_go();
        record(i * 11 % 140);
        if (i % 7 == 0)
            pk_step(1);
        pk_region_end(&middle);
        if (i % 5 == 0)
            let_go();
    }
    pk_region_end(&outer);
    uint64_t inner_sum = stats_of(&inner)->sum;
    assert_int_equal(the_stats.self, inner_sum);
    uint64_t middle_sum = stats_of(&middle)->sum;
    expect_sum(middle_sum, the_stats.self + inner_sum, 3);
    uint64_t outer_sum = stats_of(&outer)->sum;
    expect_sum(outer_sum, the_stats.self + middle_sum, 3);
    pk_counts counts = stop_now();
    assert_true(counts.dropped > 1000 && counts.recorded > 10000);
}

/* With work a region takes two slots, which are never in two pieces of memory. */
static void two_slots_at_a_time(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        record(i % 5);
        for (unsigned k = 0; k < 20 + i % 50; k++) {
            pk_region_begin(&middle);
            pk_region_add(&middle, 1, 2);
            pk_region_end(&middle);
        }
        let_go();
    }
    uint64_t n = stats_of(&middle)->count;
    assert_true(the_stats.bytes == n && the_stats.flops == 2 * n);
    assert_int_equal(stop_now().dropped, 0);
}

/* How far the thread has come, as others see it, at each record. */
static void positions_go_on(void **state)
{
    pki_thread *t = pki_own;
    uint64_t before = pki_thread_position(t).bytes;
    (void)state;
    for (unsigned i = 1; i <= 20 * RING; i++) {
        record(1);
        assert_int_equal(pki_thread_position(t).bytes - before, i * sizeof(pki_record));
        assert_int_equal(pki_cursor_bytes_between(t, t->released, pki_thread_head(t)),
                         ((i - 1) % 150 + 1) * sizeof(pki_record));
        if (i % 150 == 0)
            let_go();
    }
    assert_int_equal(stop_now().dropped, 0);
}

static void regions_open_at_the_end(void **state)
{
    (void)state;
    pk_region_begin(&outer);
    pk_region_begin(&middle);
    record(2 * HOLDS + 10);
    assert_true(pki_is_in_segment(pki_own));
    pk_counts counts = stop_now();
    assert_true(counts.begun == 2 * HOLDS + 12 && counts.recorded == counts.begun);
    pk_region_end(&middle);
    pk_region_end(&outer);
    assert_int_equal(count_of(&inner), 2 * HOLDS + 10);
}

static void *record_much(void *times)
{
    record(*(unsigned *)times);
    return pki_own;
}

/* Who takes the block of a thread that has ended begins in its ring. */
static void a_thread_that_ends_in_a_segment(void **state)
{
    unsigned many = 2 * HOLDS + 5;
    pthread_t thread;
    void *block, *again;
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(pthread_create(&thread, NULL, record_much, &many), 0);
        assert_int_equal(pthread_join(thread, &block), 0);
        assert_true(pki_is_in_segment(block));
        let_go();
        assert_false(pki_is_in_segment(block));
        let_go(); /* the segment itself, now that another turn has begun */
        assert_int_equal(pthread_create(&thread, NULL, record_much, &many), 0);
        assert_int_equal(pthread_join(thread, &again), 0);
        assert_ptr_equal(block, again);
        let_go();
        let_go();
    }
    assert_int_equal(count_of(&inner), 20 * many);
    assert_int_equal(stop_now().dropped, 0);
}

/* Two threads' rings share what there is. */
static void threads_share_them(void **state)
{
    unsigned many = 10 * HOLDS;
    pthread_t thread;
    void *block;
    (void)state;
    record(2 * HOLDS);
    assert_int_equal(pthread_create(&thread, NULL, record_much, &many), 0);
    assert_int_equal(pthread_join(thread, &block), 0);
    assert_int_equal(count_free(), 0);
    assert_int_equal(((pki_thread *)block)->dropped, many - SEGMENTS * HOLDS);
    record(HOLDS); /* none is left for this one */
    assert_int_equal(pki_own->dropped, HOLDS);
    let_go();
    let_go();
    record(SEGMENTS * HOLDS);
    assert_int_equal(pki_own->dropped, HOLDS);
    assert_int_equal(stop_now().recorded, 2 * HOLDS + 2 * SEGMENTS * HOLDS);
}

/* A handler has gone on into a segment, or back, and the store of whom it interrupted undoes where
 * it stood; but the memory is the new one's. */
static void what_a_handler_has_left(void **state)
{
    pki_thread *t = pki_own;
    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        record(i % HOLDS);
        uint64_t before = pki_load(&t->state);
        record(HOLDS + i);
        if (i % 3 == 1)
            stats_of(&inner); /* folded meanwhile */
        if (i % 3 == 2)
            let_go();
        pki_store_release(&t->state, before);
        record(100);
        let_go();
        record(10);
        let_go();
    }
    let_go();
    record(HOLDS);
    let_go();
    record(2 * HOLDS); /* goes on as if nothing had been */
    uint64_t dropped = t->dropped;
    assert_true(count_of(&inner) > 50 * 60);
    pk_counts counts = stop_now();
    assert_int_equal(counts.dropped, dropped);
}

/* The store of whom a handler has taken into a segment may be of the ring's last slot. */
static void set_behind_the_end(pki_thread *t)
{
    assert_true(pki_is_in_segment(t));
    pki_store_release(&t->state, (uint64_t)t->ring_bytes << 32 | (uint32_t)pki_load(&t->state));
}

static void a_state_behind_a_segments_end(void **state)
{
    pki_thread *t = pki_own;
    (void)state;
    record(HOLDS + 5);
    set_behind_the_end(t);
    uint64_t head = pki_thread_head(t);
    assert_int_equal(pki_cursor_offset(head), HOLDS * sizeof(pki_record));
    assert_int_equal(pki_cursor_turn(head), t->turn);
    assert_int_equal(count_of(&inner), HOLDS + 5);
    record(20);
    assert_int_equal(pki_cursor_turn(pki_thread_head(t)), pki_cursor_turn(head) + 1);
    let_go();
    record(HOLDS);
    let_go();
    assert_int_equal(count_of(&inner), 2 * HOLDS + 25);
    assert_int_equal(stop_now().dropped, 0);
}

static void *end_behind_the_end(void *unused)
{
    record(HOLDS + 5);
    set_behind_the_end(pki_own);
    (void)unused;
    return pki_own;
}

static void a_thread_that_ends_behind_a_segments_end(void **state)
{
    pthread_t thread;
    void *block;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, end_behind_the_end, NULL), 0);
    assert_int_equal(pthread_join(thread, &block), 0);
    let_go();
    assert_false(pki_is_in_segment(block));
    let_go();
    assert_int_equal(count_free(), SEGMENTS);
    assert_int_equal(count_of(&inner), HOLDS + 5);
    assert_int_equal(stop_now().dropped, 0);
}

/* Readers have passed the place of a lost call: records there have been undone. */
static void a_loss_behind_readers(void **state)
{
    pki_thread *t = pki_own;
    (void)state;
    pk_region_begin(&outer);
    record((1 + SEGMENTS) * HOLDS);
    assert_int_equal(count_of(&inner), (1 + SEGMENTS) * HOLDS);
    assert_int_equal(pki_cursor_offset(t->folded), HOLDS * sizeof(pki_record));
    pk_region_begin(&middle);
    pk_region_add(&middle, 1, 2);
    pki_store_release(&t->state, pki_load(&t->state) - ((uint64_t)sizeof(pki_record) << 32));
    pk_region_end(&middle); /* has no room for two slots */
    assert_int_equal(t->dropped, 1);
    assert_true(t->losses_made != t->losses_folded);
    assert_int_equal(count_of(&middle), 1);
    assert_int_equal(t->losses_made, t->losses_folded);
    let_go();
    pk_region_end(&outer);
    assert_int_equal(stop_now().dropped, 1);
}

/* -- where they come from -- */

static void memory_that_is_refused(void **state)
{
    pki_spans *spans = &pki_the_session.arena->spans;
    (void)state;
    int fd = spans->file.fd;
    spans->file.fd = -1;
    assert_false(make_one());
    spans->file.fd = fd;
    uint64_t half = spans->bytes / 2;
    while (pki_load(spans->used) + (1 << 20) < half)
        assert_non_null(pki_spans_claim(spans, 1 << 20));
    while (pki_load(spans->used) < half)
        assert_non_null(pki_spans_claim(spans, PKI_PAGE));
    assert_false(make_one()); /* what is left is for what has no other place */
    record((SEGMENTS + 1) * HOLDS + 9);
    assert_int_equal(stop_now().dropped, 9);
}

static void given_back_and_had_again(void **state)
{
    const uint32_t bytes = RING * sizeof(pki_record);
    pki_arena *arena = pki_the_session.arena;
    (void)state;
    for (uint32_t left = SEGMENTS; left > 0; left--) {
        assert_true(pki_spare_unmake(the_spares(), arena, bytes));
        assert_int_equal(pki_spares_there(the_spares()), left - 1);
    }
    assert_false(pki_spare_unmake(the_spares(), arena, bytes));
    record(HOLDS + 1);
    assert_int_equal(pki_own->dropped, 1);
    let_go();
    uint64_t used = pki_load(arena->spans.used);
    for (int i = 0; i < SEGMENTS; i++)
        assert_true(make_one());
    assert_int_equal(pki_load(arena->spans.used), used); /* the same ones */
    record(SEGMENTS * HOLDS);
    int fd = arena->spans.file.fd;
    let_go();
    let_go();
    record(HOLDS);
    let_go();
    assert_true(pki_spare_unmake(the_spares(), arena, bytes));
    arena->spans.file.fd = -1;
    assert_false(make_one()); /* the disk has become full meanwhile */
    arena->spans.file.fd = fd;
    assert_int_equal(pki_spares_there(the_spares()), SEGMENTS - 1);
    assert_true(make_one());
    assert_int_equal(stop_now().dropped, 1);
}

#define held(test) cmocka_unit_test_setup_teardown(test, start_held, stop_held)

static const struct CMUnitTest spares[] = {
    held(a_full_ring_goes_on),
    held(nothing_is_dropped_meanwhile),
    held(the_ring_is_taken_again),
    held(drops_are_counted),
    held(two_slots_at_a_time),
    held(positions_go_on),
    held(regions_open_at_the_end),
    held(a_thread_that_ends_in_a_segment),
    held(threads_share_them),
    held(what_a_handler_has_left),
    held(memory_that_is_refused),
    held(given_back_and_had_again),
    held(a_loss_behind_readers),
    held(a_state_behind_a_segments_end),
    held(a_thread_that_ends_behind_a_segments_end),
};

/* ---- who gets spare segments, when, and what a killed run leaves in them ---- */

/* Enough for eight segments; elsewhere it may be set by PK_MEMORY_BYTES. */
#define MEMORY ((uint64_t)256 << 20)

static pk_region region = PK_REGION("work");

static void spare_session_record(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&region);
        pk_region_end(&region);
    }
}

static void start(uint32_t ring)
{
    assert_int_equal(pk_start(pk_options(.backends = "none", .memory_bytes = MEMORY,
                                         .tuning = kit_tuning("ring_records=%u", ring))),
                     PK_OK);
}

/* Rounds are those of pk_flush. */
static void start_alone(const char *trace)
{
    assert_int_equal(
        pk_start(pk_options(.backends = "none", .memory_bytes = MEMORY, .trace_path = trace)),
        PK_OK);
    kit_end_collector();
}

static void flush_times(int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(pk_flush(), PK_OK);
}

/* Half of a ring at most, in whatever time. */
static void the_usual_case_has_none(void **state)
{
    (void)state;
    start(0);
    for (int i = 0; i < 10; i++) {
        spare_session_record(3000);
        assert_int_equal(pk_flush(), PK_OK);
    }
    assert_int_equal(the_spares()->count, 0);
    assert_int_equal(stop_and_count().recorded, 30000);
}

static void flush_held(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    spare_session_record(pki_the_session.config.ring_records * 3 / 4);
    pthread_mutex_unlock(&pki_drain_lock);
    assert_int_equal(pk_flush(), PK_OK);
}

static uint32_t there_now(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    uint32_t there = pki_spares_there(the_spares());
    pthread_mutex_unlock(&pki_drain_lock);
    return there;
}

/* One in each round. */
static void a_ring_found_half_full(void **state)
{
    (void)state;
    start(0);
    spare_session_record(1);
    flush_held();
    assert_true(there_now() >= 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pk_flush(), PK_OK);
    assert_true(there_now() >= 4);
    pthread_mutex_lock(&pki_drain_lock);
    spare_session_record(65536 * 3); /* with the collector held up */
    assert_int_equal(pki_own->dropped, 0);
    pthread_mutex_unlock(&pki_drain_lock);
    assert_int_equal(pk_flush(), PK_OK);
    spare_session_record(65536 / 2);
    pk_counts counts = stop_and_count();
    assert_int_equal(counts.recorded, counts.begun);
}

static void who_asks_for_a_size_gets_that(void **state)
{
    (void)state;
    start(1024);
    spare_session_record(1);
    for (int i = 0; i < 5; i++)
        flush_held();
    assert_int_equal(the_spares()->count, 0);
    pthread_mutex_lock(&pki_drain_lock);
    uint64_t before = pki_own->dropped;
    spare_session_record(1024);
    assert_int_equal(pki_own->dropped - before, 1);
    pthread_mutex_unlock(&pki_drain_lock);
    stop_and_count();
}

/* However few rounds see it. */
static void as_many_as_were_wanted_once(void **state)
{
    (void)state;
    start_alone(NULL);
    spare_session_record(40000);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(there_now(), 1);
    flush_times(10);
    assert_true(there_now() >= 4);
    spare_session_record(65536 * 4);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(stop_and_count().dropped, 0);
}

/* As if a gigabyte of records had come since the last look. */
static uint32_t there_at_a_high_rate(const char *trace)
{
    start_alone(trace);
    spare_session_record(10);
    assert_int_equal(pk_flush(), PK_OK);
    pki_own->rated_bytes -= 1u << 30;
    pki_the_session.spares_rated -= 60000000;
    flush_times(40);
    uint32_t there = there_now();
    stop_and_count();
    return there;
}

static void a_rate_that_fills_a_ring_soon(void **state)
{
    static const char path[] = "spare-rate.json";
    (void)state;
    assert_in_range(there_at_a_high_rate(path), 5, 32); /* for a second look within 25 s */
    unlink(path);
    assert_int_equal(there_at_a_high_rate(NULL), 0); /* nobody writes to a disk */
}

static void not_wanted_for_long(void **state)
{
    (void)state;
    start_alone(NULL);
    spare_session_record(40000);
    flush_times(10);
    pki_the_session.spares_asked -= (uint64_t)61 * 1000000000;
    for (uint32_t left = there_now(); left > 0; left--) {
        assert_int_equal(there_now(), left);
        assert_int_equal(pk_flush(), PK_OK);
    }
    assert_int_equal(there_now(), 0);
    spare_session_record(40000);
    flush_times(10);
    assert_true(there_now() >= 4);
    stop_and_count();
}

/* As if the head had stepped back since the last look. */
static void a_position_that_steps_back(void **state)
{
    static const char path[] = "spare-back.json";
    (void)state;
    start_alone(path);
    spare_session_record(10);
    assert_int_equal(pk_flush(), PK_OK);
    pki_own->rated_bytes += 1u << 20;
    pki_the_session.spares_rated -= 60000000;
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(there_now(), 0);
    stop_and_count();
    unlink(path);
}

static void a_file_that_cannot_be_punched(void **state)
{
    (void)state;
    start_alone(NULL);
    spare_session_record(40000);
    flush_times(10);
    uint32_t there = there_now();
    int fd = pki_the_session.arena->spans.file.fd;
    pki_the_session.arena->spans.file.fd = -1;
    pki_the_session.spares_asked -= (uint64_t)61 * 1000000000;
    assert_int_equal(pk_flush(), PK_OK);
    pki_the_session.arena->spans.file.fd = fd;
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(there_now(), there); /* not asked again so soon */
    pki_the_session.spares_retry = 0;
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(there_now(), there - 1);
    stop_and_count();
}

static void a_disk_that_is_full(void **state)
{
    (void)state;
    start_alone(NULL);
    spare_session_record(40000);
    int fd = pki_the_session.arena->spans.file.fd;
    pki_the_session.arena->spans.file.fd = -1;
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(there_now(), 0);
    pki_the_session.arena->spans.file.fd = fd;
    spare_session_record(40000);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(there_now(), 0); /* not asked again so soon */
    spare_session_record(65536 + 10);
    assert_int_equal(pki_own->dropped, 11);
    pki_the_session.spares_retry = 0;
    flush_times(10);
    assert_true(there_now() >= 4);
    stop_and_count();
}

/* -- a killed run -- */

static void number(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        pk_region_begin(&region);
        if (i % 3)
            pk_region_add(&region, i, 0);
        pk_region_end(&region);
    }
}

/* So many are written, and so many more are not when it is killed; which may have been folded. */
static void die(const char *path, unsigned written, unsigned more, bool folded)
{
    if (start_with_spares(path, 6))
        _exit(1);
    number(1, written / 2);
    let_go();
    number(written / 2, written + 1);
    let_go();
    number(written + 1, written + more + 1);
    if (folded)
        stats_of(&region);
    kill(getpid(), SIGKILL);
}

typedef struct seen {
    unsigned first, last, count;
    bool in_order;
} seen;

static bool look(void *user, const char *event, size_t bytes)
{
    seen *s = user;
    char text[PKI_EVENT_BYTES + 1];
    snprintf(text, sizeof text, "%.*s", (int)bytes, event);
    const char *number = strstr(text, "\"bytes\":");
    s->count += strstr(text, "\"work\"") != NULL;
    if (!number)
        return true;
    unsigned n = (unsigned)strtoul(number + 8, NULL, 10);
    s->in_order &= !s->last || n == s->last + 1 + (n % 3 == 1);
    s->first = s->first ? s->first : n;
    s->last = n;
    return true;
}

static void recover_either(unsigned written, unsigned more, bool folded)
{
    static const char path[] = "spare-killed.json", arena[] = "spare-killed.json.arena";
    int status;
    pki_salvage s;
    seen all = {.in_order = true};
    unlink(path);
    unlink(arena);
    pid_t child = fork();
    if (child == 0)
        die(path, written, more, folded);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(pki_salvage_open(&s, arena));
    assert_true(pki_salvage_events(&s, look, &all));
    pki_salvage_close(&s);
    assert_int_equal(all.count, more);
    assert_true(all.in_order);
    assert_in_range(all.first, written + 1, written + 2);
    assert_in_range(all.last, written + more - 1, written + more);
    unlink(path);
    unlink(arena);
}

static void recover(unsigned written, unsigned more)
{
    recover_either(written, more, false);
    recover_either(written, more, true);
}

/* By whoever clears such files, while it is being read: what was read stays. */
static void cut_while_it_is_read(void **state)
{
    static const char path[] = "spare-cut.json", arena[] = "spare-cut.json.arena";
    int status;
    pki_salvage s;
    seen all = {.in_order = true};
    (void)state;
    pid_t child = fork();
    if (child == 0)
        die(path, 10, 30, false);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(pki_salvage_open(&s, arena));
    assert_int_equal(truncate(arena, 0), 0);
    assert_true(pki_salvage_events(&s, look, &all));
    pki_salvage_close(&s);
    assert_int_equal(all.count, 30);
    assert_false(pki_salvage_open(&s, arena));
    unlink(path);
    unlink(arena);
}

static void killed_in_segments(void **state)
{
    (void)state;
    recover(10, 30);
    recover(10, 200);
    recover(60, 41);
    recover(130, 150);
    recover(150, 20);
    recover(200, 200);
}

/* In a ring that its owner has come round in: a handler has been undone that had been folded, or
 * taken. What a killed run leaves there is what had been folded, and nothing of the round before.
 */
static void die_undone(const char *path, bool taken)
{
    if (start_with_spares(path, 0))
        _exit(1);
    for (int i = 0; i < 5; i++) {
        spare_session_record(30);
        let_go();
    }
    uint64_t before = pki_load(&pki_own->state);
    spare_session_record(10);
    stats_of(&region);
    if (taken)
        let_go();
    pki_store_release(&pki_own->state, before + ((uint64_t)sizeof(pki_record) << 32));
    spare_session_record(3);
    kill(getpid(), SIGKILL);
}

static void recover_undone(bool taken, unsigned left)
{
    static const char path[] = "spare-undone.json", arena[] = "spare-undone.json.arena";
    int status;
    pki_salvage s;
    seen all = {.in_order = true};
    pid_t child = fork();
    if (child == 0)
        die_undone(path, taken);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(pki_salvage_open(&s, arena));
    assert_true(pki_salvage_events(&s, look, &all));
    pki_salvage_close(&s);
    assert_int_equal(all.count, left);
    unlink(path);
    unlink(arena);
}

static void killed_behind_readers(void **state)
{
    (void)state;
    recover_undone(true, 0);
    recover_undone(false, 10);
}

static const struct CMUnitTest spare_session_tests[] = {
    cmocka_unit_test_teardown(the_usual_case_has_none, stop_session),
    cmocka_unit_test_teardown(a_ring_found_half_full, stop_session),
    cmocka_unit_test_teardown(who_asks_for_a_size_gets_that, stop_session),
    cmocka_unit_test_teardown(as_many_as_were_wanted_once, stop_session),
    cmocka_unit_test_teardown(a_rate_that_fills_a_ring_soon, stop_session),
    cmocka_unit_test_teardown(not_wanted_for_long, stop_session),
    cmocka_unit_test_teardown(a_disk_that_is_full, stop_session),
    cmocka_unit_test_teardown(a_position_that_steps_back, stop_session),
    cmocka_unit_test_teardown(a_file_that_cannot_be_punched, stop_session),
    cmocka_unit_test(cut_while_it_is_read),
    cmocka_unit_test(killed_in_segments),
    cmocka_unit_test(killed_behind_readers),
};

int main(void)
{
    int failed = both_clocks(spares);
    failed += cmocka_run_group_tests(spare_session_tests, NULL, NULL);
    return failed;
}
