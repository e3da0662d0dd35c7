/* pool.h - many arrays out of one allocation.
 *
 * The same code lays the arrays out twice: with base NULL to learn how much room they need, then
 * for real.
 */
#ifndef TRAIN_POOL_H
#define TRAIN_POOL_H

#include "real.h"

typedef struct pool {
    real *base; /* NULL: only count */
    size_t used;
} pool;

static inline real *pool_take(pool *p, size_t count)
{
    real *array = p->base ? p->base + p->used : NULL;
    p->used += (count + 15) / 16 * 16; /* every array begins on a cache line of its own */
    return array;
}

#endif
