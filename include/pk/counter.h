/* pk/counter.h - values over time: memory in use, queue length, loss.
 *
 *     static pk_counter queue = PK_COUNTER("loader.queue", "batches");
 *     pk_counter_set(&queue, (double)n);
 *
 * Each call is a sample: of the counter's curve in the trace, and of its distribution in the
 * report. There count, min, max and last are exact; sum, mean and standard deviation are rounded
 * only once, however large the values and however small their spread; quantiles are within 1 % for
 * magnitudes from 2^-64 to 2^63.
 *
 * Threads: any thread; several may set one counter.
 * Failure: none visible. A value for which the ring has no room is missing from the trace but not
 *          from the distribution, and is counted (pk_counts.points_dropped). A value that is not
 *          finite is in neither, and is counted separately (pk_counts.not_finite).
 * Cost:    off: a load and a branch. On: one clock read and a 32-byte store.
 */
#ifndef PK_COUNTER_H
#define PK_COUNTER_H

#include <pk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Declare it static or global, initialise it with PK_COUNTER, and leave its members alone. */
typedef struct pk_counter {
    const char *name;
    const char *unit; /* shown with the values; NULL or "" for a bare number */
    uint32_t id;      /* 0 until first used */
    uint32_t reserved;
    uint64_t spare[2]; /* 0; for later versions */
} pk_counter;

#define PK_COUNTER(name, unit)                                                                     \
    {                                                                                              \
        (name), (unit), 0, 0,                                                                      \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }

PK_API PK_INLINE void pk_counter_set(pk_counter *counter, double value);

/* The counter of that name, for names known only at run time and for other languages. The same name
 * gives the same pointer for the process's life; the name is copied. Never NULL. */
PK_API pk_counter *pk_counter_named(const char *name, const char *unit);

/* ---- below: how it is done ---- */

#ifndef PK_DISABLE

PK_API void pk_counter_set_on_(pk_counter *counter, double value);

PK_INLINE void pk_counter_set(pk_counter *counter, double value)
{
    if (PK_ON_)
        pk_counter_set_on_(counter, value);
}

#endif /* PK_DISABLE */

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_COUNTER_
#include <pk/disable.h>
#endif
#endif
