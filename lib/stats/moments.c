/* A file of its own: libpkbench and libpk_mpi have it without the distributions that libpk exports.
 */
#include "stats/moments.h"

#include <math.h>

#include "base/compiler.h"

/* ---- pairs: the classical exact sums and products (Knuth, Dekker), without a fused multiply-add
 * ---- */

#define FARTHEST 0x1p500
#define NEAREST 0x1p-500
#define HALVES 134217729.0 /* 2^27 + 1 */

static pki_pair sum(double a, double b)
{
    double s = a + b, part = s - a;
    return (pki_pair){s, (a - (s - part)) + (b - part)};
}

/* For |a| >= |b|. */
static pki_pair quick_sum(double a, double b)
{
    double s = a + b;
    return (pki_pair){s, b - (s - a)};
}

static pki_pair product(double a, double b)
{
    double p = a * b, ta = HALVES * a, tb = HALVES * b;
    double ah = ta - (ta - a), bh = tb - (tb - b), al = a - ah, bl = b - bh;
    return (pki_pair){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

static pki_pair add(pki_pair a, pki_pair b)
{
    pki_pair s = sum(a.high, b.high), t = sum(a.low, b.low);
    s = quick_sum(s.high, s.low + t.high);
    return quick_sum(s.high, s.low + t.low);
}

static pki_pair times(pki_pair a, pki_pair b)
{
    pki_pair p = product(a.high, b.high);
    return quick_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

static pki_pair divided(pki_pair a, pki_pair b)
{
    double first = a.high / b.high;
    pki_pair whole = times((pki_pair){-first, 0}, b), rest = add(a, whole);
    return quick_sum(first, rest.high / b.high);
}

static pki_pair minus(pki_pair a)
{
    return (pki_pair){-a.high, -a.low};
}

static pki_pair of_count(uint64_t n)
{
    return sum((double)(n >> 32) * 0x1p32, (double)(n & UINT32_MAX));
}

/* ---- sums ---- */

/* An infinity has no low part that could make it anything else. */
static pki_pair or_infinite(pki_pair a)
{
    return isfinite(a.high) ? a : (pki_pair){INFINITY, 0};
}

static pki_pair square(pki_pair distance)
{
    double size = fabs(distance.high);
    if (PKI_UNLIKELY(!(size < FARTHEST)))
        return (pki_pair){INFINITY, 0};
    return size < NEAREST ? (pki_pair){0, 0} : times(distance, distance);
}

static void sum_up(pki_moments *m, pki_pair distance, pki_pair squared)
{
    m->apart = add(m->apart, distance);
    m->squares = or_infinite(add(m->squares, squared));
}

void pki_moments_add(pki_moments *m, double value, uint64_t n)
{
    if (n == 0)
        return;
    if (m->count == 0)
        *m = (pki_moments){.first = value, .min = value, .max = value};
    m->min = PKI_MIN(m->min, value);
    m->max = PKI_MAX(m->max, value);
    m->count += n;
    pki_pair distance = sum(value, -m->first), squared = square(distance), many = of_count(n);
    if (PKI_LIKELY(n == 1))
        sum_up(m, distance, squared);
    else
        sum_up(m, times(distance, many), times(squared, many));
}

void pki_moments_remove(pki_moments *m, double value)
{
    pki_pair distance = sum(value, -m->first);
    if (m->count <= 1) {
        *m = (pki_moments){0};
        return;
    }
    m->count--;
    sum_up(m, minus(distance), minus(square(distance)));
}

/* With d between the two first values: sum (x - first)^2 = sum (x - other)^2 + 2 d sum (x - other)
 * + n d^2. */
void pki_moments_merge(pki_moments *into, const pki_moments *from)
{
    if (from->count == 0)
        return;
    if (into->count == 0) {
        *into = *from;
        return;
    }
    pki_pair d = sum(from->first, -into->first), n = of_count(from->count);
    pki_pair twice = times((pki_pair){2 * d.high, 2 * d.low}, from->apart);
    into->min = PKI_MIN(into->min, from->min);
    into->max = PKI_MAX(into->max, from->max);
    into->count += from->count;
    sum_up(into, add(from->apart, times(n, d)),
           add(from->squares, add(twice, times(n, square(d)))));
}

/* The same sum, with the count and the sums of `before` negative. */
pki_moments pki_moments_difference(const pki_moments *now, const pki_moments *before)
{
    pki_moments rest = *now;
    if (before->count == 0)
        return rest;
    pki_pair d = sum(before->first, -now->first), n = of_count(before->count);
    pki_pair twice = times((pki_pair){2 * d.high, 2 * d.low}, before->apart);
    rest.count -= before->count;
    sum_up(&rest, minus(add(before->apart, times(n, d))),
           minus(add(before->squares, add(twice, times(n, square(d))))));
    return rest;
}

/* ---- what they say ---- */

double pki_moments_sum(const pki_moments *m)
{
    pki_pair whole = times(of_count(m->count), (pki_pair){m->first, 0});
    return add(whole, m->apart).high;
}

double pki_moments_mean(const pki_moments *m)
{
    if (m->count == 0)
        return 0;
    return add((pki_pair){m->first, 0}, divided(m->apart, of_count(m->count))).high;
}

double pki_moments_deviation(const pki_moments *m, uint64_t less)
{
    if (m->count <= less)
        return 0;
    if (!isfinite(m->squares.high))
        return INFINITY;
    pki_pair mean = divided(square(m->apart), of_count(m->count));
    pki_pair rest = add(m->squares, minus(mean));
    return rest.high > 0 ? sqrt(divided(rest, of_count(m->count - less)).high) : 0;
}
