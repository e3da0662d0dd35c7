/* When NVML fails, is slow, or does not come back. */
#include "nvml.h"

static void a_lost_device(void **state)
{
    (void)state;
    fake->devices = 2;
    start_sampling();
    await_rounds(0, 1);
    fake_set(fake->device[0].codes[FAKE_TEMPERATURE], 15);
    await(strstr(status().reason, "gpu0 was given up: GPU is lost"));
    unsigned before = calls(0, FAKE_POWER);
    await_rounds(1, 3);
    assert_int_equal(calls(0, FAKE_POWER), before);
    assert_true(status().live); /* the other one is */
    fake_set(fake->device[1].codes[FAKE_TEMPERATURE], 16);
    await(!status().live);
    assert_int_equal(pk_stop(), PK_OK);
}

static void failures_that_pass(void **state)
{
    (void)state;
    fake->device[0].codes[FAKE_POWER] = 999;
    start_sampling();
    await(strstr(status().reason, "gpu0.power every 0.4 s: Some Error")); /* but not off */
    fake_set(fake->device[0].codes[FAKE_POWER], 0);
    await(!strstr(status().reason, "Some Error"));
    assert_int_equal(pk_stop(), PK_OK);
    json_t *doc = load_document("t.json");
    assert_true(count_events(doc, "C", "gpu0.power") >= 1);
    json_decref(doc);
}

static void slow_calls_are_made_more_rarely(void **state)
{
    (void)state;
    fake->device[0].slow[FAKE_POWER] = 20000;
    start_sampling();
    await(strstr(status().reason, "gpu0.power every ")); /* 0.8 s, or more where others are busy */
    assert_non_null(strstr(status().reason, " s: a call takes "));
    await(calls(0, FAKE_POWER) < calls(0, FAKE_REASONS)); /* which go on as often as before */
    assert_int_equal(pk_stop(), PK_OK);
}

static void nvml_that_is_not_ready(void **state)
{
    (void)state;
    fake->init_code = 9;
    start_sampling();
    await(!status().live);
    expect_words("nvmlInit_v2: Some Error");
    assert_int_equal(pk_stop(), PK_OK);
    fake->init_code = 0;
    fake->count_code = 999;
    start_sampling();
    await(!status().live);
    expect_words("looking for devices: Some Error");
    assert_int_equal(pk_stop(), PK_OK);
    fake->count_code = 0;
    fake->devices = 0;
    start_sampling();
    await(!status().live);
    expect_words("there is no device");
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(fake->inits, fake->shutdowns);
}

static void a_call_that_does_not_come_back(void **state)
{
    (void)state;
    fake->stuck = true;
    start_sampling();
    await(strstr(status().reason, "nvmlDeviceGetUtilizationRates has not returned for"));
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    start_sampling(); /* while it is still in there */
    expect_words("NVML has not come back from a call that the session before made");
    assert_false(status().live);
    assert_int_equal(pk_stop(), PK_OK);
    fake_set(fake->stuck, false);
    await((start_sampling(), status().live || pk_stop() != PK_OK));
    await_rounds(0, 2);
    assert_int_equal(pk_stop(), PK_OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        sampling(a_lost_device),
        sampling(failures_that_pass),
        sampling(slow_calls_are_made_more_rarely),
        sampling(nvml_that_is_not_ready),
        sampling(a_call_that_does_not_come_back),
    };
    fake = argc == 2 ? load_fake(argv[1]) : NULL;
    return fake ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
