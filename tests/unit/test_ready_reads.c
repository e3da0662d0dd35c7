/* When the scheduler's account is read (core/ready.h), by doubles of the two calls that look, and
 * what is told of it. */
#include "session.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/overhead.h"
#include "core/registry.h"
#include "session/report/run.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define PAUSE (100 * PKI_READY_LEAST) /* after a read that takes as long as counts */
#define NOT_A_FILE 1000000

static pki_summary summary;

static struct {
    uint64_t opened;
    uint64_t waited;   /* what the account says */
    uint64_t takes;    /* ns, to open it */
    uint64_t switches; /* of the thread; 1 at least */
    bool absent;
} account;

static void pass(uint64_t ns)
{
    for (uint64_t since = pki_monotonic_ns(); pki_monotonic_ns() - since < ns;)
        ;
}

static int real_getrusage(int who, struct rusage *used)
{
    int (*next)(int, struct rusage *);
    void *symbol = dlsym(RTLD_NEXT, "getrusage");
    memcpy(&next, &symbol, sizeof next);
    return next(who, used);
}

int getrusage(__typeof__(RUSAGE_SELF) who, struct rusage *used)
{
    int result = real_getrusage((int)who, used);
    if ((int)who == RUSAGE_THREAD) {
        used->ru_nvcsw = (long)account.switches;
        used->ru_nivcsw = 0;
    }
    return result;
}

static long real_syscall(long number, const long a[6])
{
    long (*next)(long, ...);
    void *symbol = dlsym(RTLD_NEXT, "syscall");
    memcpy(&next, &symbol, sizeof next);
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long open_account(void)
{
    account.opened++;
    pass(account.takes);
    errno = account.absent ? ENOENT : 0;
    return account.absent ? -1 : NOT_A_FILE;
}

long syscall(long number, ...)
{
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_openat && strcmp((const char *)a[1], "/proc/thread-self/schedstat") == 0)
        return open_account();
    if (number == SYS_read && a[0] == NOT_A_FILE)
        return snprintf((char *)a[1], (size_t)a[2], "1 %llu 1\n",
                        (unsigned long long)account.waited);
    if (number == SYS_close && a[0] == NOT_A_FILE)
        return 0;
    return real_syscall(number, a);
}

/* ---- a session ---- */

static int begin(void **state)
{
    account = (__typeof__(account)){.switches = 1, .takes = PKI_READY_LEAST + 20 * US};
    return start_session(state);
}

/* All steps' sum, and of how many blocks anything is told. */
static uint64_t told(size_t *blocks)
{
    uint64_t sum = 0;
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &summary));
    const pki_loop_row *loop = summary.stages.loops;
    for (size_t i = 0; i < loop->no_processor_count; i++)
        sum += loop->no_processor[i] == PKI_READY_UNKNOWN ? 0 : loop->no_processor[i];
    *blocks = loop->no_processor_count;
    pki_summary_finish(&summary);
    return sum;
}

/* So many borders, each of which looks. How long they took. */
static uint64_t cross(int count, bool switched)
{
    uint64_t since = pki_monotonic_ns();
    for (int i = 0; i < count; i++) {
        pass(PKI_READY_LEAST + 20 * US);
        account.switches += switched;
        pk_comm_border_on_(i % 2 == 0);
    }
    return pki_monotonic_ns() - since;
}

static void without_a_switch_it_is_read_once(void **state)
{
    (void)state;
    pk_step(1);
    cross(200, false);
    assert_int_equal(account.opened, 1);
}

static void reads_take_a_hundredth(void **state)
{
    (void)state;
    pk_step(1);
    uint64_t took = cross(200, true);
    assert_in_range(account.opened, 1, 1 + took / PAUSE);
    uint64_t before = account.opened;
    pass(PAUSE + MS);
    pk_comm_border_on_(1); /* what was put off */
    assert_in_range(account.opened, before, before + 1);
    pass(PAUSE + MS);
    account.switches++;
    pk_comm_border_on_(0);
    assert_in_range(account.opened, before + 1, before + 2);
}

static void an_account_that_is_not_there_is_left_alone(void **state)
{
    size_t blocks;
    (void)state;
    account.absent = true;
    pk_step(1);
    uint64_t took = cross(200, true);
    assert_in_range(account.opened, 1, 1 + took / (1000 * MS));
    pk_step(1);
    assert_int_equal(told(&blocks), 0);
    assert_int_equal(blocks, 0);
}

/* Of the two sleeps the first is the program's own. */
static void what_is_its_own_is_told(void **state)
{
    const struct timespec nap = {0, (long)(PAUSE + MS)};
    size_t blocks;
    (void)state;
    pk_step(1);
    pk_comm_border_on_(1);
    pk_comm_border_on_(0);
    nanosleep(&nap, NULL);
    account.switches++;
    account.waited += 2 * MS;
    pk_comm_border_on_(1);
    nanosleep(&nap, NULL);
    account.switches++;
    account.waited += 3 * MS;
    pk_comm_border_on_(0);
    pk_step(1);
    assert_int_equal(told(&blocks), 2 * MS);
}

/* A switch alone says little: it was off its processor for less than it was ready. */
static void no_more_than_it_was_off_is_told(void **state)
{
    size_t blocks;
    (void)state;
    pk_step(1);
    uint64_t since = pki_monotonic_ns(), ran = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
    pk_comm_border_on_(1);
    pk_comm_border_on_(0);
    pass(PAUSE + MS);
    account.switches++;
    account.waited += 1000 * MS;
    pk_comm_border_on_(1);
    ran = pki_read_clock(CLOCK_THREAD_CPUTIME_ID) - ran;
    uint64_t passed = pki_monotonic_ns() - since;
    pk_step(1);
    uint64_t off = passed > ran ? passed - ran : 0;
    assert_in_range(told(&blocks), 0, off + passed / 100 + MS);
}

/* ---- blocks of threads that have ended ---- */

static void *step_and_wait(void *none)
{
    pk_step(1);
    pk_comm_border_on_(1);
    pk_comm_border_on_(0);
    return none;
}

static void run_one(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, step_and_wait, NULL), 0);
    pthread_join(thread, NULL);
    pk_flush();
}

static void a_thread_has_nothing_of_the_one_before(void **state)
{
    size_t blocks;
    (void)state;
    run_one();
    pass(PAUSE + MS);
    account.switches++;
    account.waited += 1000 * MS;
    run_one(); /* in the same block */
    pk_step(1);
    assert_int_equal(told(&blocks), 0);
}

/* Ends amid a step, of which something is its own. */
static void *leave_amid_a_step(void *none)
{
    const struct timespec nap = {0, (long)(PAUSE + MS)};
    (void)none;
    pk_step(1);
    pk_comm_border_on_(1);
    pk_comm_border_on_(0);
    nanosleep(&nap, NULL);
    account.switches++;
    account.waited += 2 * MS;
    pk_comm_border_on_(1);
    return pki_own;
}

static void *step_once(void *none)
{
    (void)none;
    pk_step(1);
    return pki_own;
}

static void what_it_left_is_not_told_of_the_next_one(void **state)
{
    pthread_t thread;
    void *block, *again;
    size_t blocks;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, leave_amid_a_step, NULL), 0);
    assert_int_equal(pthread_join(thread, &block), 0);
    assert_int_equal(pki_the_session.registry->ready.own, 2 * MS);
    pk_flush();
    assert_int_equal(pthread_create(&thread, NULL, step_once, NULL), 0);
    assert_int_equal(pthread_join(thread, &again), 0);
    assert_ptr_equal(again, block);
    assert_int_equal(told(&blocks), 0);
    assert_int_equal(blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_switch_it_is_read_once, begin, stop_session),
        cmocka_unit_test_setup_teardown(reads_take_a_hundredth, begin, stop_session),
        cmocka_unit_test_setup_teardown(an_account_that_is_not_there_is_left_alone, begin,
                                        stop_session),
        cmocka_unit_test_setup_teardown(what_is_its_own_is_told, begin, stop_session),
        cmocka_unit_test_setup_teardown(no_more_than_it_was_off_is_told, begin, stop_session),
        cmocka_unit_test_setup_teardown(a_thread_has_nothing_of_the_one_before, begin,
                                        stop_session),
        cmocka_unit_test_setup_teardown(what_it_left_is_not_told_of_the_next_one, begin,
                                        stop_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
