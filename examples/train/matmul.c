#include "matmul.h"

#include <string.h>

/* A tile of ROWS x COLUMNS sums stays in vector registers while it walks DEPTH columns of a and
 * rows of b; the panel of b that it walks is packed so that it lies in the first-level cache.
 * Vectors of 16 bytes are what every x86-64 and aarch64 has. */
enum { ROWS = 4, COLUMNS = 8, DEPTH = 256 };
enum { LANES = 16 / sizeof(real), VECTORS = COLUMNS / LANES };

typedef real lanes __attribute__((vector_size(16)));

typedef union panel {
    real element[DEPTH][COLUMNS];
    lanes vector[DEPTH][VECTORS];
} panel;

/* Where in the product a tile is. */
typedef struct place {
    size_t row, column;  /* of c */
    size_t depth, count; /* the columns of a that it walks */
} place;

static size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Columns beyond the edge are zero, so that the tile needs no edge case. */
static void pack(extent e, matrix b, place at, panel *to)
{
    size_t width = lesser(COLUMNS, e.n - at.column);
    for (size_t l = 0; l < at.count; l++) {
        const real *row = b.data + (at.depth + l) * b.row + at.column * b.column;
        for (size_t j = 0; j < COLUMNS; j++)
            to->element[l][j] = j < width ? row[j * b.column] : 0;
    }
}

static void store(extent e, place at, lanes sum[ROWS][VECTORS], real *c, size_t c_row)
{
    size_t rows = lesser(ROWS, e.m - at.row), columns = lesser(COLUMNS, e.n - at.column);
    for (size_t i = 0; i < rows; i++) {
        real *row = c + (at.row + i) * c_row + at.column;
        for (size_t j = 0; j < columns; j++)
            row[j] += sum[i][j / LANES][j % LANES];
    }
}

static void multiply_tile(extent e, matrix a, const panel *b, place at, real *c, size_t c_row)
{
    lanes sum[ROWS][VECTORS] = {{{0}}};
    const real *row[ROWS];
    /* Rows beyond the edge repeat the last one; store() leaves them out. */
    for (size_t i = 0; i < ROWS; i++)
        row[i] = a.data + lesser(at.row + i, e.m - 1) * a.row + at.depth * a.column;
    for (size_t l = 0; l < at.count; l++)
        for (size_t i = 0; i < ROWS; i++)
            for (size_t v = 0; v < VECTORS; v++)
                sum[i][v] += row[i][l * a.column] * b->vector[l][v];
    store(e, at, sum, c, c_row);
}

void matmul_add(pk_region *charge, extent e, matrix a, matrix b, real *c, size_t c_row)
{
    panel packed;
    place at;
    for (at.depth = 0; at.depth < e.k; at.depth += DEPTH) {
        at.count = lesser(DEPTH, e.k - at.depth);
        for (at.column = 0; at.column < e.n; at.column += COLUMNS) {
            pack(e, b, at, &packed);
            for (at.row = 0; at.row < e.m; at.row += ROWS)
                multiply_tile(e, a, &packed, at, c, c_row);
        }
    }
    pk_region_add(charge, (e.m * e.k + e.k * e.n + e.m * e.n) * sizeof(real),
                  2 * (uint64_t)e.m * e.n * e.k);
}

void matmul(pk_region *charge, extent e, matrix a, matrix b, real *c, size_t c_row)
{
    for (size_t i = 0; i < e.m; i++)
        memset(c + i * c_row, 0, e.n * sizeof(real));
    matmul_add(charge, e, a, b, c, c_row);
}
