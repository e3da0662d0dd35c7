#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"

#define ONE ((uint64_t)1 << 32)
#define HORIZON_NS 1000000000.0 /* an error found now is gone this much later */
#define LARGEST_SLEW 500e-6     /* as adjtime does: no correction bends the rate by more */
#define TOLERANCE_NS 200.0      /* below this an error is the bracket's, not the clock's */
#define SETTLING 6              /* segments while the rate is still being learnt */

bool pki_read_line(const char *path, char *line, unsigned long size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, line, size - 1);
    close(fd);
    if (n <= 0)
        return false;
    line[n] = 0;
    line[strcspn(line, "\n")] = 0;
    return true;
}

pki_clock_sample pki_clock_read(uint32_t monotonic)
{
    pki_clock_sample best = {0, 0, UINT64_MAX};
    if (monotonic) {
        uint64_t now = pki_monotonic_ns();
        return (pki_clock_sample){now, now, 0};
    }
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < 16; i++) {
        uint64_t before = pki_cycle_counter();
        uint64_t ns = pki_monotonic_ns();
        uint64_t after = pki_cycle_counter();
        if (after - before < width) {
            width = after - before;
            best = (pki_clock_sample){before + width / 2, ns, width / 2};
        }
    }
    return best; /* uncertainty still in ticks; the map converts */
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Successive readings differ by what a reading takes; what all those differences are multiples of
 * is the step. */
uint64_t pki_clock_step(uint32_t monotonic)
{
    uint64_t step = 0;
    uint64_t last = pki_ticks(monotonic);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = pki_ticks(monotonic);
        step = now > last ? common_divisor(step, now - last) : step;
        last = now;
    }
    return step ? step : 1;
}

static uint64_t scale(uint64_t ticks, uint64_t rate)
{
    return (uint64_t)(((pki_u128)ticks * rate) >> 32);
}

static double rate_between(pki_clock_sample a, pki_clock_sample b)
{
    return b.ticks > a.ticks ? (double)(b.ns - a.ns) / (double)(b.ticks - a.ticks) : 1.0;
}

void pki_clock_map_init(pki_clock_map *map, uint32_t monotonic, pki_clock_sample a,
                        pki_clock_sample b)
{
    double rate = monotonic ? 1.0 : rate_between(a, b);
    memset(map, 0, sizeof *map);
    map->monotonic = monotonic;
    map->origin_ns = a.ns;
    map->first = a;
    map->last = b;
    map->first_rate = monotonic ? ONE : (uint64_t)(rate * (double)ONE);
    map->segments[0] = (pki_clock_segment){a.ticks, 0, map->first_rate};
    map->uncertainty_ns = scale(PKI_MAX(a.uncertainty, b.uncertainty), map->first_rate);
    pki_store_release(&map->count, 1);
}

/* The list is finite: the fuller it is, the larger an error has to be to take an entry. */
static double tolerance(const pki_clock_map *map, double uncertainty)
{
    double allowed = PKI_MAX(TOLERANCE_NS, 3 * uncertainty);
    return allowed * (double)((uint64_t)1 << (map->count / 128));
}

static void note_uncertainty(pki_clock_map *map, double error, double bracket)
{
    uint64_t total = (uint64_t)((error < 0 ? -error : error) + bracket);
    map->uncertainty_ns = PKI_MAX(map->uncertainty_ns, total);
}

/* A new segment starts where the map stands now and is bent so that the error is gone at the
 * horizon. */
static void bend(pki_clock_map *map, uint64_t ticks, uint64_t ns, double rate, double error)
{
    double slew = error / HORIZON_NS;
    slew = PKI_MIN(PKI_MAX(slew, -LARGEST_SLEW), LARGEST_SLEW);
    map->segments[map->count] =
        (pki_clock_segment){ticks, ns, (uint64_t)(rate * (1 + slew) * (double)ONE)};
    pki_store_release(&map->count, map->count + 1);
}

void pki_clock_map_check(pki_clock_map *map, pki_clock_sample now)
{
    if (map->monotonic || now.ticks <= map->last.ticks)
        return;
    uint64_t mapped = pki_clock_ns(map, now.ticks);
    double error = (double)(int64_t)(now.ns - map->origin_ns - mapped);
    double bracket = (double)scale(now.uncertainty, map->first_rate);
    note_uncertainty(map, error, bracket);
    bool settling = map->count < SETTLING;
    bool off = error > tolerance(map, bracket) || error < -tolerance(map, bracket);
    if ((settling || off) && map->count < PKI_CLOCK_SEGMENTS) {
        pki_clock_sample from = settling ? map->first : map->last;
        bend(map, now.ticks, mapped, rate_between(from, now), error);
    }
    map->last = now;
}

uint64_t pki_clock_ns(const pki_clock_map *map, uint64_t ticks)
{
    uint32_t i = pki_load_acquire(&map->count); /* pairs with the release in bend */
    i = PKI_MIN(i, PKI_CLOCK_SEGMENTS);
    while (i > 0) {
        const pki_clock_segment *s = &map->segments[--i];
        if (ticks >= s->start_ticks)
            return s->start_ns + scale(ticks - s->start_ticks, s->rate);
    }
    return 0;
}

double pki_clock_unit_ns(const pki_clock_map *map)
{
    double whole = rate_between(map->first, map->last);
    return map->monotonic ? 1.0 : whole;
}

double pki_clock_hz(const pki_clock_map *map)
{
    return 1e9 / pki_clock_unit_ns(map);
}

double pki_clock_ppm(const pki_clock_map *map)
{
    double assumed = (double)map->first_rate / (double)ONE;
    return (pki_clock_unit_ns(map) / assumed - 1) * 1e6;
}
