#include "backend/cuda/clock.h"

#include <math.h>

#include "base/compiler.h"

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

static const pki_cuda_segment *segment_of(const pki_cuda_clock *c, double device)
{
    return device < c->now.device ? &c->before : &c->now;
}

double pki_cuda_clock_ns(const pki_cuda_clock *c, double device)
{
    const pki_cuda_segment *s = segment_of(c, device);
    return s->host + (device - s->device) * s->rate;
}

double pki_cuda_clock_doubt(const pki_cuda_clock *c, double device)
{
    const pki_cuda_segment *s = segment_of(c, device);
    return s->doubt + fabs(device - s->device) * s->rate_doubt;
}

/* What the bound says of another device time, at its most cautious: sign is where caution lies. */
static double carried(const pki_cuda_bound *b, double device, double sign)
{
    double passed = device - b->device;
    return b->host + passed + sign * fabs(passed) * DRIFT;
}

void pki_cuda_bound_not_reached(pki_cuda_bounds *b, double device, double host)
{
    if (!b->not_reached.there || host > carried(&b->not_reached, device, -1))
        b->not_reached = (pki_cuda_bound){device, host, true};
}

void pki_cuda_bound_reached(pki_cuda_bounds *b, double device, double host)
{
    if (!b->reached.there || host < carried(&b->reached, device, 1))
        b->reached = (pki_cuda_bound){device, host, true};
}

void pki_cuda_bounds_narrow(const pki_cuda_bounds *b, double device, double *from, double *to)
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
