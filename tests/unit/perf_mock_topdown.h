/* tests/unit/perf_mock_topdown.h - events of pipeline slots, as strict as what describes them:
 * Intel's by linux, tools/perf/Documentation/topdown.txt ("Limits on Intel Ice Lake"); AMD's by its
 * Processor Programming References, as linux, tools/perf/pmu-events/arch/x86/amdzen5 has them.
 */
#ifndef TESTS_PERF_MOCK_TOPDOWN_H
#define TESTS_PERF_MOCK_TOPDOWN_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum mock_core { MOCK_OTHER, MOCK_INTEL, MOCK_ZEN } mock_core;

#define MOCK_SLOTS 0x0400u

static inline bool mock_topdown_leads(mock_core core, uint64_t config)
{
    return core == MOCK_INTEL && config == MOCK_SLOTS;
}

/* What it would have counted so far, of slots by what became of them: retiring, bad speculation,
 * front end, back end. False: there is no such event. */
static inline bool mock_topdown_count(mock_core core, uint64_t config, const uint64_t slots[4],
                                      uint64_t *count)
{
    const struct {
        mock_core of;
        uint64_t config, count;
    } known[] = {
        {MOCK_INTEL, MOCK_SLOTS, slots[0] + slots[1] + slots[2] + slots[3]},
        {MOCK_INTEL, 0x8000, slots[0]},
        {MOCK_INTEL, 0x8100, slots[1]},
        {MOCK_INTEL, 0x8200, slots[2]},
        {MOCK_INTEL, 0x8300, slots[3]},
        {MOCK_ZEN, 0xc1, slots[0]},             /* PMCx0C1: ops that retired */
        {MOCK_ZEN, 0x7aa, slots[0] + slots[1]}, /* PMCx0AA, 07h: ops that were dispatched */
        {MOCK_ZEN, 0x1000001a0u, slots[2]},     /* PMCx1A0, 01h: nothing from the front end */
        {MOCK_ZEN, 0x100001ea0u, slots[3]},     /* PMCx1A0, 1Eh: the back end stalled */
    };
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].of == core && known[i].config == config) {
            *count = known[i].count;
            return true;
        }
    return false;
}

/* The group's leader, or NULL. */
static inline int mock_topdown_refusal(mock_core core, const struct perf_event_attr *a,
                                       const uint64_t *leader)
{
    static const uint64_t none[4];
    uint64_t count;
    bool slots = mock_topdown_leads(core, a->config);
    if (a->config1 || a->config2)
        return EINVAL; /* they support no filters */
    if (!mock_topdown_count(core, a->config, none, &count))
        return EINVAL;
    if (core == MOCK_INTEL && slots == (leader != NULL))
        return EINVAL; /* slots lead, the others follow */
    if (core == MOCK_INTEL && leader && !mock_topdown_leads(core, *leader))
        return EINVAL; /* what they are shares of */
    return 0;
}

#endif
