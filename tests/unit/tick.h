/* tests/unit/tick.h - how long a tick of the open session's clock is: 16 ns on some Arm processors,
 * so that calls may begin and end in one. */
#ifndef TESTS_UNIT_TICK_H
#define TESTS_UNIT_TICK_H

#include "core/arena.h"
#include "core/registry.h"

static inline uint64_t tick_ns(void)
{
    return (uint64_t)(pki_clock_unit_ns(&pki_registry_now()->arena->header->clock) + 0.5);
}

#endif
