#include "stats/series.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

void pki_series_finish(pki_series *series)
{
    free(series->rows);
    *series = (pki_series){0};
}

static char *row_at(const pki_series *series, const pki_series_kind *kind, size_t i)
{
    return (char *)series->rows + i * kind->row_bytes;
}

static bool grow(pki_series *s, const pki_series_kind *kind)
{
    size_t room = s->room ? 2 * s->room : kind->first_room;
    void *rows = room <= kind->most ? realloc(s->rows, room * kind->row_bytes) : NULL;
    if (!rows)
        return false;
    s->rows = rows;
    memset(row_at(s, kind, s->room), 0, (room - s->room) * kind->row_bytes);
    s->room = room;
    return true;
}

bool pki_series_reserve(pki_series *s, const pki_series_kind *kind)
{
    while (s->room < kind->most)
        if (!grow(s, kind))
            return false;
    return true;
}

static void halve(pki_series *s, const pki_series_kind *kind)
{
    size_t left = s->room / 2;
    for (size_t i = 0; i < left; i++) {
        char *both = row_at(s, kind, 2 * i);
        kind->join(both, row_at(s, kind, 2 * i + 1));
        memmove(row_at(s, kind, i), both, kind->row_bytes);
    }
    memset(row_at(s, kind, left), 0, (s->room - left) * kind->row_bytes);
    s->used = (s->used + 1) / 2;
    s->stride *= 2;
}

void *pki_series_at(pki_series *s, const pki_series_kind *kind, uint64_t position)
{
    s->stride = PKI_MAX(s->stride, kind->first_stride);
    while (position / s->stride >= s->room) {
        if (grow(s, kind))
            continue;
        if (s->room == 0)
            return NULL;
        halve(s, kind); /* full, or no memory to be had */
    }
    size_t i = (size_t)(position / s->stride);
    s->used = PKI_MAX(s->used, i + 1);
    return row_at(s, kind, i);
}

void *pki_series_next(pki_series *s, const pki_series_kind *kind)
{
    void *row = pki_series_at(s, kind, s->count);
    s->count += row != NULL;
    return row;
}
