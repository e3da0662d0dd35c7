/* lib/core/events.h - which calls are sampled: at their begin and end the hardware and software
 * events of their thread are read (core/sampler.h).
 *
 * The fast path does not know of it. A region's id is moved aside, as a thinned one's
 * (core/thin.h), so its calls leave the fast path, where one of n is sampled, at random distances;
 * n is such that each region's samples take no more than the bound of its thread's time, times
 * pki_sampling.ease.
 *
 * A region that is called so often that leaving the fast path would cost too much is a *frequent*
 * one, whose id stays where it is. A call of those is sampled now and then: the owner of a ring has
 * to look into it at some record anyway (core/ring.c); here that is one at a random distance from
 * the one before. The region whose end meets it, a random one of all that the thread calls, in
 * proportion to its calls, has its id moved aside for one call, the next one, which is sampled.
 * (A thinned region is off the fast path anyway, and has no need of looks.)
 *
 * A sampled call is read before its time begins and after it has ended, so that its own duration is
 * not longer for it; those around it are.
 */
#pragma once

#include "core/sampler.h"

static inline bool pki_events_on(void)
{
    return PKI_UNLIKELY(pki_load(&pki_sampling_on));
}

/* Shall calls of that region leave the fast path? */
bool pki_events_keep_off_fast_path(uint32_t id);

/* Before a call begins, off the fast path. picked: its id has been moved aside. thin_gap: one of so
 * many calls gets here, where the region is thinned; 0 elsewhere. The flags of its frame: 0, or
 * those of a sampled one. */
uint32_t pki_events_begin(pki_thread *t, uint32_t id, bool picked, uint32_t thin_gap);

/* A thread's first calls all leave the fast path, so that regions that an earlier session has used
 * are met. Has it made enough of them with this one? Once. */
bool pki_events_met_enough(const pki_thread *t);

/* The innermost region, which is a sampled one, or one around it, ends now. */
void pki_events_read_end(const pki_thread *t);
void pki_events_forget_end(void); /* what was read is used up */

/* That call is over; balanced: by its own end. */
void pki_events_end(unsigned depth, uint32_t id, bool balanced);

/* The thread's ring is looked into at that offset: the one to look at next, at the latest. */
uint32_t pki_events_check(pki_thread *t, uint32_t at);

/* Has a record that was being written met such a look, since that was last forgotten? (Of a point
 * or a step: the region picked is the next one that ends off the fast path.) */
bool pki_events_is_due(void);
void pki_events_forget_check(void);

void pki_events_reset(void);
