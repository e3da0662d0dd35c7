/* What is kept of the last steps: whole steps, in bounded room, also where chunks come round, a
 * capture holds some, or there is no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "history/history.h"
#include "valgrind.h"

#define TID 77u
#define MIB ((uint64_t)1 << 20)

static pki_arena *arena;
static pki_history *history;
static pki_thread a_thread;
static uint64_t clock_now;

static void open_history(uint32_t steps, uint64_t arena_bytes, uint64_t bytes)
{
    pki_owned own;
    assert_true(pki_mem_file(&own, "history"));
    arena = pki_arena_create(&own, arena_bytes);
    assert_non_null(arena);
    history = pki_history_create(arena, steps, bytes);
    a_thread = (pki_thread){.tid = TID, .name_version = 1, .name = "worker"};
    clock_now = 1000;
}

static int close_history(void **state)
{
    (void)state;
    pki_history_destroy(history);
    pki_arena_destroy(arena);
    history = NULL;
    return 0;
}

/* Records: so many regions, numbered by their id, then the step's. */
static void one_step(uint64_t number, unsigned regions)
{
    pki_history_round(history);
    pki_history_thread(history, &a_thread);
    uint64_t start = clock_now;
    for (unsigned i = 0; i < regions; i++) {
        pki_record r = {clock_now++, 1, PKI_WHAT(9, PKI_RECORD_REGION, 1), number};
        pki_history_record(history, TID, &r, &r);
    }
    pki_record step[2] = {{start, clock_now - start, PKI_WHAT(2, PKI_RECORD_STEP, 0), 0},
                          {number, 32, 0, 0}};
    pki_history_record(history, TID, &step[0], &step[1]);
    pki_history_step_ended(history, &step[0], &step[1], 0);
}

static pki_history_view view_now(void)
{
    pki_history_view view;
    assert_true(pki_history_view_now(history, &view));
    return view;
}

/* How many regions of that step can be read from where it begins. */
static unsigned count_regions(uint64_t number)
{
    pki_history_view view = view_now();
    const pki_history_step *step = pki_history_find(&view, number);
    if (!step)
        return 0;
    pki_history_reader reader = pki_history_read(&view, step->at);
    unsigned found = 0;
    bool named = false;
    for (const pki_piece *piece; (piece = pki_history_next(&reader));) {
        uint32_t count = 0;
        named |= piece->kind == PKI_PIECE_THREAD && piece->id == TID;
        const pki_record *r = pki_piece_records(&reader, piece, &count);
        for (uint32_t i = 0; piece->kind == PKI_PIECE_RECORDS && i < count; i++)
            found += pki_what_type(r[i].what) == PKI_RECORD_REGION && r[i].extra == number;
        assert_true(piece->kind != PKI_PIECE_RECORDS || named);
    }
    return found;
}

static void last_steps_whole(void **state)
{
    (void)state;
    open_history(5, 8 * MIB, MIB);
    for (uint64_t n = 0; n < 1000; n++) {
        one_step(n, 10);
        for (uint64_t back = 0; back < 5 && back <= n; back++)
            assert_int_equal(count_regions(n - back), 10);
        pki_history_view view = view_now();
        const pki_history_step *gone = n < 9 ? NULL : pki_history_find(&view, n - 5);
        assert_true(!gone || gone->at < view.head->first);
    }
}

/* 1 MiB is 64 chunks of 16 KiB, 32 bytes a region: about 320 steps of 100. */
static void oldest_go_when_there_is_no_room(void **state)
{
    (void)state;
    open_history(60000, 8 * MIB, MIB);
    for (uint64_t n = 0; n < 5000; n++)
        one_step(n, 100);
    pki_history_view view = view_now();
    uint64_t kept = view.head->step_end - view.head->step_first;
    assert_in_range(kept, 290, 330);
    for (uint64_t n = 5000 - kept + 1; n < 5000; n++)
        assert_int_equal(count_regions(n), 100);
    assert_true(pki_history_end(history) - view.head->first <= MIB);
    assert_true(*arena->spans.used <= 8 * MIB);
}

static void one_step_larger_than_all(void **state)
{
    (void)state;
    open_history(4, 8 * MIB, MIB);
    one_step(0, 10);
    one_step(1, 100000);
    assert_in_range(count_regions(1), 25000, 32768); /* its end */
    for (uint64_t n = 2; n < 6; n++)
        one_step(n, 5);
    assert_int_equal(count_regions(3), 5);
}

/* Steps that are few and small take few chunks, however long it goes on. */
static void memory_stays_flat(void **state)
{
    (void)state;
    open_history(3, 64 * MIB, 32 * MIB);
    for (uint64_t n = 0; n < 100; n++)
        one_step(n, 5000);
    uint64_t used = *arena->spans.used;
    const uint64_t steps = is_slow() ? 500 : 2000; /* they come round every 210 */
    for (uint64_t n = 100; n < steps; n++)
        one_step(n, 5000);
    assert_int_equal(*arena->spans.used, used);
    assert_true(used < 4 * MIB);
}

static void pinned_parts_stay(void **state)
{
    (void)state;
    open_history(3, 8 * MIB, MIB);
    for (uint64_t n = 0; n < 10; n++)
        one_step(n, 100);
    pki_history_view before = view_now();
    uint64_t at = pki_history_find(&before, 8)->at;
    pki_history_pin(history, at);
    for (uint64_t n = 10; n < 2000; n++)
        one_step(n, 100);
    assert_true(before.head->lost > 0);
    unsigned found[2] = {0, 0};
    pki_history_reader reader = pki_history_read(&before, at);
    for (const pki_piece *piece; (piece = pki_history_next(&reader));) {
        uint32_t count = 0;
        const pki_record *r = pki_piece_records(&reader, piece, &count);
        for (uint32_t i = 0; piece->kind == PKI_PIECE_RECORDS && i < count; i++)
            if (pki_what_type(r[i].what) == PKI_RECORD_REGION &&
                (r[i].extra == 8 || r[i].extra == 9))
                found[r[i].extra - 8]++;
    }
    assert_true(found[0] == 100 && found[1] == 100);
    pki_history_pin(history, PKI_HISTORY_FREE);
    for (uint64_t n = 2000; n < 2010; n++)
        one_step(n, 100);
    assert_int_equal(count_regions(2009), 100);
    assert_int_equal(count_regions(2007), 100);
}

/* Half of what was asked for is there: that much is kept. */
static void less_room_than_asked(void **state)
{
    (void)state;
    open_history(60000, 5 * MIB, 64 * MIB);
    assert_non_null(history);
    for (uint64_t n = 0; n < 3000; n++)
        one_step(n, 100);
    assert_int_equal(count_regions(2999), 100);
    pki_history_view view = view_now();
    assert_true(view.head->step_end - view.head->step_first > 300);
}

static void no_room_at_all(void **state)
{
    (void)state;
    open_history(1000, 4 * MIB, (uint64_t)1 << 30);
    assert_null(history);
    pki_history_round(history); /* all of it takes NULL */
    pki_history_thread(history, &a_thread);
    pki_history_record(history, 1, NULL, NULL);
    pki_history_activity(history, NULL, NULL);
    pki_history_measures(history, 1, true);
    assert_int_equal(pki_history_end(history), 0);
}

/* ---- activities ---- */

static void same_activity(const pki_activity *a, const pki_activity *b)
{
    assert_true(a->kind == b->kind && a->start == b->start && a->end == b->end);
    assert_true(a->device == b->device && a->stream == b->stream && a->bytes == b->bytes);
    assert_true(a->correlation == b->correlation && a->grid[2] == b->grid[2]);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->arg_count, b->arg_count);
    for (size_t i = 0; i < a->arg_count; i++) {
        assert_string_equal(a->args[i].key, b->args[i].key);
        assert_int_equal(a->args[i].number, b->args[i].number);
        assert_true(!a->args[i].text == !b->args[i].text);
        if (a->args[i].text)
            assert_string_equal(a->args[i].text, b->args[i].text);
    }
}

static void activities_come_back(void **state)
{
    (void)state;
    const pki_operation o = {.comm = "world",
                             .comm_length = 5,
                             .library = "NCCL",
                             .library_length = 4,
                             .rank = 1,
                             .size = 8,
                             .sequence = 99};
    const pki_activity_arg args[] = {{"text", "value", 0}, {"number", NULL, -7}};
    const pki_activity in = {.kind = PKI_ACTIVITY_KERNEL,
                             .name = "gemm",
                             .name_length = 4,
                             .start = 5,
                             .end = 9,
                             .device = 1,
                             .stream = 7,
                             .bytes = 12,
                             .correlation = 3,
                             .grid = {1, 2, 3},
                             .operation = &o,
                             .args = args,
                             .arg_count = 2,
                             .track = 1};
    const pki_track track = {123, 7, "gpu 1", "stream 7", 4};
    open_history(3, 8 * MIB, MIB);
    pki_history_activity(history, &in, &track);
    pki_history_view view = view_now();
    pki_history_reader reader = pki_history_read(&view, 0);
    const pki_piece *named = pki_history_next(&reader), *piece = pki_history_next(&reader);
    pki_track back;
    pki_decoded d;
    assert_true(named && named->kind == PKI_PIECE_TRACK && pki_piece_track(named, &back));
    assert_true(back.pid == 123 && back.tid == 7 && back.sort == 4);
    assert_string_equal(back.process, "gpu 1");
    assert_string_equal(back.thread, "stream 7");
    assert_true(piece && piece->kind == PKI_PIECE_ACTIVITY && pki_piece_activity(piece, &d));
    same_activity(&d.activity, &in);
    assert_string_equal(d.activity.operation->comm, "world");
    assert_int_equal(d.activity.operation->sequence, 99);
    assert_null(pki_history_next(&reader));
}

/* Texts longer than any are cut; the piece is sound. */
static void long_texts_are_cut(void **state)
{
    (void)state;
    static char longest[5000];
    pki_activity_arg args[PKI_PIECE_ARGS + 3];
    char out[PKI_PIECE_BYTES] __attribute__((aligned(16)));
    pki_decoded d;
    memset(longest, 'x', sizeof longest - 1);
    for (size_t i = 0; i < PKI_PIECE_ARGS + 3; i++)
        args[i] = (pki_activity_arg){"key", longest, 1};
    const pki_activity in = {.name = longest,
                             .name_length = sizeof longest - 1,
                             .args = args,
                             .arg_count = PKI_PIECE_ARGS + 3};
    size_t n = pki_piece_put_activity(out, &in);
    assert_true(n <= sizeof out && n % 16 == 0);
    assert_true(pki_piece_activity((const pki_piece *)(const void *)out, &d));
    assert_int_equal(strlen(d.activity.name), d.activity.name_length);
    assert_int_equal(d.activity.arg_count, PKI_PIECE_ARGS);
}

#define kept(test) cmocka_unit_test_setup_teardown(test, NULL, close_history)

int main(void)
{
    const struct CMUnitTest ring[] = {
        kept(last_steps_whole),
        kept(oldest_go_when_there_is_no_room),
        kept(one_step_larger_than_all),
        kept(memory_stays_flat),
        kept(pinned_parts_stay),
        kept(less_room_than_asked),
        kept(no_room_at_all),
        kept(activities_come_back),
        cmocka_unit_test(long_texts_are_cut),
    };
    return cmocka_run_group_tests(ring, NULL, NULL);
}
