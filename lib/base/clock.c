#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/compare.h"
#include "base/files.h"

/* ---- ticks, and what they are in nanoseconds ---- */

#define ONE ((uint64_t)1 << PKI_RATE_BITS)
#define HORIZON_NS 1000000000.0 /* an error found now is gone this much later, */
#define LARGEST_SLEW 500e-6     /* unless that would bend the rate by more: as adjtime does */
#define TOLERANCE_NS 200.0      /* below this an error is the bracket's, not the clock's */
#define SETTLING 6              /* segments while the rate is still being learnt */

bool pki_read_line(const char *path, char *line, unsigned long size)
{
    int fd = pki_fd_open(path, O_RDONLY, 0);
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

static uint64_t most_common(const uint64_t *sorted, unsigned n)
{
    uint64_t best = 0;
    for (unsigned i = 0, most = 0, run = 0; i < n; i++) {
        run = i > 0 && sorted[i] == sorted[i - 1] ? run + 1 : 1;
        if (run > most) {
            most = run;
            best = sorted[i];
        }
    }
    return best;
}

/* But for a tick, and for one in fifty. */
static bool are_multiples(const uint64_t *values, unsigned n, uint64_t step)
{
    unsigned off = 0;
    for (unsigned i = 0; i < n; i++)
        off += (values[i] + 1) % step > 2;
    return off <= n / 50;
}

/* The largest divisor of the most common difference that nearly all are multiples of; steps that a
 * tick matters to have to be exact. */
uint64_t pki_clock_step_in(const uint64_t *readings, unsigned count)
{
    uint64_t differences[PKI_STEP_READINGS], exact = 0;
    unsigned n = 0;
    for (unsigned i = 1; i < PKI_MIN(count, (unsigned)PKI_STEP_READINGS); i++)
        if (readings[i] > readings[i - 1]) {
            exact = common_divisor(exact, readings[i] - readings[i - 1]);
            differences[n++] = readings[i] - readings[i - 1];
        }
    qsort(differences, n, sizeof *differences, pki_compare_u64);
    uint64_t common = most_common(differences, n);
    for (uint64_t parts = 1; common / parts >= PKI_STEP_INEXACT; parts++)
        if (common % parts == 0 && are_multiples(differences, n, common / parts))
            return common / parts;
    return exact ? exact : 1;
}

uint64_t pki_clock_step(uint32_t monotonic)
{
    uint64_t readings[PKI_STEP_READINGS];
    for (unsigned i = 0; i < PKI_STEP_READINGS; i++) {
        for (unsigned wait = i * 7 % 23; wait > 0; wait--)
            __asm__ __volatile__(""); /* or the time of a loop would look like a step */
        readings[i] = pki_ticks(monotonic);
    }
    return pki_clock_step_in(readings, PKI_STEP_READINGS);
}

static uint64_t scale(uint64_t ticks, uint64_t rate)
{
    return (uint64_t)(((pki_u128)ticks * rate) >> PKI_RATE_BITS);
}

static double rate_between(pki_clock_sample a, pki_clock_sample b)
{
    return b.ticks > a.ticks ? (double)(b.ns - a.ns) / (double)(b.ticks - a.ticks) : 1.0;
}

static uint64_t fixed(double rate)
{
    return (uint64_t)(rate * (double)ONE);
}

void pki_clock_map_init(pki_clock_map *map, uint32_t monotonic, pki_clock_sample a,
                        pki_clock_sample b)
{
    memset(map, 0, sizeof *map);
    map->monotonic = monotonic;
    map->origin_ns = a.ns;
    map->first = map->known = a;
    map->last = b;
    map->first_rate = map->whole_rate = monotonic ? ONE : fixed(rate_between(a, b));
    map->segments[0] = (pki_clock_segment){a.ticks, 0, map->first_rate};
    map->uncertainty_ns = scale(PKI_MAX(a.uncertainty, b.uncertainty), map->first_rate);
    pki_store_release(&map->count, 1);
}

/* The list is finite: the fuller it is, the larger an error has to be to take entries, in the end
 * by powers of two. So a counter of whatever restlessness is followed for years, as closely as
 * there is room for. */
static double tolerance(const pki_clock_map *map, double bracket)
{
    double allowed = PKI_MAX(TOLERANCE_NS, 3 * bracket);
    uint64_t full = map->count;
    return allowed * (double)((uint64_t)1 << (full * full * full >> 25));
}

static void note_uncertainty(pki_clock_map *map, double error, double bracket)
{
    uint64_t total = (uint64_t)((error < 0 ? -error : error) + bracket);
    map->uncertainty_ns = PKI_MAX(map->uncertainty_ns, total);
}

static double horizon(double error)
{
    double size = error < 0 ? -error : error;
    return PKI_MAX(HORIZON_NS, size / LARGEST_SLEW);
}

/* A new segment starts where the map stands now, bent so that the error is gone at the horizon. */
static pki_clock_segment bent(uint64_t ticks, uint64_t ns, double rate, double error)
{
    return (pki_clock_segment){ticks, ns, fixed(rate * (1 + error / horizon(error)))};
}

/* And the one behind it goes on from there, straight again. */
static pki_clock_segment straight(const pki_clock_segment *before, double rate, double error)
{
    uint64_t ticks = (uint64_t)(horizon(error) / rate);
    return (pki_clock_segment){before->start_ticks + ticks,
                               before->start_ns + scale(ticks, before->rate), fixed(rate)};
}

/* In the first second the rate is measured from the start on, better each time, and the next check
 * comes before a correction has run its course. */
static void settle(pki_clock_map *map, pki_clock_sample now, uint64_t mapped, double error)
{
    map->segments[map->count] = bent(now.ticks, mapped, rate_between(map->first, now), error);
    pki_store_release(&map->count, map->count + 1);
}

static void correct(pki_clock_map *map, pki_clock_sample now, uint64_t mapped, double error)
{
    double rate = rate_between(map->known, now);
    pki_clock_segment *next = &map->segments[map->count];
    next[0] = bent(now.ticks, mapped, rate, error);
    next[1] = straight(&next[0], rate, error);
    map->known = now;
    pki_store_release(&map->count, map->count + 2);
}

/* CLOCK_MONOTONIC's distance from the map, once what the machine slept has been added to it. */
static int64_t distance(const pki_clock_map *map, pki_clock_sample now)
{
    return (int64_t)(now.ns - map->origin_ns - pki_clock_ns(map, now.ticks));
}

bool pki_clock_map_slept(pki_clock_map *map, pki_clock_sample now, uint64_t ns)
{
    now.ns += map->sleeps.all;
    if (map->monotonic || now.ticks <= map->last.ticks || distance(map, now) > -(int64_t)(ns / 2))
        return false;
    pki_store(&map->sleeps.all, map->sleeps.all + ns);
    pki_store(&map->sleeps.last, ns);
    pki_store(&map->sleeps.end, now.ns + ns - map->origin_ns);
    return true;
}

void pki_clock_map_check(pki_clock_map *map, pki_clock_sample now)
{
    if (map->monotonic || now.ticks <= map->last.ticks)
        return;
    now.ns += map->sleeps.all;
    uint64_t mapped = pki_clock_ns(map, now.ticks);
    double error = (double)distance(map, now);
    double bracket = (double)scale(now.uncertainty, map->first_rate),
           most = tolerance(map, bracket);
    bool under_way = now.ticks <= map->segments[map->count - 1].start_ticks;
    note_uncertainty(map, error, bracket);
    if (map->count < SETTLING - 1)
        settle(map, now, mapped, error);
    else if (map->count < SETTLING || (!under_way && (error > most || error < -most) &&
                                       map->count + 2 <= PKI_CLOCK_SEGMENTS))
        correct(map, now, mapped, error);
    map->last = now;
    pki_store(&map->whole_rate, fixed(rate_between(map->first, now)));
}

#define OFFSETS_TRIES 3
#define OFFSETS_APART 1000000u /* ns: as far apart the readings may be */

bool pki_clock_offsets_read(pki_clock_offsets *out)
{
    for (int i = 0; i < OFFSETS_TRIES; i++) {
        uint64_t before = pki_monotonic_ns(), boot = pki_read_clock(CLOCK_BOOTTIME);
        uint64_t calendar = pki_read_clock(CLOCK_REALTIME);
        if (pki_monotonic_ns() - before > OFFSETS_APART)
            continue;
        *out = (pki_clock_offsets){boot - before, (int64_t)(calendar - boot)};
        return boot >= before;
    }
    return false;
}

/* Any thread: amid a change one moment is wrong by as long as the machine slept. */
static pki_clock_sleeps sleeps_of(const pki_clock_map *map)
{
    const pki_clock_sleeps *s = &map->sleeps;
    return (pki_clock_sleeps){pki_load(&s->all), pki_load(&s->last), pki_load(&s->end)};
}

uint64_t pki_clock_monotonic_ns(const pki_clock_map *map, uint64_t ns)
{
    pki_clock_sleeps sleeps = sleeps_of(map);
    return map->origin_ns + pki_clock_awake_ns(&sleeps, ns);
}

uint64_t pki_clock_session_ns(const pki_clock_map *map, uint64_t monotonic_ns)
{
    uint64_t awake = monotonic_ns > map->origin_ns ? monotonic_ns - map->origin_ns : 0;
    pki_clock_sleeps sleeps = sleeps_of(map);
    return pki_clock_slept_ns(&sleeps, awake);
}

/* The one in force at that moment; NULL before the first. */
static const pki_clock_segment *segment_at(const pki_clock_map *map, uint64_t ticks)
{
    uint32_t i = pki_load_acquire(&map->count); /* pairs with the release in correct */
    const pki_clock_segment *s = map->segments + PKI_MIN(i, PKI_CLOCK_SEGMENTS);
    while (s-- > map->segments)
        if (ticks >= s->start_ticks)
            return s;
    return NULL;
}

static uint64_t ns_in(const pki_clock_segment *s, uint64_t ticks)
{
    return s ? s->start_ns + scale(ticks - s->start_ticks, s->rate) : 0;
}

uint64_t pki_clock_ns(const pki_clock_map *map, uint64_t ticks)
{
    return ns_in(segment_at(map, ticks), ticks);
}

uint64_t pki_clock_span_ns(const pki_clock_map *map, uint64_t start, uint64_t ticks)
{
    const pki_clock_segment *s = segment_at(map, start + ticks);
    bool both = s && start >= s->start_ticks; /* nearly always */
    return ns_in(s, start + ticks) - (both ? ns_in(s, start) : pki_clock_ns(map, start));
}

/* The one behind it may have begun before it was found, as settle's do: the last that has begun is
 * in force. */
pki_clock_stretch pki_clock_stretch_at(const pki_clock_map *map, uint64_t ticks)
{
    const pki_clock_segment *s = segment_at(map, ticks), *next = s ? s + 1 : map->segments;
    uint32_t count = PKI_MIN(pki_load_acquire(&map->count), PKI_CLOCK_SEGMENTS); /* as above */
    uint64_t end = next < map->segments + count ? next->start_ticks : UINT64_MAX;
    if (!s)
        return (pki_clock_stretch){0, end, 0, 0};
    return (pki_clock_stretch){s->start_ticks, end - s->start_ticks, s->start_ns, s->rate};
}

double pki_clock_unit_ns(const pki_clock_map *map)
{
    return (double)pki_load(&map->whole_rate) / (double)ONE;
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

/* ---- a thread that sleeps until it is time, or until somebody rings ---- */

enum { AT_REST, ASLEEP, RUNG };

void pki_bell_ring(pki_bell *bell)
{
    if (__atomic_load_n(&bell->state, __ATOMIC_RELAXED) == RUNG)
        return;
    /* Pairs with the exchange in pki_bell_sleep. */
    if (__atomic_exchange_n(&bell->state, RUNG, __ATOMIC_ACQ_REL) != ASLEEP)
        return;
    int saved = errno;
    syscall(SYS_futex, &bell->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

/* False if it was rung before. */
static bool lie_down(pki_bell *bell)
{
    uint32_t at_rest = AT_REST;
    return __atomic_compare_exchange_n(&bell->state, &at_rest, ASLEEP, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

bool pki_bell_sleep(pki_bell *bell, uint64_t until_ns)
{
    const struct timespec until = pki_moment(until_ns);
    bool asleep = lie_down(bell);
    /* A signal or a spurious wake-up is no reason to get up. */
    while (asleep && __atomic_load_n(&bell->state, __ATOMIC_ACQUIRE) == ASLEEP &&
           (syscall(SYS_futex, &bell->state, FUTEX_WAIT_BITSET_PRIVATE, ASLEEP, &until, NULL,
                    FUTEX_BITSET_MATCH_ANY) == 0 ||
            errno == EINTR))
        ;
    return __atomic_exchange_n(&bell->state, AT_REST, __ATOMIC_ACQ_REL) == RUNG;
}
