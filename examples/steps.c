/* steps.c - a training loop in miniature: kinds, phases and pk_step, and the report on its steps.
 *
 *     cc steps.c $(pkg-config --cflags --libs pk) -o steps && ./steps
 *
 * The report calls this loop input-bound; its slowest steps are those with a checkpoint.
 */
#include <inttypes.h>
#include <pk/pk.h>
#include <stdio.h>
#include <time.h>

enum { STEPS = 100, SAMPLES = 32 };

/* What the time is spent on; the report adds up the self time of each kind, per step. */
static pk_region load = PK_REGION_OF(PK_DATA, "load");
static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region backward = PK_REGION_OF(PK_COMPUTE, "backward");
static pk_region checkpoint = PK_REGION_OF(PK_IO, "checkpoint");

/* Stands for whatever takes so long. */
static void spend(double milliseconds)
{
    struct timespec time = {.tv_nsec = (long)(milliseconds * 1e6)};
    nanosleep(&time, NULL);
}

/* Phases that follow each other share the clock read between them. */
static void train(int step)
{
    pk_region_begin(&load);
    spend(7 + step % 3);
    pk_region_next(&load, &forward);
    spend(1);
    pk_region_next(&forward, &backward);
    spend(2);
    pk_region_end(&backward);
    if (step % 40 == 39) {
        PK_REGION_SCOPE(checkpoint);
        spend(15);
    }
}

int main(void)
{
    pk_stats stats;
    if (pk_start(pk_options(.trace_path = "steps.json", .report_path = "-")) != PK_OK)
        fprintf(stderr, "perfkit: %s\n", pk_error_message());
    for (int step = 0; step < STEPS; step++) {
        train(step);
        pk_step(SAMPLES); /* this step is over; so many samples were in it */
    }
    pk_stop();

    pk_step_stats(&stats);
    printf("%" PRIu64 " steps, p50 %.1f ms, p99 %.1f ms\n", stats.count,
           (double)pk_stats_quantile(&stats, 0.5) * 1e-6,
           (double)pk_stats_quantile(&stats, 0.99) * 1e-6);
    return 0;
}
