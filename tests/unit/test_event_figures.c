/* Sums of sampled calls become means, quotients and their errors, by hand on the other side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "measure/costs/events.h"

static void sums_make_figures(void **state)
{
    pki_event_sums sums = {0};
    pki_events_row row = {0};
    (void)state;
    /* 20 calls of 100 instructions and 50 cycles, each for 1; 20 of 300 and 100, each for 3 */
    for (int i = 0; i < 40; i++) {
        double w = i < 20 ? 1 : 3, x[2] = {i < 20 ? 100 : 300, i < 20 ? 50 : 100};
        sums.sampled++;
        sums.weight += w;
        sums.weight2 += w * w;
        for (int j = 0; j < 2; j++) {
            sums.sum[j] += w * x[j];
            sums.sum2[j] += w * w * x[j];
            sums.square[j] += w * w * x[j] * x[j];
            sums.beside[j] += w * w * x[j] * x[0];
        }
    }
    pki_event_sums_fill(&sums, 80, 3, &row);
    assert_true(row.value[0] == 250 && row.value[1] == 87.5 && row.value[2] == -1);
    assert_true(fabs(row.ratio[PKI_EVENT_IPC] - 250 / 87.5) < 1e-12);
    /* sum(w^2 (x - m)^2) = 20 x 150^2 + 20 x 9 x 50^2; of the quotient with x = a - R b */
    double mean = 2 * sqrt(40.0 / 39 * (20 * 22500.0 + 180 * 2500.0) * 0.5) / 80;
    double r = 250 / 87.5, one = 100 - r * 50, other = 300 - r * 100;
    double ratio = 2 * sqrt(40.0 / 39 * (20 * one * one + 180 * other * other) * 0.5) / 7000;
    assert_true(fabs(row.error[0] / mean - 1) < 1e-9);
    assert_true(fabs(row.ratio_error[PKI_EVENT_IPC] / ratio - 1) < 1e-9);
    pki_event_sums_fill(&sums, 40, 3, &row); /* all of them: that is no sample */
    assert_true(row.error[0] == 0);
    sums.sampled = 9;
    pki_event_sums_fill(&sums, 80, 3, &row);
    assert_true(row.error[0] == -1);
}

/* 20 calls of 10, 20, 30, 40 slots, each for 1; 20 of 100, 50, 40, 10, each for 3. */
static void slots_make_shares(void **state)
{
    static const double one[4] = {10, 20, 30, 40}, other[4] = {100, 50, 40, 10};
    pki_event_sums sums = {.sampled = 40, .weight = 80, .weight2 = 200};
    pki_events_row row = {0};
    double sum = 0;
    (void)state;
    for (int i = 0; i < 4; i++) {
        int at = PKI_EVENT_AT(PKI_TOPDOWN, i);
        sums.sum[at] = 20 * one[i] + 60 * other[i];
        sums.sum2[at] = 20 * one[i] + 180 * other[i];
        sums.square[at] = 20 * one[i] * one[i] + 180 * other[i] * other[i];
        sums.beside[at] = 20 * one[i] * 100 + 180 * other[i] * 200;
    }
    pki_event_sums_fill(&sums, 80, PKI_EVENT_MASK(PKI_TOPDOWN), &row);
    assert_true(row.value[PKI_EVENT_SLOTS] == 175); /* 20 x 100 and 60 x 200, of 80 */
    double mean = 2 * sqrt(40.0 / 39 * (20 * 75.0 * 75 + 180 * 25.0 * 25) * 0.5) / 80;
    assert_true(fabs(row.error[PKI_EVENT_SLOTS] / mean - 1) < 1e-9);
    for (int i = 0; i < 4; i++) {
        double share = (20 * one[i] + 60 * other[i]) / 14000;
        double a = one[i] - share * 100, b = other[i] - share * 200;
        double error = 2 * sqrt(40.0 / 39 * (20 * a * a + 180 * b * b) * 0.5) / 14000;
        assert_true(fabs(row.ratio[PKI_EVENT_RETIRING + i] / share - 1) < 1e-12);
        assert_true(fabs(row.ratio_error[PKI_EVENT_RETIRING + i] / error - 1) < 1e-9);
        sum += row.ratio[PKI_EVENT_RETIRING + i];
    }
    assert_true(fabs(sum - 1) < 1e-12);
    assert_true(row.value[0] == -1 && row.value[4] == -1 && row.ratio[PKI_EVENT_IPC] == -1);
    pki_event_sums_fill(&sums, 80, PKI_EVENT_MASK(PKI_HARDWARE), &row);
    assert_true(row.value[PKI_EVENT_SLOTS] == -1 && row.ratio[PKI_EVENT_RETIRING] == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_make_figures),
                                       cmocka_unit_test(slots_make_shares)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
