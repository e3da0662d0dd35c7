/* matmul.h - the matrix product, where a step spends most of its time. */
#ifndef TRAIN_MATMUL_H
#define TRAIN_MATMUL_H

#include <pk/pk.h>

#include "real.h"

/* Element (i, j) lies at data[i * row + j * column]. */
typedef struct matrix {
    const real *data;
    size_t row, column;
} matrix;

static inline matrix plain(const real *data, size_t row)
{
    return (matrix){data, row, 1};
}

/* Rows for columns: nothing is moved. */
static inline matrix transposed(const real *data, size_t row)
{
    return (matrix){data, 1, row};
}

/* c = a b, where a is m x k, b is k x n and c is m x n, its rows c_row apart. */
typedef struct extent {
    size_t m, n, k;
} extent;

/* Adds its bytes and operations to `charge`, the region that the caller has open: the report then
 * shows GB/s and GFLOP/s beside each layer's time. */
void matmul(pk_region *charge, extent e, matrix a, matrix b, real *c, size_t c_row);

/* c += a b */
void matmul_add(pk_region *charge, extent e, matrix a, matrix b, real *c, size_t c_row);

#endif
