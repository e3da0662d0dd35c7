/* A machine that is suspended and a calendar's clock that is set, amid a run: what is said of it,
 * and which figures they leave alone. */
#include "captures.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"

/* ---- clocks as they are then: CLOCK_MONOTONIC stands still, and who waits by it waits ---- */

/* No thread of a suspended machine reads a clock: it has it from when the machine is back. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t back = PTHREAD_COND_INITIALIZER;
static uint64_t frozen, slept, told; /* since then, CLOCK_MONOTONIC; ns so far; of it in BOOTTIME */
static int64_t calendar;             /* ns, by which that was set */

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static uint64_t real_ns(clockid_t id)
{
    struct timespec now;
    __real_clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* That CLOCK_MONOTONIC lacks. */
static uint64_t missing(void)
{
    return slept + (frozen ? real_ns(CLOCK_MONOTONIC) - frozen : 0);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    pthread_mutex_lock(&lock);
    while (frozen)
        pthread_cond_wait(&back, &lock);
    uint64_t ns = real_ns(id == CLOCK_BOOTTIME ? CLOCK_MONOTONIC : id);
    if (id == CLOCK_MONOTONIC || id == CLOCK_BOOTTIME)
        ns -= missing();
    if (id == CLOCK_BOOTTIME)
        ns += told;
    if (id == CLOCK_REALTIME)
        ns += (uint64_t)calendar;
    pthread_mutex_unlock(&lock);
    *now = pki_moment(ns);
    return 0;
}

/* And a kernel that has no records of switches, which would go by its own clock. */
long __wrap_syscall(long number, ...)
{
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    struct timespec later;
    if (number == SYS_perf_event_open) {
        errno = EPERM;
        return -1;
    }
    if (number == SYS_futex && a[1] == FUTEX_WAIT_BITSET_PRIVATE && a[3]) {
        const struct timespec *until = (const struct timespec *)a[3];
        pthread_mutex_lock(&lock);
        later = pki_moment((uint64_t)until->tv_sec * 1000000000u + (uint64_t)until->tv_nsec +
                           missing());
        pthread_mutex_unlock(&lock);
        a[3] = (long)&later;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void busy(uint64_t ms)
{
    for (uint64_t until = pki_monotonic_ns() + ms * 1000000; pki_monotonic_ns() < until;)
        ;
}

/* ---- a step in which the machine is suspended ---- */

#define SLOW 20 /* its number */
#define SLEPT_MS 1500

static void suspend(void)
{
    pthread_mutex_lock(&lock);
    frozen = real_ns(CLOCK_MONOTONIC);
    pthread_mutex_unlock(&lock);
    usleep(1000 * SLEPT_MS);
    pthread_mutex_lock(&lock);
    slept = told = missing();
    frozen = 0;
    pthread_cond_broadcast(&back);
    pthread_mutex_unlock(&lock);
}

/* The state of that name, or NULL. */
static const json_t *state_of(const json_t *d, const char *name)
{
    const json_t *events = member(d, "traceEvents"), *e;
    size_t i;
    json_array_foreach(events, i, e)
    {
        const char *is = json_string_value(json_object_get(e, "name"));
        if (is && strcmp(is, name) == 0)
            return json_object_get(e, "args");
    }
    return NULL;
}

static double ms_in(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key)) / 1e6;
}

/* Whether ticks went on depends on which they are. */
static bool ticks_stood_still(const json_t *report)
{
    return strcmp(json_string_value(member(member(report, "run"), "clock")), "monotonic") == 0;
}

static double owed_to(const json_t *report, const char *cause)
{
    const json_t *c;
    size_t i;
    json_array_foreach(member(member(report, "slow_steps"), "causes"), i,
                       c) if (strcmp(json_string_value(member(c, "cause")), cause) ==
                              0) return ms_in(c, "ns");
    return 0;
}

static void check_counted(const json_t *d, const json_t *report)
{
    const json_t *suspended = state_of(d, "suspended");
    assert_non_null(suspended);
    double told_ms = ms_in(suspended, "off_ns"), owed = owed_to(report, "suspended");
    print_message("# slept %.1f ms, said %.1f, over the run %.1f\n", (double)slept / 1e6, told_ms,
                  owed);
    assert_true(told_ms > (double)slept / 1e6 - 2 && told_ms < (double)slept / 1e6 + 2);
    assert_true(owed > 0.9 * told_ms && owed < 1.01 * told_ms);
    /* What follows is on the clock again: no error is left that would take hours to go. */
    assert_true(ms_in(member(report, "run"), "clock_uncertainty_ns") < 5);
}

/* A line of the state file: what it was up, without what the machine slept. */
static double up_ms(void)
{
    char *text = read_file("life", NULL), *last = text;
    for (char *at = text; (at = strstr(at, " up=")); at++)
        last = at;
    double ms = strtod(last + 4, NULL) / 1e6;
    free(text);
    return ms;
}

static void suspended(void **state)
{
    (void)state;
    slept = told = frozen = 0;
    uint64_t began = pki_monotonic_ns();
    begin(.capture = "slow=1.5,floor:20000", .history_steps = 64, .report_path = "report.json",
          .goodput_path = "life");
    steps(SLOW, 2000);
    pk_region_begin(&work);
    busy(150);
    suspend();
    busy(50);
    pk_region_end(&work);
    pk_step(32);
    steps(5, 2000);
    assert_int_equal(pk_stop(), PK_OK);
    double awake = (double)(pki_monotonic_ns() - began) / 1e6;
    json_t *d = capture_of_slow(SLOW), *report = load_document("report.json");
    const json_t *parts = member(member(report, "goodput"), "parts");
    double wall = ms_in(member(report, "run"), "wall");
    if (ticks_stood_still(report)) {
        assert_null(state_of(d, "suspended"));
        assert_non_null(state_of(d, "not told"));
        assert_true(wall < awake + 1);
    } else {
        check_counted(d, report);
        assert_true(wall > SLEPT_MS + 200);
    }
    /* A machine that sleeps is down: nothing of the run. (The process was there before it.) */
    assert_true(ms_in(parts, "productive") < awake && ms_in(parts, "productive") > 200);
    assert_true(up_ms() > 0);
    json_decref(d);
    json_decref(report);
}

/* ---- what it sleeps is no hang, and what hangs behind it is one ---- */

static pk_region limited = PK_REGION_OF(PK_WAIT, "limited");
static int hangs;

static void hear(void *user, pk_log_level level, const char *message)
{
    (void)user, (void)level;
    if (strstr(message, "the program hangs"))
        pki_fetch_add(&hangs, 1);
}

static void hang_behind_it(void **state)
{
    (void)state;
    slept = told = frozen = 0;
    hangs = 0;
    begin(.hang_seconds = 1, .log = hear, .history_steps = 8);
    pk_region_set_limit(&limited, 1);
    steps(5, 2000);
    pk_region_begin(&limited);
    suspend();
    busy(50);
    pk_region_end(&limited);
    steps(300, 1000);
    assert_int_equal(pki_load(&hangs), 0);
    pk_region_set_limit(&limited, 0.2); /* much less than what it slept */
    pk_region_begin(&limited);
    for (uint64_t waited = 0; waited < SLEPT_MS - 300u && !pki_load(&hangs); waited += 10)
        usleep(10000);
    pk_region_end(&limited);
    assert_int_equal(pki_load(&hangs), 1);
    assert_int_equal(pk_stop(), PK_OK);
}

/* ---- the calendar's clock is set ---- */

static const json_t *verdict_of(const json_t *report, const char *name)
{
    const json_t *v;
    size_t i;
    json_array_foreach(member(report, "verdicts"), i,
                       v) if (strcmp(json_string_value(member(v, "name")), name) == 0) return v;
    return NULL;
}

static double run_with_calendar(double hours, const char **said, json_t **report)
{
    calendar = 0;
    begin(.report_path = "report.json", .goodput_path = "life", .windows_path = "windows.jsonl");
    steps(50, 1000);
    pthread_mutex_lock(&lock);
    calendar = (int64_t)(hours * 3600e9);
    pthread_mutex_unlock(&lock);
    steps(50, 1000);
    assert_int_equal(pk_stop(), PK_OK);
    *report = load_document("report.json");
    const json_t *v = verdict_of(*report, "calendar-set");
    *said = v ? json_string_value(member(v, "text")) : "";
    return ms_in(member(*report, "run"), "wall");
}

static void calendar_set(void **state)
{
    (void)state;
    static const struct {
        double hours;
        const char *words;
    } cases[] = {{0, ""}, {1, "set ahead by 1 h 00 min"}, {-24, "set back by 1 d 00 h"}};
    for (size_t i = 0; i < PKI_COUNT_OF(cases); i++) {
        const char *said;
        json_t *report;
        double wall = run_with_calendar(cases[i].hours, &said, &report);
        print_message("# %s\n", said);
        assert_true(wall > 100 && wall < 60000);
        assert_true((cases[i].words[0] != 0) == (said[0] != 0) && strstr(said, cases[i].words));
        assert_true(ms_in(member(member(report, "goodput"), "parts"), "productive") < wall + 1);
        assert_true(up_ms() < 60000 && up_ms() > 0);
        json_decref(report);
        assert_int_equal(unlink("life"), 0);
    }
}

/* Where the processor promises one rate, though the kernel may not trust it. */
static int use_counter(void **state)
{
    (void)state;
    the_clock = "tsc";
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {in_folder(suspended), in_folder(hang_behind_it),
                                       in_folder(calendar_set)};
    return both_clocks(tests) + cmocka_run_group_tests_name("counter", tests, use_counter, NULL);
}
