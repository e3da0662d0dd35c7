/* CUPTI of a version that has several subscribers: with another tool that comes and goes, alone
 * where the driver does not have them, and with one that wants CUPTI for itself. */
#include "scene.h"

#include "backend/cupti/control.h"
#include "base/atomic.h"
#include "base/clock.h"

static pk_region forward = PK_REGION("forward");

static int set_up(void **state)
{
    int failed = reset_fake(state);
    fake->version = 130400;
    fake->several = true;
    return failed;
}

static int64_t kernels_of(const json_t *doc, const char *name)
{
    return (int64_t)count_of_cat(doc, "kernel", name);
}

static void some_kernels(const char *name, unsigned count)
{
    pk_region_begin(&forward);
    for (unsigned i = 0; i < count; i++)
        launch(.kernel = name);
    pk_region_end(&forward);
    fake->finish();
}

/* -- the other tool -- */

typedef struct other_params {
    size_t size;
    const char *name;
    char *old_name;
    size_t old_size;
    uint8_t several, padding[7];
} other_params;

static struct {
    CUptiResult (*subscribe)(void **out, CUpti_CallbackFunc, void *user, other_params *);
    CUptiResult (*unsubscribe)(void *);
    CUptiResult (*register_buffers)(void *, void (*)(uint8_t **, size_t *, size_t *, void *),
                                    void (*)(uint8_t *, size_t, size_t, void *));
    CUptiResult (*enable)(void *, CUpti_ActivityKind, void *);
    CUptiResult (*disable)(void *, CUpti_ActivityKind, void *);
    void *handle;
    unsigned kernels;
    char old_name[64];
    PKI_ALIGNED uint8_t buffer[4096];
} other;

static void bind(const char *name, void *function)
{
    void *library = dlopen(getenv("PK_CUPTI_LIBRARY"), RTLD_LAZY | RTLD_LOCAL);
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    memcpy(function, &symbol, sizeof symbol);
}

static void their_request(uint8_t **data, size_t *size, size_t *most, void *info)
{
    (void)info;
    *data = other.buffer;
    *size = sizeof other.buffer;
    *most = 0;
}

static void their_completed(uint8_t *data, size_t size, size_t valid, void *info)
{
    (void)info;
    assert_true(data == other.buffer && size == sizeof other.buffer && valid > 0);
    other.kernels++;
}

static void CUPTIAPI ignore(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const void *data)
{
    (void)user, (void)domain, (void)id, (void)data;
}

static CUptiResult other_subscribes(bool several)
{
    other_params p = {.size = sizeof p,
                      .name = "somebody",
                      .old_name = other.old_name,
                      .old_size = sizeof other.old_name,
                      .several = several};
    bind("cuptiSubscribe_v2", &other.subscribe);
    return other.subscribe(&other.handle, ignore, NULL, &p);
}

static void other_comes(void)
{
    other.kernels = 0;
    assert_int_equal(other_subscribes(true), CUPTI_SUCCESS);
    bind("cuptiActivityRegisterCallbacks_v2", &other.register_buffers);
    bind("cuptiActivityEnable_v2", &other.enable);
    bind("cuptiActivityDisable_v2", &other.disable);
    bind("cuptiUnsubscribe", &other.unsubscribe);
    other.register_buffers(other.handle, their_request, their_completed);
    other.enable(other.handle, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, NULL);
}

static void other_goes(void)
{
    other.disable(other.handle, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, NULL);
    assert_int_equal(other.unsubscribe(other.handle), CUPTI_SUCCESS);
}

/* -- what is so -- */

static void one_of_several(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    assert_string_equal(status().reason, "recording");
    assert_non_null(pki_cupti_one);
    assert_non_null(strstr(fake->log, "clock_of_one"));
    assert_null(strstr(fake->log, "clock "));
    uint64_t now = pki_monotonic_ns();
    assert_in_range(fake->clock(), now, now + 60000000000);
    some_kernels("a", 5);
    json_t *doc = stop_and_load();
    assert_int_equal(kernels_of(doc, "a"), 5);
    assert_string_equal(text_of(nth_event(doc, "kernel", "a", 4), "region"), "forward");
    json_decref(doc);
    assert_null(pki_cupti_one);
    assert_int_equal(fake->enabled, 0);
    assert_int_equal(fake->outstanding, 0);
}

/* Each has its own, and all of it. */
static void another_comes_and_goes(void **state)
{
    (void)state;
    other_comes();
    some_kernels("before", 3);
    assert_int_equal(other.kernels, 3);
    start_cupti(.rank = 0);
    some_kernels("both", 300);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(other.kernels, 303);
    other_goes();
    some_kernels("alone", 4);
    assert_int_equal(pk_flush(), PK_OK);
    other_comes();
    some_kernels("again", 2);
    json_t *doc = stop_and_load();
    assert_int_equal(kernels_of(doc, "before"), 0);
    assert_int_equal(kernels_of(doc, "both"), 300);
    assert_int_equal(kernels_of(doc, "alone"), 4);
    assert_int_equal(kernels_of(doc, "again"), 2);
    assert_null(strstr(status().reason, "another tool"));
    json_decref(doc);
    some_kernels("theirs", 6);
    assert_int_equal(other.kernels, 8);
    other_goes();
}

/* Captures take it and give it back beside the other one, who may have settled how graphs come. */
static void captures_beside_another(void **state)
{
    (void)state;
    other_comes();
    assert_int_equal(pk_start(pk_options(.backends = "cupti", .capture = "request",
                                         .capture_path = "c-%s.json", .tuning = "flush_ms=100")),
                     PK_OK);
    for (int i = 0; i < 3; i++) {
        /* Of one whose steps are over before the collector sees it nothing is switched on. */
        for (int turn = 0; !pki_load(&pki_cupti_one); turn++) {
            if (turn % 100 == 0)
                assert_true(pk_capture("now", 20) == PK_OK || turn);
            some_kernels("k", 1);
            pk_step(1);
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
        for (int n = 0; n < 21; n++)
            pk_step(1);
        while (pki_load(&pki_cupti_one)) {
            pk_step(1);
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
    }
    assert_int_equal(pk_stop(), PK_OK);
    other_goes();
}

/* The driver is older: as it has always been. */
static void a_driver_without_them(void **state)
{
    (void)state;
    fake->several = false;
    start_cupti(.rank = 0);
    assert_null(pki_cupti_one);
    assert_non_null(strstr(fake->log, "subscribe_one subscribe "));
    assert_non_null(strstr(fake->log, "clock "));
    assert_int_equal(other_subscribes(true), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    some_kernels("a", 2);
    json_t *doc = stop_and_load();
    assert_int_equal(kernels_of(doc, "a"), 2);
    json_decref(doc);
}

/* No clock of ours for one of several: alone, then. */
static void no_clock_of_its_own(void **state)
{
    (void)state;
    fake->register_clock = CUPTI_ERROR_NOT_SUPPORTED;
    start_cupti(.rank = 0);
    assert_null(pki_cupti_one);
    assert_null(strstr(fake->log, "enable"));
    assert_int_equal(status().live, 0);
}

/* The attribute has another number than documented, say. */
static void a_clock_that_is_not_used(void **state)
{
    (void)state;
    fake->forgets_clock = true;
    start_cupti(.rank = 0);
    assert_null(pki_cupti_one);
    assert_non_null(strstr(fake->log, "clock_of_one unsubscribe subscribe "));
    some_kernels("a", 2);
    json_t *doc = stop_and_load();
    assert_int_equal(kernels_of(doc, "a"), 2);
    json_decref(doc);
}

/* Who wants it alone is refused beside perfkit, and perfkit beside it. */
static void who_wants_it_alone(void **state)
{
    (void)state;
    start_cupti(.rank = 0);
    assert_int_equal(other_subscribes(false), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    some_kernels("a", 2);
    json_t *doc = stop_and_load();
    assert_int_equal(kernels_of(doc, "a"), 2);
    json_decref(doc);
    assert_int_equal(other_subscribes(false), CUPTI_SUCCESS);
    start_cupti(.rank = 0);
    assert_non_null(strstr(status().reason, "another tool in this process uses CUPTI"));
    assert_int_equal(pk_stop(), PK_OK);
    bind("cuptiUnsubscribe", &other.unsubscribe);
    other.unsubscribe(other.handle);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, stop_and_leave)

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        test(one_of_several),           test(another_comes_and_goes), test(captures_beside_another),
        test(no_clock_of_its_own),      test(who_wants_it_alone),     test(a_driver_without_them),
        test(a_clock_that_is_not_used),
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
