/* lib/backend/cuda/clock.h - a device's time in the session's, and where a context's events lie on
 * it */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backend/cuda/api.h"

/* ---- a device's time, in nanoseconds of the session ---- */

/* Events say how many milliseconds lie between two of them, as a float; where they lie on the
 * CPU's clock is known only for anchors: events of our own, recorded and seen complete within a
 * bracket of two readings. The map is straight between corrections: continuous, so that what
 * follows each other on the device does so on the time line, whichever anchor it was measured from.
 * Its rate comes from anchors far apart, and bends by at most 200 ppm to catch up with what an
 * anchor says. */

/* Nanoseconds since the first anchor, as the device counts them, and since the session's start. */
typedef struct pki_cuda_point {
    double device, host;
    double doubt; /* half the bracket */
} pki_cuda_point;

/* From `device` on, which is at `host`; how far off that is, and how far off the rate is. */
typedef struct pki_cuda_segment {
    double device, host, rate;
    double doubt, rate_doubt;
} pki_cuda_segment;

typedef struct pki_cuda_clock {
    unsigned anchors;
    pki_cuda_segment now, before;
    pki_cuda_point far, middle; /* where the rate is measured from: at least a minute, then two */
} pki_cuda_clock;

/* An event that was stamped at `device` was not reached yet, or was reached, at `host`. */
typedef struct pki_cuda_bound {
    double device, host;
    bool there;
} pki_cuda_bound;

/* The tightest bound of each kind among all events that were asked about. */
typedef struct pki_cuda_bounds {
    pki_cuda_bound not_reached, reached;
} pki_cuda_bounds;

/* What an anchor says. The first one starts the map; a first one of a new session needs a zeroed
 * clock. */
void pki_cuda_clock_anchor(pki_cuda_clock *clock, pki_cuda_point point);

/* Of the session, for a device time not much older than the anchor before the last. */
double pki_cuda_clock_ns(const pki_cuda_clock *clock, double device);

/* The smallest step of a float of so many milliseconds, in nanoseconds. */
double pki_cuda_quantum_ns(double milliseconds);

/* ---- where a context's events lie on the CPU's clock ---- */

/* An anchor is an event of ours on a stream of ours, which waits for nobody and goes before others:
 * seen not reached, and then reached, at two readings of the clock. A device that is saturated or
 * shared lets it wait all the same; then its bracket is cut by what is known of all events that
 * were asked about meanwhile. Times of spans are measured from the anchor that is nearest, and a
 * new one follows after 2 s at the latest while spans flow, since the float of milliseconds that
 * the driver answers with has steps of 0.24 us at 2 to 4 s, and of 4 us at 60 s. All is done by the
 * collector; nothing is waited for longer than 100 us. */

struct pki_cuda_context;

typedef struct pki_cuda_anchors {
    bool made, useless;
    CUstream stream;
    CUevent events[4];
    unsigned now, before; /* of the events, those that times are measured from */
    double device[4];     /* when they lie on the device's clock */
    uint64_t taken_ns;    /* when the last one was, CLOCK_MONOTONIC */
    uint64_t pending_ns;  /* a trial, recorded then, that the device has not reached; 0: none */
    uint64_t unready_ns;  /* the last moment at which it had not */
    unsigned pending;
    double width; /* of the last one's bracket, ns */
    pki_cuda_clock clock;
    pki_cuda_bounds bounds;
} pki_cuda_anchors;

/* Takes a new anchor if it is time to. False as long as there is none at all. */
bool pki_cuda_anchors_update(struct pki_cuda_context *context);

/* When an event was reached: on the device's clock, ns. CUDA_ERROR_NOT_READY: not yet. */
CUresult pki_cuda_event_time(struct pki_cuda_context *context, CUevent event, double *device);

/* An event of the context, stamped at `device`, was not reached at one reading of the clock (0: it
 * was not asked about before) and was reached at another. */
void pki_cuda_anchors_learn(struct pki_cuda_context *context, double device,
                            uint64_t not_reached_ns, uint64_t reached_ns);

/* When that is in the session, and how far off that may be, by that step, too. */
uint64_t pki_cuda_session_ns(const struct pki_cuda_context *context, double device, double *doubt);

/* Two times read of one event differ by less than this, if it is not stamped in between; replays of
 * a graph follow each other at larger distances. The older it is, the coarser are the floats. */
double pki_cuda_same_ns(const struct pki_cuda_context *context, double device);
