/* Captures of steps that were slow, as they really are: in a session, and in the machine's time. */
#include "captures.h"

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
        begin(.capture = "slow=1.2,floor:20000", .captures_per_hour = 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {in_folder(slow_steps), in_folder(the_worst_stays)};
    return both_clocks(tests);
}
