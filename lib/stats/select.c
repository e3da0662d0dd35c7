#include "stats/select.h"

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
