/* Which captures an hour has room for: never more, and the worst. */
#include "folder.h"
#include "draw.h"

#include <fcntl.h>

#include "capture/capture.h"

static pki_budget budget;

static void keep(const char *path, uint64_t ns, double worth, uint64_t bytes)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
    pki_budget_enter(&budget, ns, worth, bytes, path);
}

/* As whoever writes captures does it. */
static bool offer(unsigned number, uint64_t ns, double worth, uint64_t bytes)
{
    char path[32];
    snprintf(path, sizeof path, "c%u", number);
    uint64_t allowed = pki_budget_allows(&budget, ns, worth);
    if (bytes > allowed)
        return false;
    pki_budget_make_room(&budget, ns, worth, bytes);
    keep(path, ns, worth, bytes);
    return true;
}

static void check_bounds(uint32_t captures, uint64_t bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < budget.count; i++)
        sum += budget.kept[i].bytes;
    assert_true(budget.count <= captures && sum <= bytes);
    assert_int_equal(count_files(), budget.count);
}

static void the_worst_of_an_hour(void **state)
{
    (void)state;
    double worths[200];
    budget = (pki_budget){.captures = 10, .bytes = (uint64_t)1 << 40};
    for (unsigned i = 0; i < 200; i++) {
        worths[i] = 1.2 + (double)draw_below(1000000) / 1e6;
        offer(i, 1000 + i, worths[i], 5000000);
        check_bounds(10, (uint64_t)1 << 40);
    }
    for (unsigned i = 0; i < 200; i++) {
        char path[32];
        unsigned worse = 0;
        for (unsigned k = 0; k < 200; k++)
            worse += worths[k] > worths[i];
        snprintf(path, sizeof path, "c%u", i);
        assert_int_equal(exists(path), worse < 10);
    }
    pki_budget_finish(&budget);
}

static void bytes_are_bounded_too(void **state)
{
    (void)state;
    budget = (pki_budget){.captures = 1000, .bytes = 10000000};
    for (unsigned i = 0; i < 300; i++) {
        uint64_t bytes = 100000 + draw_below(3000000); /* compilers draw in an order of their own */
        offer(i, 1000 + i, 1.2 + (double)draw_below(1000) / 1e3, bytes);
        check_bounds(1000, 10000000);
    }
    assert_int_equal(pki_budget_allows(&budget, 2000, 1.0), 0);
    assert_int_equal(pki_budget_allows(&budget, 2000, PKI_WORTH_ASKED), 10000000);
    pki_budget_finish(&budget);
}

static void hours_pass(void **state)
{
    (void)state;
    budget = (pki_budget){.captures = 2, .bytes = (uint64_t)1 << 40};
    assert_true(offer(0, 0, 2, 1000) && offer(1, 1, 3, 1000));
    assert_false(offer(2, 2, 2, 1000)); /* of the same worth the earlier stays */
    assert_false(offer(3, PKI_BUDGET_HOUR_NS - 1, 1.5, 1000));
    assert_true(offer(4, PKI_BUDGET_HOUR_NS, 1.5, 1000));
    assert_true(exists("c0") && exists("c1") && exists("c4")); /* those of past hours stay */
    pki_budget_finish(&budget);
}

/* What somebody else has put in its place is not ours to remove. */
static void files_of_others_stay(void **state)
{
    (void)state;
    budget = (pki_budget){.captures = 1, .bytes = (uint64_t)1 << 40};
    assert_true(offer(0, 0, 2, 1000));
    assert_int_equal(rename("c0", "moved"), 0);
    int fd = open("c0", O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_true(offer(1, 1, 3, 1000));
    assert_true(exists("c0") && exists("moved") && exists("c1"));
    pki_budget_finish(&budget);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(the_worst_of_an_hour),
        in_folder(bytes_are_bounded_too),
        in_folder(hours_pass),
        in_folder(files_of_others_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
