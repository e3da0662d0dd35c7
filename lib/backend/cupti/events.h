/* lib/backend/cupti/events.h - which call recorded the event that somebody waits for.
 *
 * CUPTI has a record of an event each time that it is recorded: which one, on which stream, by
 * which call. A record of a wait has the event alone. What was waited for is the newest recording
 * before the wait; correlations grow with each call.
 *
 * Recordings are forgotten after two rounds of pki_cupti_events_age, but for the newest of each
 * event.
 *
 * Threads: one at a time (the drain lock); pki_cupti_events_want between sessions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Are they recorded in this session? (pk_options.cupti_sync_events) */
void pki_cupti_events_want(bool on);
bool pki_cupti_events_wanted(void);

typedef struct pki_cupti_recorded {
    uint32_t correlation; /* of the call; 0: unknown */
    uint32_t stream;
} pki_cupti_recorded;

/* False without memory. */
bool pki_cupti_event_note(uint32_t context, uint32_t event, pki_cupti_recorded recorded);

/* The newest one before that correlation. */
pki_cupti_recorded pki_cupti_event_before(uint32_t context, uint32_t event, uint32_t correlation);

/* Contexts and their devices, by what is seen of them; 0 for one that is not known. */
void pki_cupti_context_note(uint32_t context, uint32_t device);
uint32_t pki_cupti_context_device(uint32_t context);

void pki_cupti_events_age(void);
void pki_cupti_events_forget(void);
void pki_cupti_events_after_fork(void);
