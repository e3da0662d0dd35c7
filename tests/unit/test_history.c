/* What is kept of the last steps. */
#include "folder.h"
#include "session.h"
#include "valgrind.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/memory.h"
#include "history/history.h"
#include "history/salvage.h"

/* ---- what is kept of the last steps ---- */

/* Whole steps, in bounded room, also where chunks come round, a capture holds some, or there is no
 * room. */

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

/* -- activities -- */

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

static const struct CMUnitTest ring[] = {
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

/* ---- the history of a session ---- */

/* Where its arena lies, and what a killed run has left of it. */

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");

typedef struct shared_with_victim {
    uint64_t steps; /* whose pk_step has returned, and that have been drained */
} shared_with_victim;

static shared_with_victim *shared;

static void run_until_killed(void)
{
    if (pk_start(pk_options(.history_steps = 8, .backends = "none",
                            .tuning = kit_tuning("clock=%s", the_clock))))
        _exit(1);
    for (uint64_t n = 0;; n++) {
        for (int i = 0; i < 20; i++) {
            pk_region_begin(&work);
            pk_region_end(&work);
        }
        pk_step(1);
        usleep(20); /* so that no ring becomes full, however busy the machine */
        __atomic_store_n(&shared->steps, n + 1, __ATOMIC_RELEASE);
    }
}

typedef struct seen {
    uint64_t first, next, steps, work;
} seen;

/* Steps come once each, in order. */
static bool look(void *user, const char *event, size_t n)
{
    seen *s = user;
    char text[PKI_EVENT_BYTES + 1];
    memcpy(text, event, n);
    text[n] = 0;
    const char *step = strstr(text, "ProfilerStep#");
    s->work += strstr(text, "\"work\"") != NULL;
    if (!step)
        return true;
    uint64_t number = strtoull(step + sizeof "ProfilerStep#" - 1, NULL, 10);
    if (s->steps++ == 0)
        s->first = number;
    else
        assert_int_equal(number, s->next);
    s->next = number + 1;
    return true;
}

static seen salvage_file(const char *path)
{
    pki_salvage s;
    seen all = {0};
    if (!pki_salvage_open(&s, path))
        fail_msg("%s: %s", path, s.why);
    assert_true(pki_history_salvage(&s, look, &all));
    assert_true(pki_salvage_events(&s, look, &all));
    pki_salvage_close(&s);
    return all;
}

/* What is in the history and what was still in the rings are the last steps, without a gap. */
static void a_killed_run_has_its_last_steps(void **state)
{
    (void)state;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < 10; i += is_slow() ? 3 : 1) {
        shared->steps = 0;
        pid_t victim = fork();
        if (victim == 0)
            run_until_killed();
        while (__atomic_load_n(&shared->steps, __ATOMIC_ACQUIRE) < 50 + 37 * i)
            usleep(100);
        kill(victim, SIGKILL);
        assert_int_equal(waitpid(victim, NULL, 0), victim);
        seen all = salvage_file("run-0-history.json.arena");
        assert_true(all.steps >= 8);
        assert_in_range(all.next, shared->steps, shared->steps + 1);
        assert_true(all.work >= 20 * (8 - 1));
        unlink("run-0-history.json.arena");
    }
    munmap(shared, 4096);
}

static void a_clean_stop_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.history_steps = 8, .backends = "none")), PK_OK);
    assert_true(exists("run-0-history.json.arena"));
    pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 0);
}

/* The folder cannot be written to: the program goes on, its history is in memory. */
static void nowhere_to_lie(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip(); /* root writes anywhere */
    assert_int_equal(chmod(".", 0500), 0);
    assert_int_equal(pk_start(pk_options(.history_steps = 8, .backends = "none")), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(chmod(".", 0700), 0);
}

/* Another process has the name: this one takes one with its pid. */
static void two_without_ranks(void **state)
{
    (void)state;
    int ready[2], go[2];
    char byte = 0;
    assert_true(pipe(ready) == 0 && pipe(go) == 0);
    pid_t other = fork();
    if (other == 0) {
        byte = pk_start(pk_options(.history_steps = 8, .backends = "none")) != PK_OK;
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(1);
        _exit(pk_stop());
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 0);
    assert_int_equal(pk_start(pk_options(.history_steps = 8, .backends = "none")), PK_OK);
    assert_int_equal(count_files(), 2);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(waitpid(other, NULL, 0), other);
    assert_int_equal(count_files(), 0);
}

/* The child is off, and may have a history of its own. */
static void forks(void **state)
{
    (void)state;
    if (forked_child_may_not_record())
        skip();
    assert_int_equal(pk_start(pk_options(.history_steps = 8, .backends = "none")), PK_OK);
    pk_step(1);
    pid_t child = fork();
    if (child == 0) {
        pk_status status = pk_start(pk_options(.history_steps = 8, .backends = "none"));
        pk_step(1);
        _exit(status != PK_OK || pk_stop() != PK_OK);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pk_stop(), PK_OK);
}

static const struct CMUnitTest sessions[] = {
    in_folder(a_killed_run_has_its_last_steps),
    in_folder(a_clean_stop_leaves_nothing),
    in_folder(nowhere_to_lie),
    in_folder(two_without_ranks),
    in_folder(forks),
};

int main(void)
{
    int failed = cmocka_run_group_tests(ring, NULL, NULL);
    failed += both_clocks(sessions);
    return failed;
}
