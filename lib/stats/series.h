/* lib/stats/series.h - how something went over the run, in bounded room: it grows, then halves.
 *
 * Positions (steps counted from 0, nanoseconds) are cut into rows of equal length. When a position
 * lies behind the last row that there may be, each two rows become one of twice the length, as
 * often as it takes. What a row holds, and how two become one, the user says.
 *
 * Not for two threads at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row of zeros is an empty one. */
typedef struct pki_series_kind {
    size_t row_bytes;
    size_t first_room, most; /* rows; powers of two */
    uint64_t first_stride;   /* positions of a row, at first */
    void (*join)(void *row,
                 const void *next); /* adds next to row; of pki_series_at, either may be empty */
} pki_series_kind;

typedef struct pki_series {
    uint64_t stride; /* positions of a row */
    uint64_t count;  /* of pki_series_next */
    size_t used;     /* rows up to the last one that was asked for */
    size_t room;
    void *rows;
} pki_series;

/* All zero is an empty series, too. */
void pki_series_finish(pki_series *series);

/* Room for all rows that there may be, so that none is asked for later. False without memory. */
bool pki_series_reserve(pki_series *series, const pki_series_kind *kind);

/* The row of that position. NULL without memory for any row; with too little, rows are long. */
void *pki_series_at(pki_series *series, const pki_series_kind *kind, uint64_t position);

/* The row of the position that follows the one of the last call. */
void *pki_series_next(pki_series *series, const pki_series_kind *kind);
