/* lib/attach/values.h - of some values the middle one, the mean, and how they vary (repeats.c). */
#pragma once

#include <math.h>
#include <stdint.h>

/* The middle one, by Hoare's selection (Algorithm 65, CACM 4, 1961, 321): qsort may allocate, and
 * we are on the program's thread. */
static inline double median(double *values, uint32_t count)
{
    int64_t low = 0, high = (int64_t)count - 1, middle = count / 2;
    while (low < high) {
        double pivot = values[middle];
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (pivot < values[j])
                j--;
            if (i <= j) {
                double swapped = values[i];
                values[i++] = values[j];
                values[j--] = swapped;
            }
        }
        low = j < middle ? i : low;
        high = middle < i ? j : high;
    }
    return count ? values[middle] : 0;
}

static inline double mean(const double *values, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / count : 0;
}

/* Standard deviation over mean. */
static inline double variation(const double *values, uint32_t count)
{
    double squares = 0, middle = mean(values, count);
    for (uint32_t i = 0; i < count; i++)
        squares += values[i] * values[i];
    double variance = squares / count - middle * middle;
    return middle > 0 && variance > 0 ? sqrt(variance) / middle : 0;
}

/* Of some on end, all but the last of the usual length: what that has more, as a share of all. */
static inline double share_beside(double usual, double last, double turns)
{
    double all = usual * (turns - 1) + last;
    return all > 0 && last > usual ? (last - usual) / all : 0;
}
