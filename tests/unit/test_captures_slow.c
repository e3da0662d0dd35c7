/* Captures of steps that were slow, as they really are: in a session, and in the machine's time. */
#include "captures.h"

#include <sched.h>

#include "base/clock.h"

#define WORST (20 + 3 * 11)

/* Is step n in any of the captures that are there, with the three before it? */
static bool is_captured(uint64_t n)
{
    char path[64];
    bool found = false;
    for (uint64_t first = 0; first <= n; first++) {
        snprintf(path, sizeof path, "run-0-%llu.json", (unsigned long long)first);
        if (!exists(path))
            continue;
        json_t *d = load_document(path);
        found |= count_steps_from(d, n - 3, n) == 4;
        json_decref(d);
    }
    return found;
}

static void slow_steps(void **state)
{
    (void)state;
    begin(.capture = "slow=1.2,floor:20000");
    steps(20, 100);
    one_step(80000);
    steps(20, 100);
    one_step(90000);
    steps(3, 100);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(is_captured(20) && is_captured(41));
}

/* Steps of 2 ms, and five slow ones, of which the fourth is the worst. Were they so? A busy machine
 * may make any of them longer. */
static bool make_slow_ones(void)
{
    uint64_t longest = 0, last = pki_monotonic_ns();
    for (unsigned i = 0; i < 75; i++) {
        bool slow = i >= 20 && (i - 20) % 11 == 0;
        steps(1, i == WORST ? 400000 : slow ? 50000 : 2000);
        uint64_t now = pki_monotonic_ns(), ms = (now - last) / 1000000;
        longest = PKI_MAX(longest, i == WORST ? 0 : slow ? ms / 3 : ms);
        last = now;
    }
    return longest < 25;
}

static void the_worst_stays(void **state)
{
    for (unsigned tries = 0; tries < 10; tries++) {
        begin(.capture = "slow=1.2,floor:20000", .tuning = "captures_per_hour=1");
        bool so = make_slow_ones();
        assert_int_equal(pk_stop(), PK_OK);
        assert_int_equal(count_files(), 1);
        if (so) {
            assert_true(is_captured(WORST));
            return;
        }
        assert_int_equal(leave_folder(state) + enter_folder(state), 0);
    }
    skip();
}

static void busy(uint64_t us)
{
    for (uint64_t until = pki_monotonic_ns() + us * 1000; pki_monotonic_ns() < until;)
        ;
}

static void busy_step(uint64_t us)
{
    pk_region_begin(&work);
    busy(us);
    pk_region_end(&work);
    pk_step(1);
}

/* What it says is in it, and nothing else. */
static void expect_its_steps(const char *path)
{
    json_t *d = load_document(path), *known = member(about(d), "steps");
    uint64_t first = number(about(d), "first"), last = number(about(d), "last");
    uint64_t slow = number(about(d), "slow_step"), n = last - first + 1;
    bool gone = is_true(about(d), "beginning_gone"), told = false;
    for (size_t i = 0; i < json_array_size(known); i++)
        told |= number(json_array_get(known, i), "step") == slow;
    assert_true(told && first <= slow && slow <= last && n <= 32);
    assert_in_range(count_steps_from(d, first, last), gone ? 1 : n, n);
    assert_int_equal(count_step(d, slow), 1);
    assert_int_equal(count_steps_from(d, 0, last + 2000), count_steps_from(d, first, last));
    /* The machine may have stretched any step; a region more may end as the first begins. */
    assert_in_range(count_events(d, "X", "work"), gone ? 1 : n, n + 1);
    json_decref(d);
}

/* Of so short steps a round of the collector brings more than the history knows by number. */
static void of_steps_that_last(uint64_t us)
{
    char path[64];
    unsigned seen = 0, total = is_slow() ? 400 : (unsigned)(120000 / us);
    begin(.capture = "slow=1.5,floor:200", .history_steps = 32, .tuning = "captures_per_hour=100");
    for (unsigned i = 0; i < total; i++)
        busy_step(i % (total / 4) == total / 8 ? 3000 : us);
    assert_int_equal(pk_stop(), PK_OK);
    for (unsigned first = 0; first < total; first++) {
        snprintf(path, sizeof path, "run-0-%u.json", first);
        if (!exists(path))
            continue;
        expect_its_steps(path);
        seen++;
    }
    assert_true(seen > 0);
}

static void short_steps(void **state)
{
    static const uint64_t us[] = {20, 50, 100, 500};
    for (size_t i = 0; i < sizeof us / sizeof us[0]; i++) {
        of_steps_that_last(us[i]);
        assert_int_equal(leave_folder(state) + enter_folder(state), 0);
    }
}

/* As launchers bind ranks: the collector comes when it is let. */
static void short_steps_on_one_processor(void **state)
{
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        skip();
    short_steps(state);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {in_folder(slow_steps), in_folder(the_worst_stays),
                                       in_folder(short_steps),
                                       in_folder(short_steps_on_one_processor)};
    return both_clocks(tests);
}
