#include "merge/bounds.h"

#include <math.h>

#define ROUNDS 60 /* of narrowing down a slope: to 1e-13 */

static bounds_piece *piece_at(bounds *b, double at)
{
    double part = b->span > 0 ? (at - b->from) / b->span * BOUNDS_PIECES : 0;
    int i = part > 0 ? part < BOUNDS_PIECES - 1 ? (int)part : BOUNDS_PIECES - 1 : 0;
    b->count++;
    return &b->pieces[i];
}

void bounds_least(bounds *b, double at, double offset)
{
    bounds_piece *p = piece_at(b, at);
    if (p->has_least && p->least >= offset)
        return;
    p->has_least = true;
    p->least = offset;
    p->least_at = at;
}

void bounds_most(bounds *b, double at, double offset)
{
    bounds_piece *p = piece_at(b, at);
    if (p->has_most && p->most <= offset)
        return;
    p->has_most = true;
    p->most = offset;
    p->most_at = at;
}

/* What lines of a slope have to be at the moment 0: those through `at`, among the bounds near it.
 */
typedef struct view {
    const bounds *b;
    double at;
} view;

static double lowest(const view *v, double slope)
{
    double found = -INFINITY;
    for (int i = 0; i < BOUNDS_PIECES; i++) {
        const bounds_piece *p = &v->b->pieces[i];
        double away = p->least_at - v->at;
        if (p->has_least && fabs(away) <= BOUNDS_LINE)
            found = fmax(found, p->least - slope * away);
    }
    return found;
}

static double highest(const view *v, double slope)
{
    double found = INFINITY;
    for (int i = 0; i < BOUNDS_PIECES; i++) {
        const bounds_piece *p = &v->b->pieces[i];
        double away = p->most_at - v->at;
        if (p->has_most && fabs(away) <= BOUNDS_LINE)
            found = fmin(found, p->most - slope * away);
    }
    return found;
}

/* Negative where no line of that slope fits. */
static double gap(const view *v, double slope)
{
    return highest(v, slope) - lowest(v, slope);
}

static double minus_lowest(const view *v, double slope)
{
    return -lowest(v, slope);
}

/* Where a concave function of the slope is largest. */
static double peak(const view *v, double (*of)(const view *, double), double from, double to)
{
    for (int i = 0; i < ROUNDS; i++) {
        double third = (to - from) / 3, a = from + third, b = to - third;
        if (of(v, a) < of(v, b))
            from = a;
        else
            to = b;
    }
    return (from + to) / 2;
}

/* From a slope that fits towards one that need not: the last that does. */
static double edge(const view *v, double fits, double beyond)
{
    if (gap(v, beyond) >= 0)
        return beyond;
    for (int i = 0; i < ROUNDS; i++) {
        double middle = (fits + beyond) / 2;
        if (gap(v, middle) >= 0)
            fits = middle;
        else
            beyond = middle;
    }
    return beyond; /* never too narrow */
}

bounds_found bounds_at(const bounds *b, double at, double *least, double *most)
{
    const view v = {b, at};
    *least = lowest(&v, 0);
    *most = highest(&v, 0);
    if (isinf(*least) || isinf(*most))
        return BOUNDS_OPEN;
    double best = peak(&v, gap, -BOUNDS_DRIFT, BOUNDS_DRIFT);
    if (gap(&v, best) < 0)
        return BOUNDS_BROKEN;
    double from = edge(&v, best, -BOUNDS_DRIFT), to = edge(&v, best, BOUNDS_DRIFT);
    *most = highest(&v, peak(&v, highest, from, to));
    *least = lowest(&v, peak(&v, minus_lowest, from, to));
    return BOUNDS_BOTH;
}
