/* lib/core/seats.h - on which processors the thread that makes steps has been.
 *
 * Where ranks share processors, these are not alike: what runs on the other thread of a core, or
 * beside a virtual machine, takes a part of one and not of the next, and whoever sits there takes
 * longer by no fault of his own. So each step tells a seat: the processor on which most of the
 * thread's own time was, and the share of it there. A thread is looked at where its own time begins
 * and ends, at the borders that libpk_mpi announces (core/ready.h), else at the ends of steps; if
 * it is not where it was, half of the time between counts for each. A move there and back is not
 * seen. A look is a load where the C library has asked the kernel to keep the number up to date
 * (glibc 2.35 and later), else a call of the vDSO.
 */
#pragma once

#include <stdint.h>

#define PKI_SEATS 4          /* different ones that are kept; what else there was counts as one */
#define PKI_SEAT_MOST 65534u /* the highest number of a processor */
#define PKI_SEAT_ALL 1000u   /* a seat's share is of so many parts */
#define PKI_SEAT_UNKNOWN UINT32_MAX

/* The number of a processor + 1, and the share << 16. 0: not known. */
typedef uint32_t pki_seat;

/* All zero: nothing is known. */
typedef struct pki_seats {
    uint64_t all; /* of that the parts below; the rest was elsewhere */
    struct {
        uint64_t part; /* 0: there is none */
        uint32_t processor;
    } of[PKI_SEATS];
} pki_seats;

void pki_seats_add(pki_seats *seats, uint32_t processor, uint64_t part);

/* One more, of which the rest was elsewhere; all count alike. */
void pki_seats_add_seat(pki_seats *seats, pki_seat seat);

void pki_seats_join(pki_seats *into, const pki_seats *from);
pki_seat pki_seats_most(const pki_seats *seats);

static inline uint32_t pki_seat_processor(pki_seat seat)
{
    return (seat & 0xFFFF) - 1; /* PKI_SEAT_UNKNOWN of 0 */
}

static inline uint32_t pki_seat_share(pki_seat seat)
{
    return seat >> 16;
}
