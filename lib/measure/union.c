#include "measure/union.h"

#include "base/compiler.h"

#include <string.h>

static void close_oldest(pki_union *u)
{
    u->closed += u->pieces[0].end - u->pieces[0].start;
    u->closed_until = u->pieces[0].end;
    memmove(&u->pieces[0], &u->pieces[1], --u->count * sizeof u->pieces[0]);
}

void pki_union_add(pki_union *u, uint64_t start, uint64_t end)
{
    start = PKI_MAX(start, u->closed_until);
    if (end <= start)
        return;
    size_t first = u->count, last; /* of the pieces that it touches */
    while (first && u->pieces[first - 1].end >= start)
        first--;
    for (last = first; last < u->count && u->pieces[last].start <= end; last++) {
        start = PKI_MIN(start, u->pieces[last].start);
        end = PKI_MAX(end, u->pieces[last].end);
    }
    if (last == first && u->count == PKI_UNION_OPEN) {
        close_oldest(u);
        pki_union_add(u, start, end);
        return;
    }
    memmove(&u->pieces[first + 1], &u->pieces[last], (u->count - last) * sizeof u->pieces[0]);
    u->count = u->count - (last - first) + 1;
    u->pieces[first].start = start;
    u->pieces[first].end = end;
}

uint64_t pki_union_length(const pki_union *u)
{
    uint64_t length = u->closed;
    for (size_t i = 0; i < u->count; i++)
        length += u->pieces[i].end - u->pieces[i].start;
    return length;
}
