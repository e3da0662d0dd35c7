/* portions.h - a thread that records while others are in a driver: several rings full, a quarter of
 * one after the other, each behind a round of the collector. Nothing is dropped if there is one. */
#ifndef TESTS_PORTIONS_H
#define TESTS_PORTIONS_H

#include <pk/pk.h>

#include <stdbool.h>
#include <time.h>

#include "base/clock.h"
#include "core/arena.h"
#include "session/session.h"

#define KIT_RING 1024u /* records; for pk_options.tuning: */
#define KIT_RING_TUNING "ring_records=1024"
#define KIT_PORTIONS 24
#define KIT_PATIENCE_NS 250000000u /* then there is no round, and it goes on */

static pk_region kit_portion = PK_REGION("portion");

static inline uint64_t kit_rounds(void)
{
    return __atomic_load_n(&pki_the_session.arena->header->generation, __ATOMIC_ACQUIRE);
}

/* Of which the first may have begun before, and a round may count twice. */
static inline void kit_await_rounds(uint64_t before)
{
    const struct timespec nap = {0, 200000};
    uint64_t since = pki_monotonic_ns();
    while (kit_rounds() < before + 3 && pki_monotonic_ns() - since < KIT_PATIENCE_NS)
        nanosleep(&nap, NULL);
}

static inline void kit_record_portions(void)
{
    for (unsigned i = 0; i < KIT_PORTIONS; i++) {
        uint64_t before = kit_rounds();
        for (unsigned n = 0; n < KIT_RING / 4; n++) {
            PK_REGION_SCOPE(kit_portion);
        }
        pki_bell_ring(
            &pki_collector_bell); /* as a ring does that fills faster than it is looked at */
        kit_await_rounds(before);
    }
}

static inline uint64_t kit_dropped(void)
{
    pk_counts c = {.size = sizeof c};
    return pk_get_counts(&c) == PK_OK ? c.dropped : UINT64_MAX;
}

#endif
