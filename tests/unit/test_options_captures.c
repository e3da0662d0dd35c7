/* When captures arm CUPTI: where nothing else would show what it tells. */
#include "options.h"

static bool arms(const pk_options *options)
{
    expect_taken(options);
    return config.cupti_armed;
}

static void when_captures_arm_cupti(void **state)
{
    (void)state;
    assert_true(arms(pk_options(.capture = "slow=1.2")) && config.capture.behind == 4);
    assert_false(arms(pk_options(.capture = "slow=1.2", .trace_path = "run.json")));
    assert_false(arms(pk_options(.capture = "slow=1.2;kernels=always")));
    assert_true(arms(pk_options(.capture = "request;kernels=armed", .trace_path = "run.json")));
    assert_false(arms(pk_options(.capture = "request", .cupti_steps = "5-6")));
    assert_false(arms(pk_options(.history_steps = 20)));
    assert_false(arms(NULL));
}

static void as_many_behind_as_there_is_room_for(void **state)
{
    (void)state;
    assert_true(arms(pk_options(.capture = "slow=1.2", .history_steps = 6)));
    assert_int_equal(config.capture.behind, 2);
    assert_true(arms(pk_options(.capture = "slow=1.2;kernels=armed,steps:9")));
    assert_int_equal(config.capture.behind, 9);
}

static void what_is_malformed_is_refused(void **state)
{
    (void)state;
    expect_refused(pk_options(.capture = "kernels=never"), "capture", "always nor armed");
    expect_refused(pk_options(.capture = "slow=2;kernels=armed,steps:9", .history_steps = 12),
                   "capture", "history_steps is 12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(when_captures_arm_cupti, clear_environment),
        cmocka_unit_test_setup(as_many_behind_as_there_is_room_for, clear_environment),
        cmocka_unit_test_setup(what_is_malformed_is_refused, clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
