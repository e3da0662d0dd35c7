/* tests/unit/event_report.h - sessions that sample calls, on a mock of the kernel, and what their
 * reports say of events.
 */
#ifndef TESTS_EVENT_REPORT_H
#define TESTS_EVENT_REPORT_H

#include "folder.h"
#include "../kit/tuning.h"
#include "perf_mock.h"

#include <math.h>

#include <pk/pk.h>

static const char *the_clock = "";

static inline void start(const char *costs)
{
    assert_int_equal(
        pk_start(pk_options(.costs = costs, .backends = "none", .report_path = "report.json",
                            .tuning = kit_tuning("clock=%s", the_clock))),
        PK_OK);
}

/* The report's events; to be freed. */
static inline char *stop(void)
{
    size_t n;
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(mock_open_now(), 0);
    return read_file("report.json", &n);
}

#define WHOLE ""

/* Of a region's row, or of the whole. */
static inline double number(const char *report, const char *region, const char *key)
{
    char wanted[64];
    const char *at = strstr(report, "\"events\":");
    assert_non_null(at);
    snprintf(wanted, sizeof wanted, "\"region\":\"%s\"", region);
    at = *region ? strstr(at, wanted) : at;
    snprintf(wanted, sizeof wanted, "\"%s\":", key);
    at = at ? strstr(at, wanted) : NULL;
    if (!at)
        fail_msg("no %s of %s in %s", key, region, report);
    return strtod(at + strlen(wanted), NULL);
}

static inline void expect(const char *report, const char *region, const char *key, double wanted)
{
    double got = number(report, region, key);
    if (fabs(got - wanted) > 1e-6 * fabs(wanted))
        fail_msg("%s of %s: %.9g, not %.9g", key, region, got, wanted);
}

#endif
