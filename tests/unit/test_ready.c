/* How long the thread that makes steps had no processor (core/ready.h): what of it lies between two
 * borders of waiting is not its own, what another thread takes from it is, and a step has it. */
#include "session.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/processors.h"
#include "core/overhead.h"
#include "measure/steps/steps.h"
#include "session/report/run.h"
#include "valgrind.h"

#define MS UINT64_C(1000000)
#define PATIENCE (20000 * MS)

static pki_summary summary;

/* ---- a thread that wants the same processor ---- */

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
    uint64_t own = compute(5 * MS);
    pk_comm_border_on_(1);
    uint64_t waiting = compute(20 * MS);
    pk_comm_border_on_(0);
    pk_step(1);
    uint64_t all = waited_so_far() - first;
    pki_store(&enough, 1u);
    pthread_join(other, NULL);
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &summary));
    if (!own || !waiting)
        skip(); /* an emulator's /proc, or a scheduler that does not tell */
    /* The clocks by which it is off its processor are others than the account's: some us a switch.
     */
    assert_in_range(told(), own - own / 100 - PKI_READY_LEAST,
                    all - waiting + own / 100 + PKI_READY_LEAST);
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

/* ---- where it was ---- */

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

/* ---- blocks ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(where_a_step_was_is_told, start_session, stop_session),
        cmocka_unit_test_setup_teardown(the_time_of_others_is_told_from_waiting, start_session,
                                        stop_session),
        cmocka_unit_test_setup_teardown(of_borders_there_is_always_something_told, start_session,
                                        stop_session),
        cmocka_unit_test_setup_teardown(without_borders_nothing_is_told, start_session,
                                        stop_session),
        cmocka_unit_test(blocks_add_it_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
