#include "backend/cuda/clock.h"

#include <math.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/lane.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "session/activity.h"
#include "session/collector/collect.h"

/* ---- a device's time, in nanoseconds of the session ---- */

#define BASELINE_NS 60e9 /* over which the rate is measured, at least, once so much has passed */
#define CATCH_UP_NS 4e9
#define BEND 200e-6
#define STRANGE_RATE 1e-3 /* no two clocks of a machine differ by as much */
#define JUMP_NS 1e6       /* the machine slept, or the device was reset: no use in bending */
#define POOR_NS 50e3 /* an error that is not bent away either if the map was as unsure as that */
#define DRIFT 100e-6 /* as long as the rate has not been measured */

static double clamp(double x, double most)
{
    return x > most ? most : x < -most ? -most : x;
}

/* As far as the anchors can tell; 1 as long as their doubt is larger than what clocks differ by. */
static void measure_rate(const pki_cuda_clock *c, pki_cuda_point p, pki_cuda_segment *s)
{
    double passed = p.device - c->far.device, doubt = p.doubt + c->far.doubt;
    if (passed <= 0 || doubt > passed * 50e-6)
        return;
    s->rate = 1 + clamp((p.host - c->far.host) / passed - 1, STRANGE_RATE);
    s->rate_doubt = doubt / passed;
}

static void move_baseline(pki_cuda_clock *c, pki_cuda_point p)
{
    if (p.device - c->middle.device < BASELINE_NS)
        return;
    c->far = c->middle;
    c->middle = p;
}

static const pki_cuda_segment *segment_of(const pki_cuda_clock *c, double device)
{
    return device < c->now.device ? &c->before : &c->now;
}

double pki_cuda_clock_ns(const pki_cuda_clock *c, double device)
{
    const pki_cuda_segment *s = segment_of(c, device);
    return s->host + (device - s->device) * s->rate;
}

/* How far off that may be. */
static double pki_cuda_clock_doubt(const pki_cuda_clock *c, double device)
{
    const pki_cuda_segment *s = segment_of(c, device);
    return s->doubt + fabs(device - s->device) * s->rate_doubt;
}

static void begin(pki_cuda_clock *c, pki_cuda_point p, double rate)
{
    c->now = c->before = (pki_cuda_segment){p.device, p.host, rate, p.doubt, DRIFT};
    c->far = c->middle = p;
}

/* The machine slept, or the device was reset: what was known of the rate is of no use any more. */
static void jump(pki_cuda_clock *c, pki_cuda_point p)
{
    pki_cuda_segment before = c->now;
    begin(c, p, before.rate);
    c->before = before;
}

/* The map was poor: it is replaced, for what lies before the anchor, too. */
static void improve(pki_cuda_clock *c, pki_cuda_point p)
{
    pki_cuda_segment s = {p.device, p.host, c->now.rate, p.doubt, c->now.rate_doubt};
    measure_rate(c, p, &s);
    c->now = c->before = s;
    move_baseline(c, p);
}

/* Within the bracket the anchor does not contradict. */
static void bend(pki_cuda_clock *c, pki_cuda_point p, double said)
{
    double error = p.host - said;
    pki_cuda_segment s = {p.device, said, c->now.rate, p.doubt + fabs(error), c->now.rate_doubt};
    measure_rate(c, p, &s);
    if (fabs(error) > p.doubt)
        s.rate += clamp(error / CATCH_UP_NS, BEND);
    c->before = c->now;
    c->now = s;
    move_baseline(c, p);
}

static void extend(pki_cuda_clock *c, pki_cuda_point p)
{
    double said = pki_cuda_clock_ns(c, p.device), error = fabs(p.host - said);
    bool expected = error <= pki_cuda_clock_doubt(c, p.device) + p.doubt;
    if (error > JUMP_NS && !expected)
        jump(c, p);
    else if (error > POOR_NS && error > p.doubt && expected)
        improve(c, p);
    else
        bend(c, p, said);
}

void pki_cuda_clock_anchor(pki_cuda_clock *c, pki_cuda_point p)
{
    if (c->anchors++ == 0)
        begin(c, p, 1);
    else
        extend(c, p);
}

/* What the bound says of another device time, at its most cautious: sign is where caution lies. */
static double carried(const pki_cuda_bound *b, double device, double sign)
{
    double passed = device - b->device;
    return b->host + passed + sign * fabs(passed) * DRIFT;
}

static void pki_cuda_bound_not_reached(pki_cuda_bounds *b, double device, double host)
{
    if (!b->not_reached.there || host > carried(&b->not_reached, device, -1))
        b->not_reached = (pki_cuda_bound){device, host, true};
}

static void pki_cuda_bound_reached(pki_cuda_bounds *b, double device, double host)
{
    if (!b->reached.there || host < carried(&b->reached, device, 1))
        b->reached = (pki_cuda_bound){device, host, true};
}

/* Narrows the part of the host's time in which `device` lies; what contradicts it is left out. */
static void pki_cuda_bounds_narrow(const pki_cuda_bounds *b, double device, double *from,
                                   double *to)
{
    double low = b->not_reached.there ? carried(&b->not_reached, device, -1) : *from;
    double high = b->reached.there ? carried(&b->reached, device, 1) : *to;
    low = fmax(low, *from);
    high = fmin(high, *to);
    if (low > high)
        return;
    *from = low;
    *to = high;
}

double pki_cuda_quantum_ns(double milliseconds)
{
    float f = (float)fabs(milliseconds);
    return ((double)nextafterf(f, INFINITY) - (double)f) * 1e6;
}

/* ---- where a context's events lie on the CPU's clock ---- */

#define TRIALS 6
#define PATIENCE_NS 100000u
#define INTERVAL_NS 2000000000u
#define FARTHEST_MS 2000.0 /* from here on the other anchor may be nearer */
#define SLEPT_NS 8e9       /* since the last anchor */
#define WIDE_NS 100e3      /* a bracket that the next anchor may well improve */
#define SEEN_LATE_NS 5000u /* a stamp may be so much older than the answer that it is there */

/* The rate is learnt in the first second, in steps; then every 2 s. */
static uint64_t interval_ns(const pki_cuda_anchors *a)
{
    static const uint64_t first[] = {0, 40000000, 160000000, 800000000};
    unsigned anchors = a->clock.anchors;
    if (anchors > 0 && a->width > WIDE_NS)
        return first[1];
    return anchors < PKI_COUNT_OF(first) ? first[anchors] : INTERVAL_NS;
}

/* Of the highest priority where the driver has priorities. */
static CUresult make_stream(CUstream *stream)
{
    int lowest = 0, highest = 0;
    if (pki_cuda.stream_create_priority && pki_cuda.priority_range &&
        !pki_cuda.priority_range(&lowest, &highest) &&
        !pki_cuda.stream_create_priority(stream, CU_STREAM_NON_BLOCKING, highest))
        return CUDA_SUCCESS;
    return pki_cuda.stream_create(stream, CU_STREAM_NON_BLOCKING);
}

static void make(pki_cuda_context *c)
{
    pki_cuda_anchors *a = &c->anchors;
    a->made = true;
    CUresult code = pki_cuda_enter(c->handle);
    if (!code) {
        code = make_stream(&a->stream);
        for (unsigned i = 0; i < PKI_COUNT_OF(a->events) && !code; i++)
            code = pki_cuda.event_create(&a->events[i], CU_EVENT_DEFAULT);
        pki_cuda_leave();
    }
    a->useless = code != CUDA_SUCCESS;
    if (a->useless && !pki_cuda_context_failed(c, code))
        pki_cuda_note_reason(PKI_CUDA_CALL_FAILED, code, c->number);
}

/* The event and the bracket around it. */
typedef struct trial {
    unsigned event;
    uint64_t from, to;
} trial;

static uint64_t width(const trial *t)
{
    return t->to - t->from;
}

/* Had it been stamped long before it was asked about, the answer would have been another one. */
static uint64_t not_before(uint64_t known, uint64_t asked)
{
    return PKI_MAX(known, asked - SEEN_LATE_NS);
}

static void set_pending(pki_cuda_anchors *a, const trial *t, uint64_t recorded)
{
    a->pending = t->event;
    a->pending_ns = recorded;
    a->unready_ns = t->from;
}

/* False if it is not reached in time; then it is left pending. */
static bool try_once(pki_cuda_context *c, trial *t)
{
    pki_cuda_anchors *a = &c->anchors;
    uint64_t recorded = pki_monotonic_ns();
    CUresult code = pki_cuda.event_record(a->events[t->event], a->stream);
    t->from = recorded;
    do {
        uint64_t asked = pki_monotonic_ns();
        code = code ? code : pki_cuda.event_query(a->events[t->event]);
        t->to = pki_monotonic_ns();
        if (code == CUDA_SUCCESS)
            return true;
        if (code != CUDA_ERROR_NOT_READY) {
            pki_cuda_context_failed(c, code);
            return false;
        }
        t->from = not_before(t->from, asked);
        code = CUDA_SUCCESS;
    } while (t->to - recorded < PATIENCE_NS);
    set_pending(a, t, recorded);
    return false;
}

/* The two events that no time is measured from. */
static void free_events(const pki_cuda_anchors *a, unsigned free[2])
{
    unsigned n = 0;
    for (unsigned i = 0; i < PKI_COUNT_OF(a->events) && n < 2; i++)
        if (i != a->now && i != a->before)
            free[n++] = i;
}

/* The narrowest bracket of some. */
static bool try_some(pki_cuda_context *c, trial *best)
{
    unsigned free[2];
    bool any = false;
    free_events(&c->anchors, free);
    for (unsigned i = 0; i < TRIALS; i++) {
        trial t = {.event = any && best->event == free[0] ? free[1] : free[0]};
        if (!try_once(c, &t))
            break;
        if (!any || width(&t) < width(best))
            *best = t;
        any = true;
    }
    if (any)
        c->anchors.pending_ns = 0;
    return any;
}

/* The trial that was left has been reached meanwhile: better a wide bracket than none. */
static bool finish_pending(pki_cuda_context *c, trial *t)
{
    pki_cuda_anchors *a = &c->anchors;
    uint64_t asked = pki_monotonic_ns();
    CUresult code = pki_cuda.event_query(a->events[a->pending]);
    *t = (trial){a->pending, a->unready_ns, pki_monotonic_ns()};
    if (code == CUDA_ERROR_NOT_READY) {
        a->unready_ns = not_before(a->unready_ns, asked);
        return false;
    }
    a->pending_ns = 0;
    pki_cuda_context_failed(c, code);
    return code == CUDA_SUCCESS;
}

/* Where the new anchor lies on the device's clock: so far from the last one, also from one of an
 * earlier session, so that what was read before can be told from what has come since. */
static double device_time(const pki_cuda_anchors *a, const trial *t, double *doubt)
{
    float ms = 0;
    double passed = (double)(t->from + width(t) / 2 - a->taken_ns);
    if (!a->taken_ns)
        return 0;
    CUresult code = pki_cuda.event_elapsed(&ms, a->events[a->now], a->events[t->event]);
    *doubt += code || passed > SLEPT_NS ? 0 : pki_cuda_quantum_ns(ms);
    return a->device[a->now] + (code ? passed : (double)ms * 1e6);
}

/* After a long pause its distance from the last one is known too badly: the map starts anew. */
static void accept(pki_cuda_anchors *a, const trial *t)
{
    double from = (double)pki_activity_ns(t->from), to = (double)pki_activity_ns(t->to), doubt = 0;
    double device = device_time(a, t, &doubt);
    if ((double)(t->to - a->taken_ns) > SLEPT_NS) {
        memset(&a->clock, 0, sizeof a->clock);
        memset(&a->bounds, 0, sizeof a->bounds);
    }
    pki_cuda_bounds_narrow(&a->bounds, device, &from, &to);
    a->width = to - from;
    doubt += a->width / 2;
    pki_cuda_clock_anchor(&a->clock, (pki_cuda_point){device, from + a->width / 2, doubt});
    a->before = a->clock.anchors == 1 ? t->event : a->now;
    a->now = t->event;
    a->device[t->event] = device;
    a->taken_ns = t->to;
}

/* Asked about often while it is young, so that its bracket is half as wide as it was late. */
static void schedule_retry(const pki_cuda_anchors *a)
{
    if (a->pending_ns)
        pki_asker_within(PKI_MAX((pki_monotonic_ns() - a->pending_ns) / 2, PATIENCE_NS));
}

bool pki_cuda_anchors_update(pki_cuda_context *c)
{
    pki_cuda_anchors *a = &c->anchors;
    trial t;
    if (!a->made)
        make(c);
    if (a->useless || pki_load(&c->dead))
        return false;
    bool due = pki_monotonic_ns() - a->taken_ns >= interval_ns(a);
    if ((due || a->clock.anchors == 0) && (a->pending_ns ? finish_pending(c, &t) : try_some(c, &t)))
        accept(a, &t);
    schedule_retry(a);
    return a->clock.anchors > 0;
}

/* The step of a float at that distance from the last anchor. */
static double pki_cuda_step_ns(const pki_cuda_context *c, double device)
{
    const pki_cuda_anchors *a = &c->anchors;
    return pki_cuda_quantum_ns((device - a->device[a->now]) / 1e6);
}

void pki_cuda_anchors_learn(pki_cuda_context *c, double device, uint64_t not_reached_ns,
                            uint64_t reached_ns)
{
    pki_cuda_anchors *a = &c->anchors;
    double step = pki_cuda_step_ns(c, device);
    pki_cuda_bound_reached(&a->bounds, device, (double)pki_activity_ns(reached_ns) + step);
    if (not_reached_ns > SEEN_LATE_NS)
        pki_cuda_bound_not_reached(&a->bounds, device,
                                   (double)pki_activity_ns(not_reached_ns - SEEN_LATE_NS) - step);
}

/* Reversed, some drivers may not want to answer. */
static CUresult elapsed_ms(CUevent anchor, CUevent event, double *ms)
{
    float f = 0;
    CUresult code = pki_cuda.event_elapsed(&f, anchor, event);
    if (code == CUDA_ERROR_INVALID_VALUE) {
        code = pki_cuda.event_elapsed(&f, event, anchor);
        f = -f;
    }
    *ms = (double)f;
    return code;
}

CUresult pki_cuda_event_time(pki_cuda_context *c, CUevent event, double *device)
{
    const pki_cuda_anchors *a = &c->anchors;
    double ms, other;
    CUresult code = elapsed_ms(a->events[a->now], event, &ms);
    *device = a->device[a->now] + ms * 1e6;
    if (code || fabs(ms) < FARTHEST_MS || a->before == a->now)
        return code;
    if (elapsed_ms(a->events[a->before], event, &other) == CUDA_SUCCESS && fabs(other) < fabs(ms))
        *device = a->device[a->before] + other * 1e6;
    return code;
}

uint64_t pki_cuda_session_ns(const pki_cuda_context *c, double device, double *doubt)
{
    const pki_cuda_clock *clock = &c->anchors.clock;
    double ns = pki_cuda_clock_ns(clock, device);
    *doubt = pki_cuda_clock_doubt(clock, device) + pki_cuda_step_ns(c, device);
    return ns > 0 ? (uint64_t)llround(ns) : 0;
}

double pki_cuda_same_ns(const pki_cuda_context *c, double device)
{
    return 1000 + 2 * pki_cuda_step_ns(c, device);
}
