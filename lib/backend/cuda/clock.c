#include "backend/cuda/clock.h"

#include <math.h>

#include "base/compiler.h"

#define BASELINE_NS 60e9 /* over which the rate is measured, at least, once so much has passed */
#define CATCH_UP_NS 4e9
#define BEND 200e-6
#define STRANGE_RATE 1e-3 /* no two clocks of a machine differ by as much */
#define JUMP_NS 1e6       /* the machine slept, or the device was reset: no use in bending */

static double clamp(double x, double most)
{
    return x > most ? most : x < -most ? -most : x;
}

/* As far as the anchors can tell; 1 as long as their doubt is larger than what clocks differ by. */
static double measured_rate(const pki_cuda_clock *c, pki_cuda_point p)
{
    double passed = p.device - c->far.device;
    if (passed <= 0 || p.doubt + c->far.doubt > passed * 50e-6)
        return c->now.rate;
    return 1 + clamp((p.host - c->far.host) / passed - 1, STRANGE_RATE);
}

static void move_baseline(pki_cuda_clock *c, pki_cuda_point p)
{
    if (p.device - c->middle.device < BASELINE_NS)
        return;
    c->far = c->middle;
    c->middle = p;
}

static void begin(pki_cuda_clock *c, pki_cuda_point p)
{
    c->now = c->before = (pki_cuda_segment){p.device, p.host, 1};
    c->far = c->middle = p;
    c->doubt = p.doubt;
}

/* What was known of the rate is of no use any more. */
static void jump(pki_cuda_clock *c, pki_cuda_point p)
{
    pki_cuda_segment before = c->now;
    begin(c, p);
    c->now.rate = before.rate;
    c->before = before;
}

static void go_on(pki_cuda_clock *c, pki_cuda_point p)
{
    double said = pki_cuda_clock_ns(c, p.device), error = p.host - said;
    if (fabs(error) > JUMP_NS) {
        jump(c, p);
        return;
    }
    /* Within the bracket the anchor does not contradict. */
    double bend = fabs(error) > p.doubt ? error / CATCH_UP_NS : 0;
    double rate = measured_rate(c, p);
    c->before = c->now;
    c->now = (pki_cuda_segment){p.device, said, rate + clamp(bend, BEND)};
    c->doubt = p.doubt + fabs(error);
    move_baseline(c, p);
}

void pki_cuda_clock_anchor(pki_cuda_clock *c, pki_cuda_point p)
{
    if (c->anchors++ == 0)
        begin(c, p);
    else
        go_on(c, p);
}

double pki_cuda_clock_ns(const pki_cuda_clock *c, double device)
{
    const pki_cuda_segment *s = device < c->now.device ? &c->before : &c->now;
    return s->host + (device - s->device) * s->rate;
}

double pki_cuda_quantum_ns(double milliseconds)
{
    float f = (float)fabs(milliseconds);
    return ((double)nextafterf(f, INFINITY) - (double)f) * 1e6;
}
