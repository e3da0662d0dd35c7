/* When captures arm CUPTI: where nothing else would show what it tells. */
#include "session/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <pk/status.h>

static pki_config config;

static bool arms(const pk_options *options)
{
    if (pki_config_read(&config, options))
        fail_msg("%s", pk_error_message());
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
    assert_int_equal(pki_config_read(&config, pk_options(.capture = "kernels=never")), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "always nor armed"));
    assert_int_equal(pki_config_read(&config, pk_options(.capture = "slow=2;kernels=armed,steps:9",
                                                         .history_steps = 12)),
                     PK_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_captures_arm_cupti),
        cmocka_unit_test(as_many_behind_as_there_is_room_for),
        cmocka_unit_test(what_is_malformed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
