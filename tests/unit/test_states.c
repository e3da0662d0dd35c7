/* Why a thread was off its processor in a slow step: what its capture says, beside what is true. */
#include "captures.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/processors.h"
#include "measure/rows.h"

/* ---- a kernel that gives no records, as in most containers ---- */

static bool refuse;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_perf_event_open && refuse) {
        errno = EPERM;
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- a host that takes the processor away, and a kernel that knows of it ---- */

#define STOLEN 150.0 /* ms, from that moment on, half of the time */

static double stolen_from; /* ms, CLOCK_MONOTONIC; 0: nothing is */

bool __real_pki_thread_cpu_read(const char *root, uint32_t tid, bool status, pki_thread_cpu *out);
bool __wrap_pki_thread_cpu_read(const char *root, uint32_t tid, bool status, pki_thread_cpu *out);
uint64_t __wrap_pki_stolen_read(const char *root);

static uint64_t stolen_by_now(void)
{
    double from, now = (double)pki_monotonic_ns() / 1e6;
    __atomic_load(&stolen_from, &from, __ATOMIC_RELAXED);
    double ms = from > 0 ? (now - from) / 2 : 0;
    return (uint64_t)((ms < STOLEN ? ms : STOLEN) * 1e6);
}

bool __wrap_pki_thread_cpu_read(const char *root, uint32_t tid, bool status, pki_thread_cpu *out)
{
    bool known = __real_pki_thread_cpu_read(root, tid, status, out);
    if (known && tid == (uint32_t)getpid())
        out->running -= PKI_MIN(out->running, stolen_by_now());
    return known;
}

uint64_t __wrap_pki_stolen_read(const char *root)
{
    (void)root;
    return 5000000000 + stolen_by_now();
}

static bool has_records(void)
{
    struct perf_event_attr a = {.size = sizeof a,
                                .type = PERF_TYPE_SOFTWARE,
                                .config = PERF_COUNT_SW_DUMMY,
                                .context_switch = 1,
                                .exclude_kernel = 1};
    int fd = (int)__real_syscall(SYS_perf_event_open, &a, 0, -1, -1, 0L);
    if (fd >= 0)
        close(fd);
    else
        print_message("# no records of switches: perf_event_open: %s\n", strerror(errno));
    return fd >= 0;
}

/* ---- a slow step, and the truth about it ---- */

#define SLOW 20 /* its number */

typedef struct truth {
    double wall, off, ready, in_all; /* ms; the last two by schedstat, 0: not known */
} truth;

static double ms_of(clockid_t clock)
{
    return (double)pki_read_clock(clock) / 1e6;
}

static double ready_so_far(void)
{
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    unsigned long long running, ready = 0;
    if (!file || fscanf(file, "%llu %llu", &running, &ready) != 2)
        ready = 0;
    if (file)
        fclose(file);
    return (double)ready / 1e6;
}

/* Steps of 2 ms, the one that `act` makes, and a few more. */
static truth run(void (*act)(void))
{
    double in_all = ready_so_far();
    begin(.capture = "slow=1.5,floor:20000", .history_steps = 64, .report_path = "report.json");
    steps(SLOW, 2000);
    double wall = ms_of(CLOCK_MONOTONIC), cpu = ms_of(CLOCK_THREAD_CPUTIME_ID);
    double ready = ready_so_far();
    pk_region_begin(&work);
    act();
    pk_region_end(&work);
    wall = ms_of(CLOCK_MONOTONIC) - wall;
    cpu = ms_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
    ready = ready_so_far() - ready;
    pk_step(32);
    steps(5, 2000);
    assert_int_equal(pk_stop(), PK_OK);
    return (truth){wall, wall - cpu, ready, ready_so_far() - in_all};
}

static bool is_named(const json_t *event, const char *key, const char *text)
{
    const char *is = json_string_value(json_object_get(event, key));
    return is && strcmp(is, text) == 0;
}

static double real(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

static bool of_host; /* what it took is asked for */

/* Of the slow step, in that state: ms. shared: as off_ns says of slices around it. */
static double in_state(const json_t *d, const char *name, bool shared)
{
    const json_t *events = member(d, "traceEvents"), *e, *step = NULL;
    char title[40];
    double sum = 0;
    size_t i;
    snprintf(title, sizeof title, "ProfilerStep#%d", SLOW);
    json_array_foreach(events, i, e) if (is_named(e, "name", title)) step = e;
    assert_non_null(step);
    double from = real(step, "ts"), until = from + real(step, "dur");
    json_array_foreach(events, i, e)
    {
        if (!is_named(e, "cat", "thread_state") || !is_named(e, "name", name))
            continue;
        double start = real(e, "ts"), end = start + real(e, "dur");
        const json_t *args = json_object_get(e, "args");
        double off = real(args, "off_ns");
        if (of_host != (json_object_get(args, "by") != NULL))
            continue;
        assert_true((off > 0) == (shared || of_host));
        double within = (end < until ? end : until) - (start > from ? start : from);
        sum += shared || of_host ? off / 1e3 : within > 0 ? within : 0;
    }
    return sum / 1e3;
}

/* Over the run: ms that slow steps took longer for that. What a step owes most to is that. */
static double owed_to(const char *cause)
{
    json_t *report = load_document("report.json");
    const json_t *slow = member(report, "slow_steps"), *c;
    double ns = 0, all = 0;
    size_t i;
    json_array_foreach(member(slow, "causes"), i, c)
    {
        bool is = is_named(c, "cause", cause);
        all += real(c, "ns");
        ns += is ? real(c, "ns") : 0;
        assert_true(!is || i > 0 || number(c, "steps") > 0);
    }
    double longer = real(slow, "longer");
    print_message("# over the run: %.1f ms %s of %.1f ms\n", ns / 1e6, cause, longer / 1e6);
    assert_true(number(slow, "count") >= 1 && all > 0.999 * longer && all < 1.001 * longer);
    json_decref(report);
    return ns / 1e6;
}

static bool is_near(double a, double b, double more)
{
    print_message("# %.1f ms beside %.1f ms\n", a, b);
    return a > 0.9 * b - more && a < 1.1 * b + more;
}

/* ---- others have the processor ---- */

static bool leave_it;

static void *burn(void *nothing)
{
    while (!__atomic_load_n(&leave_it, __ATOMIC_RELAXED))
        ;
    return nothing;
}

static void busy(uint64_t ms)
{
    for (uint64_t until = pki_monotonic_ns() + ms * 1000000; pki_monotonic_ns() < until;)
        ;
}

/* On one processor with another thread, which never waits. */
static void share_a_processor(void)
{
    pthread_t other;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    __atomic_store_n(&leave_it, false, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&other, NULL, burn, NULL), 0);
    busy(250);
    __atomic_store_n(&leave_it, true, __ATOMIC_RELAXED);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
}

static void no_processor(void **state)
{
    (void)state;
    if (!has_records())
        skip();
    truth t = run(share_a_processor);
    json_t *d = capture_of_slow(SLOW);
    /* Until the other thread has ended it waits. */
    double ready = in_state(d, "no processor", false), waited = in_state(d, "blocked", false);
    assert_true(t.off > 40 && ready > waited);
    assert_true(is_near(ready + waited, t.off, 5));
    assert_true(in_state(d, "stopped", false) < 1);
    assert_true(owed_to("no-processor") > 0.9 * ready - 10);
    json_decref(d);
}

/* ---- more switches than it may cost ---- */

static int there[2], back[2];
static double switched_ms;

static void *answer(void *nothing)
{
    char c;
    while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
        ;
    return nothing;
}

static void switch_often(void)
{
    pthread_t other;
    char c = 0;
    double begun = ms_of(CLOCK_MONOTONIC);
    assert_int_equal(pipe(there) | pipe(back), 0);
    assert_int_equal(pthread_create(&other, NULL, answer, NULL), 0);
    for (int i = 0; i < 25000; i++)
        assert_true(write(there[1], &c, 1) == 1 && read(back[0], &c, 1) == 1);
    switched_ms = ms_of(CLOCK_MONOTONIC) - begun;
    close(there[1]);
    assert_int_equal(pthread_join(other, NULL), 0);
    close(there[0]);
    close(back[0]);
    close(back[1]);
    busy(300); /* the collector has seen it by then */
    share_a_processor();
}

/* From then on schedstat says how long, and not where. */
static void too_many_switches(void **state)
{
    (void)state;
    if (!has_records() || access("/proc/self/schedstat", R_OK) != 0)
        skip();
    run(switch_often);
    json_t *d = capture_of_slow(SLOW);
    const json_t *events = member(d, "traceEvents"), *e;
    unsigned shares = 0;
    size_t i;
    json_array_foreach(events, i, e) shares +=
        is_named(e, "name", "no processor") && real(json_object_get(e, "args"), "off_ns") > 0;
    json_decref(d);
    if (switched_ms > 5000)
        skip(); /* so few a second, on a busy machine, are not too many */
    assert_true(shares > 0);
}

static void no_processor_by_schedstat(void **state)
{
    (void)state;
    if (access("/proc/self/schedstat", R_OK) != 0)
        skip();
    refuse = true;
    truth t = run(share_a_processor);
    refuse = false;
    json_t *d = capture_of_slow(SLOW);
    /* A share is of a round, which has steps beside this one. */
    double told = in_state(d, "no processor", true);
    print_message("# %.1f ms, %.1f in the step and %.1f in all\n", told, t.ready, t.in_all);
    assert_true(told > 0.9 * t.ready - 15 && told < t.in_all + 1);
    assert_true(owed_to("no-processor") > 0.5 * t.ready - 50);
    owed_to("longer"); /* whether the rest was waited for is not known */
    json_decref(d);
}

/* ---- it waits for something ---- */

static void wait_for_nothing(void)
{
    usleep(400000);
}

static void blocked(void **state)
{
    (void)state;
    if (!has_records())
        skip();
    truth t = run(wait_for_nothing);
    json_t *d = capture_of_slow(SLOW);
    double waited = in_state(d, "blocked", false);
    assert_true(waited > 300 && in_state(d, "stopped", false) < 1);
    assert_true(owed_to("waited") > 0.9 * waited - 20);
    assert_true(is_near(waited + in_state(d, "no processor", false), t.off, 5));
    json_decref(d);
}

/* ---- the process is stopped ---- */

static void be_stopped(void)
{
    pid_t me = getpid(), child = fork();
    if (child == 0) {
        usleep(30000);
        kill(me, SIGSTOP);
        usleep(400000);
        kill(me, SIGCONT);
        _exit(0);
    }
    assert_true(child > 0);
    busy(450);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void stopped(void **state)
{
    (void)state;
    if (!has_records())
        skip();
    truth t = run(be_stopped);
    json_t *d = capture_of_slow(SLOW);
    /* Let go on, it may have to wait for a processor. */
    double stop = in_state(d, "stopped", false), ready = in_state(d, "no processor", false);
    print_message("# stopped for %.1f ms, no processor for %.1f ms\n", stop, ready);
    assert_true(stop > 300 && stop + ready > 390 && stop < t.off + 5);
    assert_true(owed_to("stopped") > 0.9 * stop - 10);
    json_decref(d);
}

/* ---- the host had the processor ---- */

static void be_robbed(void)
{
    double now = (double)pki_monotonic_ns() / 1e6;
    __atomic_store(&stolen_from, &now, __ATOMIC_RELAXED);
    busy(400);
}

static void robbed(void **state)
{
    (void)state;
    if (!has_records())
        skip();
    truth t = run(be_robbed);
    stolen_from = 0;
    json_t *d = capture_of_slow(SLOW);
    of_host = true;
    double told = in_state(d, "no processor", false);
    of_host = false;
    print_message("# %.1f ms by the host\n", told);
    /* Of rounds at its ends a part; clock ticks. Who has no processor cannot be robbed of it. */
    assert_true((told > 100 || t.ready > 50) && told < 170);
    json_decref(d);
    json_t *report = load_document("report.json");
    const json_t *causes = member(member(report, "slow_steps"), "causes"), *c;
    bool named = false;
    size_t i;
    json_array_foreach(causes, i, c) named |= is_named(c, "by", PKI_BY_HOST);
    assert_true(named || t.ready > 50);
    json_decref(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(no_processor),      in_folder(no_processor_by_schedstat),
        in_folder(too_many_switches), in_folder(blocked),
        in_folder(stopped),           in_folder(robbed)};
    return both_clocks(tests);
}
