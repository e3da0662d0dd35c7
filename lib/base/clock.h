/* lib/base/clock.h - time, and what wakes at a time */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/compiler.h"
#include "pki_cycle_counter.h"

/* ---- ticks, and what they are in nanoseconds ---- */

/* Threads record raw ticks. Whoever prints converts them through a pki_clock_map: a list of
 * straight segments that follows CLOCK_MONOTONIC. A segment, once used, is never changed; a
 * correction starts a new one where the old one ends. So the map is continuous, never runs
 * backwards, and gives the same answer for the same tick for ever: a child that lay inside its
 * parent in ticks does so in nanoseconds, whenever either is printed.
 *
 * The map lies in the arena's header, so that a killed run can be read. */

/* One reading of both clocks, as close together as could be had. */
typedef struct pki_clock_sample {
    uint64_t ticks;
    uint64_t ns;          /* CLOCK_MONOTONIC */
    uint64_t uncertainty; /* half the bracket, ns */
} pki_clock_sample;

/* ns = start_ns + (ticks - start_ticks) * rate / 2^PKI_RATE_BITS. So fine a rate is wrong by less
 * than a nanosecond in a day; a tick of up to 65 us fits. */
#define PKI_RATE_BITS 48

typedef struct pki_clock_segment {
    uint64_t start_ticks;
    uint64_t start_ns;
    uint64_t rate;
} pki_clock_segment;

#define PKI_CLOCK_SEGMENTS 1024

/* CLOCK_MONOTONIC stands still while the machine is suspended. A counter that goes on (most
 * processors' does) has that in its ticks, and so it is in the session's time; where it stands
 * still, too, or ticks are CLOCK_MONOTONIC's, it is in neither. */
typedef struct pki_clock_sleeps {
    uint64_t all, last; /* ns in the session's time; of the last one... */
    uint64_t end;       /* ...and when that was over, session's time */
} pki_clock_sleeps;

/* The session's time without what the machine slept, and back. Exact from the last sleep but one
 * on. */
static inline uint64_t pki_clock_awake_ns(const pki_clock_sleeps *s, uint64_t ns)
{
    uint64_t before = s->all - s->last, begin = s->end - s->last;
    if (ns >= s->end)
        return ns - s->all;
    return ns < before ? 0 : (ns < begin ? ns : begin) - before;
}

static inline uint64_t pki_clock_slept_ns(const pki_clock_sleeps *s, uint64_t awake)
{
    uint64_t ns = awake + s->all - s->last;
    return ns >= s->end - s->last ? ns + s->last : ns;
}

typedef struct pki_clock_map {
    uint32_t monotonic;      /* ticks are CLOCK_MONOTONIC's nanoseconds */
    uint32_t count;          /* segments; grows only (release; readers acquire) */
    uint64_t origin_ns;      /* CLOCK_MONOTONIC when the session started: ns counts from there */
    uint64_t step_ticks;     /* what nearly all of its differences are multiples of */
    uint64_t uncertainty_ns; /* largest distance from CLOCK_MONOTONIC found when checking, bracket
                                included */
    uint64_t first_rate;     /* assumed at start */
    uint64_t whole_rate;     /* over the whole run so far; read by any thread */
    pki_clock_sleeps sleeps;
    pki_clock_sample first, last;
    pki_clock_sample known; /* the rate has been the same since, as far as the checks could tell */
    pki_clock_segment segments[PKI_CLOCK_SEGMENTS];
} pki_clock_map;

/* Nanoseconds of one of the system's clocks; 0 if there is none such. */
static inline uint64_t pki_read_clock(clockid_t id)
{
    struct timespec now = {0, 0};
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t pki_monotonic_ns(void)
{
    return pki_read_clock(CLOCK_MONOTONIC);
}

/* A moment of it, for calls that wait until then. */
static inline struct timespec pki_moment(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

/* The tick source of the running session: one predictable branch. */
static inline uint64_t pki_ticks(uint32_t monotonic)
{
    return PKI_UNLIKELY(monotonic) ? pki_monotonic_ns() : pki_cycle_counter();
}

/* Can the cycle counter be used as a clock here? If not, *why_not says why (static text). */
bool pki_cycle_counter_trusted(const char **why_not);

/* Does the processor promise that it runs at one rate? Then whoever insists may use it although the
 * kernel does not trust it, as in virtual machines that may be moved to another host. */
bool pki_cycle_counter_constant(void);

/* The first line of a small file, without its newline. False if it cannot be read. */
bool pki_read_line(const char *path, char *line, unsigned long size);

pki_clock_sample pki_clock_read(uint32_t monotonic);
uint64_t pki_clock_step(uint32_t monotonic);

/* The step of a clock that was read so. From PKI_STEP_INEXACT ticks on it may be off by a tick now
 * and then, as in counters that advance in steps and are corrected (by 26 or 25 at 100 MHz, on Zen
 * 4). */
#define PKI_STEP_READINGS 1000
#define PKI_STEP_INEXACT 8
uint64_t pki_clock_step_in(const uint64_t *readings, unsigned count);

/* Two samples at least 1 ms apart give the first segment. */
void pki_clock_map_init(pki_clock_map *map, uint32_t monotonic, pki_clock_sample a,
                        pki_clock_sample b);

/* Tells the map what the clocks show now; it adds a segment if they have drifted apart. */
void pki_clock_map_check(pki_clock_map *map, pki_clock_sample now);

/* The machine has been suspended for so long since the last check, before which this is called.
 * True: ticks have it. */
bool pki_clock_map_slept(pki_clock_map *map, pki_clock_sample now, uint64_t ns);

/* Two clocks that are set or stand still beside those that do not, ns. False: not read close enough
 * together to tell. */
typedef struct pki_clock_offsets {
    uint64_t asleep;  /* that the machine has been suspended, since it was started */
    int64_t calendar; /* CLOCK_REALTIME - CLOCK_BOOTTIME: another one when the clock has been set */
} pki_clock_offsets;

bool pki_clock_offsets_read(pki_clock_offsets *out);

#define PKI_CLOCK_APART 10000000 /* ns; less is no suspension, and no clock that was set */

/* CLOCK_MONOTONIC, ns, and the session's time. */
uint64_t pki_clock_monotonic_ns(const pki_clock_map *map, uint64_t ns);
uint64_t pki_clock_session_ns(const pki_clock_map *map, uint64_t monotonic_ns);

/* Nanoseconds since the session started; ticks from before it give 0. */
uint64_t pki_clock_ns(const pki_clock_map *map, uint64_t ticks);

/* How far apart the ends of so many ticks are in them: the duration that a trace shows. */
uint64_t pki_clock_span_ns(const pki_clock_map *map, uint64_t start, uint64_t ticks);

/* The ticks around one of them that share a segment, for who converts many that lie close together.
 * What it gives is what the two above give, until the map is checked again. */
typedef struct pki_clock_stretch {
    uint64_t from, length; /* ticks */
    uint64_t ns, rate;     /* at from, and from there on */
} pki_clock_stretch;

pki_clock_stretch pki_clock_stretch_at(const pki_clock_map *map, uint64_t ticks);

/* Does it hold what begins at that tick and lasts so many? */
static inline bool pki_clock_stretch_has(const pki_clock_stretch *s, uint64_t start, uint64_t ticks)
{
    return start - s->from < s->length && ticks < s->length - (start - s->from);
}

static inline uint64_t pki_clock_stretch_ns(const pki_clock_stretch *s, uint64_t ticks)
{
    return s->ns + (uint64_t)(((pki_u128)(ticks - s->from) * s->rate) >> PKI_RATE_BITS);
}

/* A tick in nanoseconds, and the counter's frequency, over the whole run so far. */
double pki_clock_unit_ns(const pki_clock_map *map);
double pki_clock_hz(const pki_clock_map *map);

/* Rate over the whole run against the rate assumed at start, in parts per million. */
double pki_clock_ppm(const pki_clock_map *map);

/* ---- a thread that sleeps until it is time, or until somebody rings ---- */

/* Whoever rings takes no lock and allocates nothing, so it may be a recording thread, in a signal
 * handler too; it makes a system call only if the other one sleeps. Ringing while nobody sleeps is
 * remembered: the next sleep ends at once. One sleeper at a time. */

typedef struct pki_bell {
    uint32_t state; /* all zero is a bell at rest */
} pki_bell;

/* errno stays as it was. */
void pki_bell_ring(pki_bell *bell);

/* Until that moment of CLOCK_MONOTONIC, in ns. True: it was rung. What the ringing thread wrote
 * before is seen. */
bool pki_bell_sleep(pki_bell *bell, uint64_t until_ns);
