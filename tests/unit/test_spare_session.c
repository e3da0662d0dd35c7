/* Who gets spare segments, when, and what a killed run leaves in them. */
#include "spares.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "out/salvage.h"

/* Enough for eight segments; elsewhere it may be set by PK_MEMORY_BYTES. */
#define MEMORY ((uint64_t)256 << 20)

static pk_region region = PK_REGION("work");

static void record(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&region);
        pk_region_end(&region);
    }
}

static void start(uint32_t ring, const char *collector)
{
    assert_int_equal(pk_start(pk_options(.backends = "none", .ring_records = ring,
                                         .collector = collector, .memory_bytes = MEMORY)),
                     PK_OK);
}

/* Half of a ring at most, in whatever time. */
static void the_usual_case_has_none(void **state)
{
    (void)state;
    start(0, "thread");
    for (int i = 0; i < 10; i++) {
        record(3000);
        assert_int_equal(pk_flush(), PK_OK);
    }
    assert_int_equal(the_spares()->count, 0);
    assert_int_equal(stop_and_count().recorded, 30000);
}

static void flush_held(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    record(pki_the_session.config.ring_records * 3 / 4);
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
    start(0, "thread");
    record(1);
    flush_held();
    assert_true(there_now() >= 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pk_flush(), PK_OK);
    assert_true(there_now() >= 4);
    pthread_mutex_lock(&pki_drain_lock);
    record(65536 * 3); /* with the collector held up */
    assert_int_equal(pki_own->dropped, 0);
    pthread_mutex_unlock(&pki_drain_lock);
    assert_int_equal(pk_flush(), PK_OK);
    record(65536 / 2);
    pk_counts counts = stop_and_count();
    assert_int_equal(counts.recorded, counts.begun);
}

static void who_asks_for_a_size_gets_that(void **state)
{
    (void)state;
    start(1024, "thread");
    record(1);
    for (int i = 0; i < 5; i++)
        flush_held();
    assert_int_equal(the_spares()->count, 0);
    pthread_mutex_lock(&pki_drain_lock);
    uint64_t before = pki_own->dropped;
    record(1024);
    assert_int_equal(pki_own->dropped - before, 1);
    pthread_mutex_unlock(&pki_drain_lock);
    stop_and_count();
}

/* Without a collector rounds are the program's. */
static void all_at_one_flush(void **state)
{
    (void)state;
    start(0, "none");
    record(40000);
    assert_int_equal(pk_flush(), PK_OK);
    assert_true(there_now() >= 4);
    record(65536 * 4);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(stop_and_count().dropped, 0);
}

/* As if a gigabyte of records had come since the last look. */
static uint32_t there_at_a_high_rate(const char *trace)
{
    assert_int_equal(pk_start(pk_options(.backends = "none", .collector = "none",
                                         .memory_bytes = MEMORY, .trace_path = trace)),
                     PK_OK);
    record(10);
    assert_int_equal(pk_flush(), PK_OK);
    pki_own->rated_bytes -= 1u << 30;
    pki_the_session.spares_rated -= 60000000;
    assert_int_equal(pk_flush(), PK_OK);
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
    start(0, "none");
    record(40000);
    assert_int_equal(pk_flush(), PK_OK);
    pki_the_session.spares_asked -= (uint64_t)61 * 1000000000;
    for (uint32_t left = there_now(); left > 0; left--) {
        assert_int_equal(there_now(), left);
        assert_int_equal(pk_flush(), PK_OK);
    }
    assert_int_equal(there_now(), 0);
    record(40000);
    assert_int_equal(pk_flush(), PK_OK);
    assert_true(there_now() >= 4);
    stop_and_count();
}

/* As if the head had stepped back since the last look. */
static void a_position_that_steps_back(void **state)
{
    static const char path[] = "spare-back.json";
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none", .collector = "none",
                                         .memory_bytes = MEMORY, .trace_path = path)),
                     PK_OK);
    record(10);
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
    start(0, "none");
    record(40000);
    assert_int_equal(pk_flush(), PK_OK);
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
    start(0, "none");
    record(40000);
    int fd = pki_the_session.arena->spans.file.fd;
    pki_the_session.arena->spans.file.fd = -1;
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(there_now(), 0);
    pki_the_session.arena->spans.file.fd = fd;
    record(40000);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(there_now(), 0); /* not asked again so soon */
    record(65536 + 10);
    assert_int_equal(pki_own->dropped, 11);
    pki_the_session.spares_retry = 0;
    assert_int_equal(pk_flush(), PK_OK);
    assert_true(there_now() >= 4);
    stop_and_count();
}

/* ---- a killed run ---- */

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
        record(30);
        let_go();
    }
    uint64_t before = pki_load(&pki_own->state);
    record(10);
    stats_of(&region);
    if (taken)
        let_go();
    pki_store_release(&pki_own->state, before + ((uint64_t)sizeof(pki_record) << 32));
    record(3);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_usual_case_has_none, stop_session),
        cmocka_unit_test_teardown(a_ring_found_half_full, stop_session),
        cmocka_unit_test_teardown(who_asks_for_a_size_gets_that, stop_session),
        cmocka_unit_test_teardown(all_at_one_flush, stop_session),
        cmocka_unit_test_teardown(a_rate_that_fills_a_ring_soon, stop_session),
        cmocka_unit_test_teardown(not_wanted_for_long, stop_session),
        cmocka_unit_test_teardown(a_disk_that_is_full, stop_session),
        cmocka_unit_test_teardown(a_position_that_steps_back, stop_session),
        cmocka_unit_test_teardown(a_file_that_cannot_be_punched, stop_session),
        cmocka_unit_test(cut_while_it_is_read),
        cmocka_unit_test(killed_in_segments),
        cmocka_unit_test(killed_behind_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
