/* lib/backend/cupti/join.h - from records in the order in which buffers come back to activities.
 *
 * A kernel, the call that launched it and the region that the call was made in are three records
 * in up to three buffers. So records are held until what they belong to has been read, or until it
 * is too late for that; then they are handed over in the order in which they began. A region is
 * known by correlation alone, never by time.
 *
 * Threads: one at a time (the drain lock).
 */
#pragma once

#include "backend/cupti/events.h"
#include "backend/cupti/links.h"
#include "backend/cupti/records.h"

#define PKI_CUPTI_PATIENCE_NS 10000000000u /* how long an arrow's other end is waited for */

/* Of the time since the session started, ns. */
typedef struct pki_cupti_limits {
    uint64_t begin, end; /* what begins outside is not wanted; end UINT64_MAX: not known yet */
    uint64_t decided;    /* if begin and end are not known yet, they are not before this */
    uint64_t complete;   /* what began before this and has ended has been read */
    uint64_t now;
    bool last; /* nothing more will come */
} pki_cupti_limits;

/* What a record needs besides itself. */
typedef struct pki_cupti_tie {
    uint64_t external;            /* id of the region; 0: none */
    uint64_t correlation;         /* 0: not to be shown */
    bool flow;                    /* both ends of the arrow are in the trace */
    uint32_t thread;              /* of the call; 0: unknown */
    uint64_t start, end;          /* of the call */
    pki_cupti_recorded source;    /* of a wait for an event: where that was recorded */
    const pki_cupti_link *record; /* of a call: it has recorded an event; else NULL */
} pki_cupti_tie;

typedef void pki_cupti_give(const pki_cupti_record *record, const pki_cupti_tie *tie);

/* For pki_cupti_read; user is a pki_cupti_counts. */
void pki_cupti_join_record(void *counts, const pki_cupti_record *record);

/* Hands over what is ready. */
void pki_cupti_join_finalise(const pki_cupti_limits *limits, pki_cupti_counts *counts,
                             pki_cupti_give *give);

/* Everything on devices that began before this, and inside the limits, has been handed over: what
 * was launched before it, too, but for what has not come for PKI_CUPTI_PATIENCE_NS. */
uint64_t pki_cupti_join_finalised(const pki_cupti_limits *limits);

void pki_cupti_join_forget(void);
void pki_cupti_join_after_fork(void);
