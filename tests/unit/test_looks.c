/* What a late step waits for, and where its processor is: what its capture says, beside what it
 * did. */
#include "session/captures/capture_file.h"

#include "captures.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/processors.h"

#define SLOW 20 /* its number */
#define WAITS_MS                                                                                   \
    400 /* long beside the time after which it is looked at, on a busy machine, too                \
         */

/* ---- a machine that says at which clock it runs: files of a tree of the test's own ---- */

bool __real_pki_clock_rates_read(const char *root, const pki_cpus *of, double *now, double *most);
bool __wrap_pki_clock_rates_read(const char *root, const pki_cpus *of, double *now, double *most);
uint64_t __real_pki_heat_read(const char *root, const pki_cpus *of);
uint64_t __wrap_pki_heat_read(const char *root, const pki_cpus *of);

bool __wrap_pki_clock_rates_read(const char *root, const pki_cpus *of, double *now, double *most)
{
    (void)root;
    return __real_pki_clock_rates_read(the_folder, of, now, most);
}

uint64_t __wrap_pki_heat_read(const char *root, const pki_cpus *of)
{
    (void)root;
    return __real_pki_heat_read(the_folder, of);
}

/* Replaced as a whole: it may be read meanwhile. */
static void write_number(unsigned cpu, const char *folder, const char *name, unsigned long number)
{
    char path[200], text[32];
    char at[] = "sys/devices/system/cpu/";
    for (char *end = strchr(at, '/'); end; *end = '/', end = strchr(end + 1, '/')) {
        *end = 0;
        mkdir(at, 0700);
    }
    snprintf(path, sizeof path, "%scpu%u", at, cpu);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%scpu%u/%s", at, cpu, folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%scpu%u/%s/%s", at, cpu, folder, name);
    snprintf(text, sizeof text, "%lu\n", number);
    write_file("number", text);
    assert_int_equal(rename("number", path), 0);
}

static void script_clocks(unsigned long khz, unsigned long heat)
{
    for (unsigned i = 0; i < (unsigned)sysconf(_SC_NPROCESSORS_CONF); i++) {
        write_number(i, "cpufreq", "scaling_cur_freq", khz);
        write_number(i, "cpufreq", "cpuinfo_max_freq", 4000000);
        write_number(i, "thermal_throttle", "core_throttle_count", heat);
    }
}

/* ---- a slow step ---- */

static json_t *capture_of(void (*act)(void))
{
    begin(.capture = "slow=1.5,floor:20000", .history_steps = 64);
    steps(SLOW, 2000);
    pk_region_begin(&work);
    act();
    pk_region_end(&work);
    pk_step(32);
    steps(5, 2000);
    assert_int_equal(pk_stop(), PK_OK);
    return capture_of_slow(SLOW);
}

static const char *text(const json_t *event, const char *key)
{
    const char *is = json_string_value(json_object_get(json_object_get(event, "args"), key));
    return is ? is : "";
}

/* Of that name, and which says so much of what; NULL: none does. */
static const json_t *seen(const json_t *d, const char *name, const char *key, const char *part)
{
    const json_t *events = member(d, "traceEvents"), *e;
    size_t i;
    json_array_foreach(events, i, e)
    {
        const char *cat = json_string_value(json_object_get(e, "cat"));
        const char *is = json_string_value(json_object_get(e, "name"));
        if (cat && is && strcmp(cat, "thread_state") == 0 && strcmp(is, name) == 0 &&
            strstr(text(e, key), part))
            return e;
    }
    return NULL;
}

/* Where the kernel shows nobody what a thread waits for. */
static bool has_looks(void)
{
    bool can = access("/proc/thread-self/syscall", R_OK) == 0;
    int fd = can ? open("/proc/thread-self/syscall", O_RDONLY | O_CLOEXEC) : -1;
    char c;
    can = fd >= 0 && read(fd, &c, 1) == 1;
    if (fd >= 0)
        close(fd);
    if (!can)
        print_message("# /proc/PID/syscall: %s\n", strerror(errno));
    return can;
}

/* ---- what it waits for ---- */

static int ends[2];

static void *write_later(void *nothing)
{
    usleep(WAITS_MS * 1000);
    assert_int_equal(write(ends[1], "x", 1), 1);
    return nothing;
}

static void read_it(void)
{
    char c;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, write_later, NULL), 0);
    assert_int_equal(read(ends[0], &c, 1), 1);
    assert_int_equal(pthread_join(other, NULL), 0);
    close(ends[0]);
    close(ends[1]);
}

static void a_pipe(void **state)
{
    (void)state;
    if (!has_looks())
        skip();
    assert_int_equal(pipe(ends), 0);
    json_t *d = capture_of(read_it);
    assert_non_null(seen(d, "pipe", "call", "read"));
    assert_null(seen(d, "lock", "call", ""));
    assert_null(seen(d, "lower clock", "", "")); /* nothing here says which it is */
    json_decref(d);
}

static void a_socket(void **state)
{
    (void)state;
    if (!has_looks())
        skip();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    json_t *d = capture_of(read_it);
    assert_non_null(seen(d, "socket", "call", "read"));
    json_decref(d);
}

static void poll_it(void)
{
    struct pollfd first = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&first, 1, WAITS_MS), 0);
}

static void a_poll_on_a_socket(void **state)
{
    (void)state;
    if (!has_looks())
        skip();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    json_t *d = capture_of(poll_it);
    assert_non_null(seen(d, "socket", "call", "poll"));
    json_decref(d);
    close(ends[0]);
    close(ends[1]);
}

static void sleep_a_while(void)
{
    usleep(WAITS_MS * 1000);
}

/* The first late step may be looked at; then that has to rest. */
static void no_more_than_allowed(void **state)
{
    (void)state;
    bool left_out = false;
    char path[64];
    begin(.capture = "slow=1.5,floor:20000", .history_steps = 64, .overhead_max = 1e-5);
    steps(SLOW, 2000);
    for (int i = 0; i < 2; i++) {
        sleep_a_while();
        pk_step(32);
        steps(5, 2000);
    }
    assert_int_equal(pk_stop(), PK_OK);
    for (int first = 0; first < 2 * SLOW; first++) {
        snprintf(path, sizeof path, "run-0-%d.json", first);
        json_t *d = exists(path) ? load_document(path) : NULL;
        left_out |= d && seen(d, "not told", "call", "looks");
        json_decref(d);
    }
    assert_true(left_out);
}

/* A writer that takes long of a processor. */
bool __real_pki_capture_file_write(pki_capture_job *job);
bool __wrap_pki_capture_file_write(pki_capture_job *job);

static uint64_t writing_takes; /* ms */

bool __wrap_pki_capture_file_write(pki_capture_job *job)
{
    uint64_t ms = __atomic_load_n(&writing_takes, __ATOMIC_RELAXED) * 1000000;
    for (uint64_t until = pki_read_clock(CLOCK_THREAD_CPUTIME_ID) + ms;
         pki_read_clock(CLOCK_THREAD_CPUTIME_ID) < until;)
        ;
    return __real_pki_capture_file_write(job);
}

static bool is_any_written(void)
{
    char path[64];
    bool any = false;
    for (int first = 0; first < 2 * SLOW && !any; first++) {
        snprintf(path, sizeof path, "run-0-%d.json", first);
        any = exists(path);
    }
    return any;
}

static bool is_any_left_out(void)
{
    bool left_out = false;
    char path[64];
    for (int first = 0; first < 10000; first++) {
        snprintf(path, sizeof path, "run-0-%d.json", first);
        json_t *d = exists(path) ? load_document(path) : NULL;
        left_out |= d && seen(d, "not told", "call", "looks");
        json_decref(d);
    }
    return left_out;
}

/* Two late steps, the second once the first one's capture has been written. */
static bool second_is_left_out(uint64_t ms)
{
    __atomic_store_n(&writing_takes, ms, __ATOMIC_RELAXED);
    begin(.capture = "slow=1.5,floor:20000", .history_steps = 64, .overhead_max = 0.01);
    steps(SLOW, 2000);
    for (int i = 0; i < 2; i++) {
        sleep_a_while();
        pk_step(32);
        while (!is_any_written())
            steps(50, 2000);
        steps(100, 2000); /* and what that took is known */
    }
    assert_int_equal(pk_stop(), PK_OK);
    __atomic_store_n(&writing_takes, (uint64_t)0, __ATOMIC_RELAXED);
    return is_any_left_out();
}

/* What it takes to write captures is of the same bound. */
static void captures_are_paid_for(void **state)
{
    (void)state;
    assert_true(second_is_left_out(150));
}

/* Flushes of the program's own have taken more than all that perfkit may, for a while. */
static void all_is_of_one_bound(void **state)
{
    (void)state;
    begin(.capture = "slow=1.5,floor:20000", .history_steps = 64, .overhead_max = 0.01);
    for (uint64_t until = pki_read_clock(CLOCK_THREAD_CPUTIME_ID) + 400000000;
         pki_read_clock(CLOCK_THREAD_CPUTIME_ID) < until;)
        assert_int_equal(pk_flush(), PK_OK);
    steps(300, 2000); /* in which it becomes known */
    sleep_a_while();
    pk_step(32);
    steps(5, 2000);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(is_any_left_out());
}

static void asleep(void **state)
{
    (void)state;
    if (!has_looks())
        skip();
    json_t *d = capture_of(sleep_a_while);
    assert_non_null(seen(d, "sleep", "call", "nanosleep"));
    json_decref(d);
}

/* ---- locks ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pk_region compact = PK_REGION_OF(PK_COMPUTE, "compact");
static int holds;

static void *hold(void *nothing)
{
    pk_thread_set_name("janitor");
    pthread_mutex_lock(&lock);
    pk_region_begin(&compact);
    __atomic_store_n(&holds, 1, __ATOMIC_RELEASE);
    usleep(WAITS_MS * 1000);
    pk_region_end(&compact);
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void wait_for_lock(void)
{
    pthread_t other;
    holds = 0;
    assert_int_equal(pthread_create(&other, NULL, hold, NULL), 0);
    while (!__atomic_load_n(&holds, __ATOMIC_ACQUIRE))
        usleep(100);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    assert_int_equal(pthread_join(other, NULL), 0);
}

static void a_lock(void **state)
{
    (void)state;
    if (!has_looks())
        skip();
    json_t *d = capture_of(wait_for_lock);
    const json_t *e = seen(d, "lock", "by", "janitor");
    if (!e) /* under a sanitizer locks are its own, and in a jail memory is not read */
        e = seen(d, "thread", "by", "janitor");
    assert_non_null(e);
    assert_string_equal(text(e, "by_region"), "compact");
    json_decref(d);
}

static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static bool loaded;

static void *load(void *nothing)
{
    pk_thread_set_name("loader");
    pk_region_begin(&compact);
    for (uint64_t until = pki_monotonic_ns() + WAITS_MS * 1000000ull; pki_monotonic_ns() < until;)
        ;
    pk_region_end(&compact);
    pthread_mutex_lock(&lock);
    loaded = true;
    pthread_cond_signal(&done);
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void wait_for_loader(void)
{
    pthread_t other;
    loaded = false;
    assert_int_equal(pthread_create(&other, NULL, load, NULL), 0);
    pthread_mutex_lock(&lock);
    while (!loaded)
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
    assert_int_equal(pthread_join(other, NULL), 0);
}

static void another_thread(void **state)
{
    (void)state;
    if (!has_looks())
        skip();
    json_t *d = capture_of(wait_for_loader);
    const json_t *e = seen(d, "thread", "by", "loader");
    assert_non_null(e);
    assert_string_equal(text(e, "by_region"), "compact");
    json_decref(d);
}

/* ---- where its processor is ---- */

static void compute(void)
{
    for (uint64_t until = pki_monotonic_ns() + WAITS_MS * 1000000ull; pki_monotonic_ns() < until;)
        ;
}

/* In this program, or in what it asks for the time. */
static void samples(void **state)
{
    (void)state;
    json_t *d = capture_of(compute);
    const json_t *events = member(d, "traceEvents"), *e;
    size_t i, mine = 0, all = 0;
    json_array_foreach(events, i, e)
    {
        const char *name = json_string_value(json_object_get(e, "name"));
        all += text(e, "stack")[0] != 0;
        mine += text(e, "stack")[0] &&
                (strstr(name, "test_looks+0x") || strstr(name, "[vdso]+0x") || strstr(name, ".so"));
    }
    print_message("# %zu samples, %zu of them here\n", all, mine);
    json_decref(d);
    if (!all)
        skip(); /* the kernel gives none */
    assert_true(mine * 2 > all);
}

/* ---- at which clock its processor runs ---- */

static void spin(uint64_t ms)
{
    for (uint64_t until = pki_monotonic_ns() + ms * 1000000; pki_monotonic_ns() < until;)
        ;
}

/* What its capture says of it; NULL: none does. Of a busy machine there may be other slow steps. */
static json_t *lower_clock(unsigned long slow_khz, unsigned long heat)
{
    char path[64];
    const json_t *e;
    for (int first = 0; first < 170; first++) { /* those of the session before */
        snprintf(path, sizeof path, "run-0-%d.json", first);
        unlink(path);
    }
    script_clocks(3000000, 5);
    begin(.capture = "slow=1.5,floor:20000", .history_steps = 64);
    for (int i = 0; i < 160; i++) {
        spin(10);
        pk_step(32);
    }
    script_clocks(slow_khz, 5);
    spin(2 * WAITS_MS); /* until it is looked at, of a busy machine, too */
    script_clocks(slow_khz, heat);
    spin(WAITS_MS / 2);
    pk_step(32);
    script_clocks(3000000, heat);
    steps(5, 2000);
    assert_int_equal(pk_stop(), PK_OK);
    json_t *said = NULL;
    for (int first = 0; first < 170; first++) {
        snprintf(path, sizeof path, "run-0-%d.json", first);
        json_t *d = exists(path) ? load_document(path) : NULL;
        if (d && !said && (e = seen(d, "lower clock", "", "")))
            said = json_deep_copy(json_object_get(e, "args"));
        json_decref(d);
    }
    return said;
}

static void clock_of_the_processor(void **state)
{
    (void)state;
    json_t *said = lower_clock(1500000, 8);
    assert_non_null(said);
    assert_int_equal(number(said, "usual_khz"), 3000000);
    assert_int_equal(number(said, "khz"), 1500000);
    assert_string_equal(json_string_value(member(said, "by")), "heat");
    json_decref(said);
    said = lower_clock(1500000, 5);
    assert_non_null(said);
    assert_null(json_object_get(said, "by"));
    json_decref(said);
    assert_null(lower_clock(2900000, 8)); /* as clocks go */
}

/* ---- what is no late step ---- */

static void nothing_of_usual_steps(void **state)
{
    (void)state;
    begin(.capture = "slow=50,floor:5000000;steps=10-12", .history_steps = 64);
    steps(30, 2000);
    assert_int_equal(pk_stop(), PK_OK);
    json_t *d = load_document("run-0-10.json");
    static const char *const none[] = {"sleep", "pipe", "lock", "thread", "neighbour"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_null(seen(d, none[i], "call", ""));
    json_decref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {in_folder(a_pipe),
                                       in_folder(a_socket),
                                       in_folder(a_poll_on_a_socket),
                                       in_folder(asleep),
                                       in_folder(no_more_than_allowed),
                                       in_folder(captures_are_paid_for),
                                       in_folder(all_is_of_one_bound),
                                       in_folder(a_lock),
                                       in_folder(another_thread),
                                       in_folder(samples),
                                       in_folder(clock_of_the_processor),
                                       in_folder(nothing_of_usual_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
