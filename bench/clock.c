/* How far a trace's clock is from CLOCK_MONOTONIC: while the session runs, read from both at once.
 */
#include <pk/pk.h>

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "session/session.h"

#include "harness.h"

enum { EVERY_MS = 10 };

typedef struct worst {
    double error, bracket;
} worst;

/* In ns; the bracket is how well both clocks could be read together. */
static void look(const pki_clock_map *map, worst *w)
{
    pki_clock_sample now = pki_clock_read(map->monotonic);
    double error = (double)pki_clock_ns(map, now.ticks) - (double)(now.ns - map->origin_ns);
    if (fabs(error) > w->error)
        w->error = fabs(error);
    w->bracket = (double)now.uncertainty * pki_clock_unit_ns(map);
}

static void watch(const pki_clock_map *map, uint64_t until, worst *w)
{
    const struct timespec pause = {0, EVERY_MS * 1000000};
    while (pki_monotonic_ns() < until) {
        look(map, w);
        nanosleep(&pause, NULL);
    }
}

static void print(const char *when, double seconds, const worst *w)
{
    printf("  %-36s %8.0f ns   bar %6.0f ns   (read to +-%.0f ns)\n", when, w->error,
           1000 + seconds * 1000, w->bracket);
}

int main(int argc, char **argv)
{
    unsigned long seconds = bench_number(argc, argv, "--seconds", 10);
    worst early = {0, 0}, late = {0, 0}, end = {0, 0};
    if (pk_start(NULL) != PK_OK)
        bench_fail(pk_error_message());
    const pki_clock_map *map = &pki_the_session.arena->header->clock;
    uint64_t start = pki_monotonic_ns();
    watch(map, start + 1000000000, &early);
    watch(map, start + seconds * 1000000000u, &late);
    look(map, &end);
    printf("largest error of the clock\n");
    print("in the first second", 1, &early);
    print("after that", (double)seconds, &late);
    print("at the end", (double)seconds, &end);
    printf("  %-36s %8.3f ppm, %u segments, step %llu ticks\n", "rate against the first estimate",
           pki_clock_ppm(map), map->count, (unsigned long long)map->step_ticks);
    return pk_stop() == PK_OK ? 0 : 1;
}
