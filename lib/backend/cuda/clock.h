/* lib/backend/cuda/clock.h - a device's time, in nanoseconds of the session.
 *
 * Events say how many milliseconds lie between two of them, as a float; where they lie on the
 * CPU's clock is known only for anchors: events of our own, recorded and seen complete within a
 * bracket of two readings. The map is straight between corrections: continuous, so that what
 * follows each other on the device does so on the time line, whichever anchor it was measured from.
 * Its rate comes from anchors far apart, and bends by at most 200 ppm to catch up with what an
 * anchor says.
 */
#pragma once

#include <stdbool.h>

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

void pki_cuda_bound_not_reached(pki_cuda_bounds *bounds, double device, double host);
void pki_cuda_bound_reached(pki_cuda_bounds *bounds, double device, double host);

/* Narrows the part of the host's time in which `device` lies; what contradicts it is left out. */
void pki_cuda_bounds_narrow(const pki_cuda_bounds *bounds, double device, double *from, double *to);

/* What an anchor says. The first one starts the map; a first one of a new session needs a zeroed
 * clock. */
void pki_cuda_clock_anchor(pki_cuda_clock *clock, pki_cuda_point point);

/* Of the session, for a device time not much older than the anchor before the last. */
double pki_cuda_clock_ns(const pki_cuda_clock *clock, double device);

/* How far off that may be. */
double pki_cuda_clock_doubt(const pki_cuda_clock *clock, double device);

/* The smallest step of a float of so many milliseconds, in nanoseconds. */
double pki_cuda_quantum_ns(double milliseconds);
