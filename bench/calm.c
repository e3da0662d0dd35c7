/* How often the watchdog raises an alarm in a run that never hangs: steps of 100 ms, one of 20
 * times as long for a compiler, announced by a limit, and checkpoints of 30 times as long, in a
 * region of kind PK_IO, with hang_seconds = 1, which all of these exceed.
 *
 *     bench-calm [--minutes N]
 *
 * N: 60. Prints the number of steps, checkpoints and alarms. Steps wait rather than compute, so
 * the run can share its machine with any other: being held up for a second is no hang either.
 */
#include <pk/pk.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "harness.h"

enum { STEP_MS = 100, COMPILE_AT = 10, CHECKPOINT_EACH = 50, MINUTES = 60 };

static pk_region load = PK_REGION_OF(PK_DATA, "load"), forward = PK_REGION("forward");
static pk_region compile = PK_REGION("compile"), checkpoint = PK_REGION_OF(PK_IO, "checkpoint");
static unsigned alarms;

static void hear(void *user, pk_log_level level, const char *message)
{
    (void)user;
    puts(message);
    if (level == PK_LOG_ERROR)
        __atomic_add_fetch(&alarms, 1, __ATOMIC_RELAXED);
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void one_step(unsigned long step)
{
    {
        PK_REGION_SCOPE(load);
        wait_ms(STEP_MS / 5);
    }
    {
        PK_REGION_SCOPE(forward);
        wait_ms(STEP_MS - STEP_MS / 5);
    }
    if (step == COMPILE_AT) {
        PK_REGION_SCOPE(compile);
        wait_ms(20 * STEP_MS);
    }
    if (step % CHECKPOINT_EACH == 0) {
        PK_REGION_SCOPE(checkpoint);
        wait_ms(30 * STEP_MS);
    }
    pk_step(1);
}

int main(int argc, char **argv)
{
    uint64_t until =
        bench_wall_ns() + bench_number(argc, argv, "--minutes", MINUTES) * UINT64_C(60000000000);
    unsigned long step = 0;
    if (pk_start(pk_options(.hang_seconds = 1, .log = hear, .backends = "none")) != PK_OK)
        return 1;
    pk_region_set_limit(&compile, 60);
    while (bench_wall_ns() < until)
        one_step(++step);
    printf("%lu steps, %lu checkpoints: %u alarms\n", step, step / CHECKPOINT_EACH, alarms);
    return pk_stop() != PK_OK;
}
