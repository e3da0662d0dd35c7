/* How long the thread that makes steps had no processor (core/ready.h). */
#include "session.h"
#include "valgrind.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <pk/private.h>

#include "base/atomic.h"
#include "base/processors.h"
#include "core/overhead.h"
#include "core/registry.h"
#include "measure/steps/steps.h"
#include "session/report/run.h"

/* ---- how long the thread that makes steps had no processor (core/ready.h) ---- */

/* What of it lies between two borders of waiting is not its own, what another thread takes from it
 * is, and a step has it. */

#define MS UINT64_C(1000000)
#define PATIENCE (20000 * MS)

static pki_summary summary;

/* -- a thread that wants the same processor -- */

static uint32_t enough;

static void *spin(void *none)
{
    while (!pki_load(&enough))
        ;
    return none;
}

static bool share_a_processor(pthread_t *other)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    int here = sched_getcpu();
    CPU_SET(here > 0 ? (size_t)here : 0, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 &&
           pthread_create(other, NULL, spin, NULL) == 0; /* which inherits it */
}

/* The clocks by which a thread is off its processor are others than the account's: some us a
 * switch. */
#define SWITCH_NS 10000u

static uint64_t switches_so_far(void)
{
    struct rusage r;
    return getrusage(RUSAGE_THREAD, &r) == 0 ? (uint64_t)(r.ru_nivcsw + r.ru_nvcsw) : 0;
}

static uint64_t waited_so_far(void)
{
    pki_thread_cpu t;
    return pki_thread_cpu_read("", (uint32_t)syscall(SYS_gettid), false, &t) ? t.ready : 0;
}

/* Computes until it has been without a processor for so long. How long that was; 0: it never is. */
static uint64_t compute(uint64_t least)
{
    uint64_t before = waited_so_far(), since = pki_monotonic_ns(), waited = 0;
    while (waited < least && pki_monotonic_ns() - since < PATIENCE)
        waited = waited_so_far() - before;
    return waited < least ? 0 : waited;
}

static uint64_t told(void)
{
    uint64_t sum = 0;
    const pki_loop_row *loop = summary.stages.loops;
    for (size_t i = 0; loop && i < loop->no_processor_count; i++)
        sum += loop->no_processor[i];
    return sum;
}

static void the_time_of_others_is_told_from_waiting(void **state)
{
    (void)state;
    pthread_t other = pthread_self();
    if (is_slow() || !share_a_processor(&other))
        skip();
    pk_step(1);
    pk_comm_border_on_(1);
    uint64_t first = waited_so_far();
    pk_comm_border_on_(0);
    uint64_t switches = switches_so_far(), own = compute(5 * MS);
    pk_comm_border_on_(1);
    uint64_t waiting = compute(20 * MS);
    pk_comm_border_on_(0);
    pk_step(1);
    uint64_t all = waited_so_far() - first;
    uint64_t apart = PKI_READY_LEAST + (switches_so_far() - switches) * SWITCH_NS;
    pki_store(&enough, 1u);
    pthread_join(other, NULL);
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &summary));
    if (!own || !waiting)
        skip(); /* an emulator's /proc, or a scheduler that does not tell */
    assert_in_range(told(), own - own / 100 - apart, all - waiting + own / 100 + apart);
    assert_int_equal(summary.stages.loops->no_processor_count, 2);
    assert_int_equal(summary.stages.loops->no_processor[0], 0);
    pki_summary_finish(&summary);
}

/* Which is not the same as knowing nothing. */
static void of_borders_there_is_always_something_told(void **state)
{
    (void)state;
    pk_step(1);
    for (int i = 0; i < 9; i++) {
        pk_comm_border_on_(1);
        pk_comm_border_on_(0);
        pk_step(1);
    }
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &summary));
    const pki_loop_row *loop = summary.stages.loops;
    assert_int_equal(loop->no_processor_count, loop->number_count / summary.stages.width);
    pki_summary_finish(&summary);
}

static void without_borders_nothing_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        pk_step(1);
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &summary));
    assert_int_equal(summary.stages.loops->no_processor_count, 0);
    pki_summary_finish(&summary);
}

/* -- a program that waits -- */

/* Looks at its processors' time and at its memory are put off, and made up for: their sums are as
 * ever. First the short rounds are over in which the clock is learnt; and who sleeps for less time
 * than that does not wait, by a sanitizer's measure. */
static void a_program_that_waits_is_known(void **state)
{
    (void)state;
    pk_step(1);
    usleep(600000);
    while (!pki_load(&pki_the_session.idle))
        usleep(100000);
    while (pki_load(&pki_the_session.idle))
        compute(MS);
    while (!pki_load(&pki_the_session.idle))
        usleep(100000);
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &summary));
    const pki_processor *stepper = &pki_the_session.toll.stepper;
    assert_true(stepper->observed >= 100 * MS && stepper->running >= MS);
    pki_summary_finish(&summary);
}

/* -- where it was -- */

static bool move_to(size_t processor)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

static void expect_seat(size_t step, size_t processor, uint64_t least, uint64_t most)
{
    const uint64_t *seat = summary.stages.loops->seats + 2 * step;
    assert_int_equal(seat[0], processor);
    assert_in_range(seat[1], least, most);
}

/* Four steps: on the first one throughout; on the way to the second one, without borders and with
 * them; and there. */
static void make_steps(size_t first, size_t second)
{
    assert_true(move_to(first));
    pk_step(1);
    pk_step(1);
    assert_true(move_to(second));
    pk_step(1);
    assert_true(move_to(first));
    pk_comm_border_on_(1);
    pk_comm_border_on_(0);
    uint64_t since = pki_monotonic_ns();
    while (pki_monotonic_ns() - since < 5 * MS)
        ;
    assert_true(move_to(second));
    pk_comm_border_on_(1);
    pk_comm_border_on_(0);
    pk_step(1);
}

static void where_a_step_was_is_told(void **state)
{
    (void)state;
    cpu_set_t allowed;
    size_t processors[2], found = 0;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (size_t i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &allowed))
            processors[found++] = i;
    if (found < 2)
        skip();
    make_steps(processors[0], processors[1]);
    assert_int_equal(sched_setaffinity(0, sizeof allowed, &allowed), 0);
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &summary));
    assert_int_equal(summary.stages.loops->seat_count, 2 * 4);
    expect_seat(0, processors[0], 1000, 1000);
    expect_seat(1, processors[0], 1000, 1000);
    expect_seat(2, processors[0], 500, 500); /* the one where it was first */
    expect_seat(3, processors[1], 500, 999);
    pki_summary_finish(&summary);
}

/* -- blocks -- */

static const char *no_name(void *user, uint32_t id)
{
    (void)user;
    (void)id;
    return NULL;
}

static void blocks_add_it_up(void **state)
{
    (void)state;
    pki_steps *steps = pki_steps_create();
    for (uint64_t i = 0; i < 1000; i++)
        pki_steps_add(steps, &(pki_step){.index = i,
                                         .start = i * MS,
                                         .duration = MS,
                                         .no_processor = i,
                                         .borders_told = true,
                                         .seat = (i % 4 ? 3 + 1 : 5 + 1) + (800u << 16),
                                         .broken_down = true});
    assert_true(pki_steps_fill(steps, 1, no_name, NULL, &summary));
    const pki_loop_row *loop = summary.stages.loops;
    assert_int_equal(loop->no_processor_count, loop->number_count / summary.stages.width);
    uint64_t length = loop->numbers[PKI_BLOCK_STEPS];
    assert_int_equal(length % 4, 0);
    assert_int_equal(loop->no_processor[0], length * (length - 1) / 2);
    assert_int_equal(told(), 1000 * 999 / 2);
    assert_int_equal(loop->seat_count, 2 * loop->no_processor_count);
    for (size_t i = 0; i < loop->seat_count; i += 2) {
        assert_int_equal(loop->seats[i], 3);
        assert_int_equal(loop->seats[i + 1], 800 * 3 / 4);
    }
    pki_summary_finish(&summary);
    pki_steps_destroy(steps);
}

/* Of a rank whose steps are numbered from another one on: but for the first and the last they are
 * those of a rank that has them all. */
static void blocks_are_those_of_other_ranks(void **state)
{
    (void)state;
    for (uint64_t first = 0; first < 300; first += 17) {
        pki_steps *steps = pki_steps_create();
        for (uint64_t i = first; i < 1000; i++)
            pki_steps_add(steps, &(pki_step){.index = i, .start = i * MS, .duration = MS});
        assert_true(pki_steps_fill(steps, 1, no_name, NULL, &summary));
        const pki_loop_row *loop = summary.stages.loops;
        uint64_t next = first, width = summary.stages.width, most = 0;
        for (const uint64_t *b = loop->numbers; b < loop->numbers + loop->number_count; b += width)
            most = PKI_MAX(most, b[PKI_BLOCK_STEPS]);
        for (const uint64_t *b = loop->numbers; b < loop->numbers + loop->number_count;
             b += width) {
            assert_int_equal(b[PKI_BLOCK_INDEX], next);
            assert_int_equal(b[PKI_BLOCK_TIME], b[PKI_BLOCK_STEPS] * MS);
            assert_true(next == first || next % most == 0);
            next += b[PKI_BLOCK_STEPS];
        }
        assert_int_equal(next, 1000);
        assert_true(most > 1);
        pki_summary_finish(&summary);
        pki_steps_destroy(steps);
    }
}

static const struct CMUnitTest ready_tests[] = {
    cmocka_unit_test_setup_teardown(where_a_step_was_is_told, start_session, stop_session),
    cmocka_unit_test_setup_teardown(the_time_of_others_is_told_from_waiting, start_session,
                                    stop_session),
    cmocka_unit_test_setup_teardown(of_borders_there_is_always_something_told, start_session,
                                    stop_session),
    cmocka_unit_test_setup_teardown(without_borders_nothing_is_told, start_session, stop_session),
    cmocka_unit_test_setup_teardown(a_program_that_waits_is_known, start_session, stop_session),
    cmocka_unit_test(blocks_add_it_up),
    cmocka_unit_test(blocks_are_those_of_other_ranks),
};

/* ---- when the scheduler's account is read ---- */

/* By doubles of the two calls that look, and what is told of it. */

#define US UINT64_C(1000)
#define PAUSE (100 * PKI_READY_LEAST) /* after a read that takes as long as counts */
#define NOT_A_FILE 1000000

static pki_summary ready_reads_summary;

static struct {
    uint64_t opened;
    uint64_t waited;   /* what the account says */
    uint64_t takes;    /* ns, to open it */
    uint64_t switches; /* of the thread; 0: nothing is doubled */
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
    if ((int)who == RUSAGE_THREAD && account.switches) {
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
    if (number == SYS_openat && strcmp((const char *)a[1], "/proc/thread-self/schedstat") == 0 &&
        account.switches) /* last: perfkit's thread makes calls too */
        return open_account();
    if (number == SYS_read && a[0] == NOT_A_FILE)
        return snprintf((char *)a[1], (size_t)a[2], "1 %llu 1\n",
                        (unsigned long long)account.waited);
    if (number == SYS_close && a[0] == NOT_A_FILE)
        return 0;
    return real_syscall(number, a);
}

/* -- a session -- */

static int begin(void **state)
{
    account = (__typeof__(account)){.switches = 1, .takes = PKI_READY_LEAST + 20 * US};
    return start_session(state);
}

/* All steps' sum, and of how many blocks anything is told. */
static uint64_t ready_reads_told(size_t *blocks)
{
    uint64_t sum = 0;
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &ready_reads_summary));
    const pki_loop_row *loop = ready_reads_summary.stages.loops;
    for (size_t i = 0; i < loop->no_processor_count; i++)
        sum += loop->no_processor[i] == PKI_READY_UNKNOWN ? 0 : loop->no_processor[i];
    *blocks = loop->no_processor_count;
    pki_summary_finish(&ready_reads_summary);
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
    assert_int_equal(ready_reads_told(&blocks), 0);
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
    assert_int_equal(ready_reads_told(&blocks), 2 * MS);
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
    assert_in_range(ready_reads_told(&blocks), 0, off + passed / 100 + MS);
}

/* -- blocks of threads that have ended -- */

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
    assert_int_equal(ready_reads_told(&blocks), 0);
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
    assert_int_equal(ready_reads_told(&blocks), 0);
    assert_int_equal(blocks, 0);
}

static const struct CMUnitTest ready_reads_tests[] = {
    cmocka_unit_test_setup_teardown(without_a_switch_it_is_read_once, begin, stop_session),
    cmocka_unit_test_setup_teardown(reads_take_a_hundredth, begin, stop_session),
    cmocka_unit_test_setup_teardown(an_account_that_is_not_there_is_left_alone, begin,
                                    stop_session),
    cmocka_unit_test_setup_teardown(what_is_its_own_is_told, begin, stop_session),
    cmocka_unit_test_setup_teardown(no_more_than_it_was_off_is_told, begin, stop_session),
    cmocka_unit_test_setup_teardown(a_thread_has_nothing_of_the_one_before, begin, stop_session),
    cmocka_unit_test_setup_teardown(what_it_left_is_not_told_of_the_next_one, begin, stop_session),
};

int main(void)
{
    int failed = cmocka_run_group_tests(ready_tests, NULL, NULL);
    failed += cmocka_run_group_tests(ready_reads_tests, NULL, NULL);
    return failed;
}
