#include "backend/cuda/anchor.h"

#include <math.h>
#include <string.h>

#include "backend/cuda/context.h"
#include "backend/cuda/words.h"
#include "base/clock.h"
#include "session/activity.h"

#define TRIALS 6
#define PATIENCE_NS 100000u
#define INTERVAL_NS 2000000000u
#define FARTHEST_MS 2000.0 /* from here on the other anchor may be nearer */
#define SLEPT_NS 8e9       /* since the last anchor */

/* The rate is learnt in the first second, in steps; then every 2 s. */
static uint64_t interval_ns(unsigned anchors)
{
    static const uint64_t first[] = {0, 40000000, 160000000, 800000000};
    return anchors < PKI_COUNT_OF(first) ? first[anchors] : INTERVAL_NS;
}

void pki_cuda_anchors_reset(pki_cuda_anchors *a)
{
    memset(&a->clock, 0, sizeof a->clock);
    a->pending_ns = 0;
    a->made = a->made && !a->useless; /* try again */
}

static void make(pki_cuda_context *c)
{
    pki_cuda_anchors *a = &c->anchors;
    CUcontext ctx = c->handle;
    a->made = true;
    CUresult code = pki_cuda.ctx_push(ctx);
    if (!code) {
        code = pki_cuda.stream_create(&a->stream, CU_STREAM_NON_BLOCKING);
        for (unsigned i = 0; i < PKI_COUNT_OF(a->events) && !code; i++)
            code = pki_cuda.event_create(&a->events[i], CU_EVENT_DEFAULT);
        pki_cuda.ctx_pop(&ctx);
    }
    a->useless = code != CUDA_SUCCESS;
    if (a->useless && !pki_cuda_context_failed(c, code))
        pki_cuda_say(PKI_CUDA_CALL_FAILED, code, c->number);
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

/* False if it is not reached in time; then it is left pending. */
static bool try_once(pki_cuda_context *c, trial *t)
{
    pki_cuda_anchors *a = &c->anchors;
    t->from = pki_monotonic_ns();
    CUresult code = pki_cuda.event_record(a->events[t->event], a->stream);
    do {
        code = code ? code : pki_cuda.event_query(a->events[t->event]);
        t->to = pki_monotonic_ns();
        if (code == CUDA_SUCCESS)
            return true;
        if (code != CUDA_ERROR_NOT_READY) {
            pki_cuda_context_failed(c, code);
            return false;
        }
        code = CUDA_SUCCESS;
    } while (width(t) < PATIENCE_NS);
    a->pending = t->event;
    a->pending_ns = t->from;
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
    CUresult code = pki_cuda.event_query(a->events[a->pending]);
    *t = (trial){a->pending, a->pending_ns, pki_monotonic_ns()};
    if (code == CUDA_ERROR_NOT_READY)
        return false;
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
static void take(pki_cuda_anchors *a, const trial *t)
{
    double doubt = (double)width(t) / 2;
    double host = (double)pki_activity_ns(t->from + width(t) / 2);
    double device = device_time(a, t, &doubt);
    if ((double)(t->to - a->taken_ns) > SLEPT_NS)
        memset(&a->clock, 0, sizeof a->clock);
    pki_cuda_clock_anchor(&a->clock, (pki_cuda_point){device, host, doubt});
    a->before = a->clock.anchors == 1 ? t->event : a->now;
    a->now = t->event;
    a->device[t->event] = device;
    a->taken_ns = t->to;
}

bool pki_cuda_anchors_keep_up(pki_cuda_context *c)
{
    pki_cuda_anchors *a = &c->anchors;
    trial t;
    if (!a->made)
        make(c);
    if (a->useless || pki_load(&c->dead))
        return false;
    bool due = pki_monotonic_ns() - a->taken_ns >= interval_ns(a->clock.anchors);
    if ((due || a->clock.anchors == 0) && (a->pending_ns ? finish_pending(c, &t) : try_some(c, &t)))
        take(a, &t);
    return a->clock.anchors > 0;
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

double pki_cuda_same_ns(const pki_cuda_context *c, double device)
{
    const pki_cuda_anchors *a = &c->anchors;
    return 1000 + 2 * pki_cuda_quantum_ns((device - a->device[a->now]) / 1e6);
}
