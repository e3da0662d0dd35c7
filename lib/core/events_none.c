/* lib/core/events_none.c - built without costs (-Dservices=): no call is sampled. */
#include "core/events.h"

pki_sampling pki_sampling_now;
uint32_t pki_sampling_on;

void pki_sampler_release(void) {}

double pki_samplers_spent(void)
{
    return 0;
}

void pki_samplers_after_fork(void) {}

bool pki_events_keep_off_fast_path(uint32_t id)
{
    (void)id;
    return false;
}

uint32_t pki_events_begin(pki_thread *t, uint32_t id, bool picked, uint32_t thin_gap)
{
    (void)t, (void)id, (void)picked, (void)thin_gap;
    return 0;
}

void pki_events_read_end(const pki_thread *t)
{
    (void)t;
}

void pki_events_forget_end(void) {}

void pki_events_end(unsigned depth, uint32_t id, bool balanced)
{
    (void)depth, (void)id, (void)balanced;
}

uint32_t pki_events_check(pki_thread *t, uint32_t at)
{
    (void)t, (void)at;
    return UINT32_MAX; /* nobody asks where no call is sampled */
}

bool pki_events_is_due(void)
{
    return false;
}

void pki_events_forget_check(void) {}
