/* Events of a region that is called so often that looks pick its samples, and is thinned from then
 * on: of its timed calls a few are sampled, each with the weight with which it was drawn. */
#include "event_report.h"
#include "valgrind.h"

#include "core/registry.h"
#include "core/thin.h"

#define THIN 16

static pk_region often = PK_REGION("often");

static void call(uint64_t instructions)
{
    PK_SCOPE(often)
        mock_count(instructions, 100, 1, 1);
}

/* As session/collector/thinning.c does. */
static void thin(uint32_t n)
{
    pki_thin_set(pki_region_id(&often), n);
    pki_registry_lock();
    pki_thin_watch(pki_registry_now(), true);
    pki_registry_unlock();
}

/* Half of the calls before, and half with, which count three times as much: a mean of 200 says that
 * either half has its weight. */
static void half_of_the_calls(void **state)
{
    const uint32_t wanted = is_slow() ? 100 : 400, most = is_slow() ? 100000 : 10000000;
    uint32_t calls = 0, i;
    (void)state;
    mock.pages = true;
    start("hardware");
    for (; calls < most && (calls < 20000 || mock_direct < wanted * 8); calls++)
        call(100);
    uint32_t before = mock_direct / 8;
    thin(THIN);
    for (i = 0; i < calls; i++)
        call(300);
    uint32_t with = mock_direct / 8 - before;
    thin(0);
    char *report = stop();
    expect(report, "often", "calls", 2.0 * calls);
    if (with > calls / THIN) /* of two in THIN that are timed */
        fail_msg("%u samples of %u calls", with, calls);
    double mean = number(report, "often", "instructions");
    if (!is_slow() && (mean < 150 || mean > 250))
        fail_msg("%g: %u samples, and %u of %u calls", mean, before, with, calls);
    free(report);
}

static int begin(void **state)
{
    return enter_folder(state) || use_mock(state);
}

static int finish(void **state)
{
    pk_stop();
    return leave_folder(state) || end_mock(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(half_of_the_calls, begin, finish)};
    int failed = cmocka_run_group_tests_name("fastest clock", tests, NULL, NULL);
    the_clock = "monotonic";
    return failed + cmocka_run_group_tests_name("monotonic", tests, NULL, NULL);
}
