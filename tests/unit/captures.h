/* tests/unit/captures.h - a session that makes steps, and what a capture of some of them has. */
#ifndef TESTS_CAPTURES_H
#define TESTS_CAPTURES_H

#include "document.h"
#include "session.h"
#include "valgrind.h"

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work"), inner = PK_REGION_OF(PK_DATA, "inner");

static inline void one_step(unsigned us)
{
    pk_region_begin(&work);
    for (int i = 0; i < 3; i++) {
        pk_region_begin(&inner);
        pk_region_end(&inner);
    }
    if (us)
        usleep(us);
    pk_region_end(&work);
    pk_step(32);
}

/* A flush is a round of the collector, so that no ring becomes full on a busy machine. */
static inline void steps(unsigned n, unsigned us)
{
    for (unsigned i = 0; i < n; i++)
        one_step(us);
    assert_int_equal(pk_flush(), PK_OK);
}

#define begin(...)                                                                                 \
    do {                                                                                           \
        setenv("PK_CLOCK", the_clock, 1); /* or tuning would say it, too */                        \
        assert_int_equal(pk_start(pk_options(.backends = "none", __VA_ARGS__)), PK_OK);            \
        unsetenv("PK_CLOCK");                                                                      \
    } while (0)

static inline const json_t *about(const json_t *document)
{
    return member(document, "perfkitCapture");
}

static inline uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(member(object, key));
}

static inline bool is_true(const json_t *object, const char *key)
{
    return json_is_true(member(object, key));
}

static inline size_t count_step(const json_t *document, uint64_t n)
{
    char name[40];
    snprintf(name, sizeof name, "ProfilerStep#%llu", (unsigned long long)n);
    return count_events(document, "X", name);
}

static inline size_t count_steps_from(const json_t *document, uint64_t first, uint64_t last)
{
    size_t n = 0;
    for (uint64_t s = first; s <= last; s++)
        n += count_step(document, s);
    return n;
}

/* Of captures named run-0-FIRST.json the one of that slow step. */
static inline json_t *capture_of_slow(int step)
{
    char path[64];
    for (int first = step; first >= 0; first--) {
        snprintf(path, sizeof path, "run-0-%d.json", first);
        json_t *d = exists(path) ? load_document(path) : NULL;
        if (d && number(about(d), "slow_step") == (uint64_t)step)
            return d;
        json_decref(d);
    }
    fail_msg("the slow step was not captured");
    return NULL;
}

/* Whole: its steps once each, no others, and all of their regions. */
static inline void expect_capture(const char *path, const char *reason, uint64_t first,
                                  uint64_t last)
{
    json_t *d = load_document(path);
    /* One may end as the first begins; an emulator's clock bends so far that one more may begin. */
    size_t n = last - first + 1, beside = is_slow() ? 2 : 1;
    assert_string_equal(json_string_value(member(about(d), "reason")), reason);
    assert_true(number(about(d), "first") == first && number(about(d), "last") == last);
    assert_false(is_true(about(d), "full") || is_true(about(d), "beginning_gone"));
    assert_int_equal(number(about(d), "records_lost"), 0);
    assert_int_equal(count_steps_from(d, first, last), n);
    assert_int_equal(count_steps_from(d, 0, last + 20), n);
    assert_in_range(count_events(d, "X", "work"), n, n + beside);
    assert_in_range(count_events(d, "X", "inner"), 3 * n, 3 * (n + beside));
    assert_true(count_events(d, "M", "thread_name") >= 2);
    assert_true(json_array_size(member(about(d), "steps")) >= n);
    json_decref(d);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

#endif
