#include "core/seats.h"

#include <stddef.h>

#include "base/compiler.h"

/* A file of its own: libpk_mpi has it of lib/job, without the thread that makes steps. */

/* The least of them makes room. */
static void put(pki_seats *s, uint32_t processor, uint64_t part)
{
    size_t least = 0;
    for (size_t i = 0; i < PKI_SEATS; i++) {
        if (s->of[i].part && s->of[i].processor == processor) {
            s->of[i].part += part;
            return;
        }
        if (s->of[i].part < s->of[least].part)
            least = i;
    }
    if (s->of[least].part >= part)
        return;
    s->of[least].part = part;
    s->of[least].processor = processor;
}

void pki_seats_add(pki_seats *s, uint32_t processor, uint64_t part)
{
    if (processor > PKI_SEAT_MOST)
        return;
    s->all += part;
    put(s, processor, part);
}

void pki_seats_add_seat(pki_seats *s, pki_seat seat)
{
    if (!pki_seat_share(seat))
        return;
    s->all += PKI_SEAT_ALL;
    put(s, pki_seat_processor(seat), pki_seat_share(seat));
}

void pki_seats_join(pki_seats *into, const pki_seats *from)
{
    into->all += from->all;
    for (size_t i = 0; i < PKI_SEATS; i++)
        put(into, from->of[i].processor, from->of[i].part);
}

pki_seat pki_seats_most(const pki_seats *s)
{
    size_t most = 0;
    for (size_t i = 1; i < PKI_SEATS; i++)
        if (s->of[i].part > s->of[most].part)
            most = i;
    if (!s->of[most].part)
        return 0;
    double share = PKI_SEAT_ALL * ((double)s->of[most].part / (double)s->all);
    uint32_t parts = PKI_MAX((uint32_t)(share + 0.5), 1);
    return (s->of[most].processor + 1) | PKI_MIN(parts, PKI_SEAT_ALL) << 16;
}
