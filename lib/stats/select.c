#include "stats/select.h"

#include <math.h>
#include <stdbool.h>

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* Hoare's selection, the pivot the median of three: sorted or equal samples cost no more. */
void pki_select(double *samples, size_t n, size_t wanted)
{
    size_t first = 0, last = n - 1;
    while (first < last) {
        size_t middle = first + (last - first) / 2, i = first, j = last;
        if (samples[middle] < samples[first])
            swap(&samples[middle], &samples[first]);
        if (samples[last] < samples[middle])
            swap(&samples[last], &samples[middle]);
        if (samples[middle] < samples[first])
            swap(&samples[middle], &samples[first]);
        double pivot = samples[middle];
        while (i <= j) {
            while (samples[i] < pivot)
                i++;
            while (pivot < samples[j])
                j--;
            if (i > j)
                break;
            swap(&samples[i], &samples[j]);
            i++;
            if (j == 0)
                break;
            j--;
        }
        if (wanted <= j)
            last = j;
        else if (wanted >= i)
            first = i;
        else
            return;
    }
}

/* ---- with weights ---- */

typedef struct parts {
    size_t equal, larger; /* where they begin */
    double below, same;   /* weights of those before `equal`, and of those from there to `larger` */
} parts;

static void swap_weighted(pki_weighted *a, pki_weighted *b)
{
    pki_weighted kept = *a;
    *a = *b;
    *b = kept;
}

static double middle_of(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* Those from first to last, of which there is one at least, by the median of three of them. */
static parts part(pki_weighted *all, size_t first, size_t last)
{
    double pivot =
        middle_of(all[first].value, all[first + (last - first) / 2].value, all[last - 1].value);
    parts out = {.equal = first, .larger = last};
    for (size_t i = first; i < out.larger;) {
        if (all[i].value < pivot) {
            out.below += all[i].weight;
            swap_weighted(&all[i++], &all[out.equal++]);
        } else if (pivot < all[i].value) {
            swap_weighted(&all[i], &all[--out.larger]);
        } else {
            out.same += all[i++].weight;
        }
    }
    return out;
}

static double least_from(const pki_weighted *all, size_t first, size_t n, double otherwise)
{
    double least = first < n ? all[first].value : otherwise;
    for (size_t i = first; i < n; i++)
        least = fmin(least, all[i].value);
    return least;
}

/* The half is where the part before said that it is, even if rounding says otherwise (larger ==
 * last). */
double pki_select_weighted_median(pki_weighted *all, size_t n)
{
    double half = 0, before = 0;
    for (size_t i = 0; i < n; i++)
        half += all[i].weight / 2;
    for (size_t first = 0, last = n; first < last;) {
        parts p = part(all, first, last);
        double value = all[p.equal].value, up_to = before + p.below + p.same;
        if (before + p.below >= half * (1 - 1e-9) && p.equal > first) {
            last = p.equal;
        } else if (up_to >= half * (1 - 1e-9) || p.larger == last) {
            bool between = up_to <= half * (1 + 1e-9);
            return between ? (value + least_from(all, p.larger, n, value)) / 2 : value;
        } else {
            before = up_to;
            first = p.larger;
        }
    }
    return NAN;
}
