/* lib/backend/cupti/join.h - from records in the order in which buffers come back to activities */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backend/cupti/records.h"

/* ---- which call recorded the event that somebody waits for ---- */

/* CUPTI has a record of an event each time that it is recorded: which one, on which stream, by
 * which call. A record of a wait has the event alone. What was waited for is the newest recording
 * before the wait; correlations grow with each call.
 *
 * Recordings are forgotten after two rounds of pki_cupti_events_age, but for the newest of each
 * event.
 *
 * Threads: one at a time (the drain lock); pki_cupti_sync_events between sessions. */

/* Are they recorded in this session? (cupti_sync_events) */
extern bool pki_cupti_sync_events;

typedef struct pki_cupti_recorded {
    uint32_t correlation; /* of the call; 0: unknown */
    uint32_t stream;
} pki_cupti_recorded;

/* Contexts and their devices, by what is seen of them; 0 for one that is not known. */
uint32_t pki_cupti_context_device(uint32_t context);

/* ---- what is known of a correlation ---- */

/* The call, what it launched, and the region that it was made in. They come in different records,
 * in any order, in different buffers.
 *
 * Links are forgotten once nobody has asked for them in two rounds of pki_cupti_links_age; those of
 * calls whose kernel is still to come, in PKI_CUPTI_LINK_AGES.
 *
 * Threads: one at a time (the drain lock). */

typedef struct pki_cupti_link {
    uint32_t correlation; /* 0: a free place */
    bool called;          /* there is a record of the call, in the trace or on its way */
    bool by_runtime;      /* and it is one of the runtime */
    bool launches;        /* it is one that puts work on a device */
    bool on_device;       /* and there is a record of that */
    bool emitted;         /* a call's event with this correlation has been handed over */
    bool alone;           /* one end has been handed over without an arrow */
    bool arrived;         /* the arrow's end has been handed over */
    uint8_t age;
    bool recorded; /* an event: it, its context and stream */
    uint32_t event, event_context, event_stream;
    uint32_t thread;
    uint64_t start, end; /* of the call */
    uint64_t external;   /* what was pushed; 0: no region was open */
} pki_cupti_link;

/* ---- from records in the order in which buffers come back to activities ---- */

/* A kernel, the call that launched it and the region that the call was made in are three records
 * in up to three buffers. So records are held until what they belong to has been read, or until it
 * is too late for that; then they are handed over in the order in which they began. A region is
 * known by correlation alone, never by time.
 *
 * Threads: one at a time (the drain lock). */

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

/* Since CUPTI has recorded. What had been launched before has no record, and may run until the
 * first that has one on its stream begins: when the last of those did; 0: none had to wait;
 * UINT64_MAX: nothing has a record. All records since then are still held. amid: the program was at
 * work, so something may have run and ended before a first that had not to wait, too. */
uint64_t pki_cupti_join_queued(bool amid);

/* Everything on devices that began before this, and inside the limits, has been handed over: what
 * was launched before it, too, but for what has not come for PKI_CUPTI_PATIENCE_NS. */
uint64_t pki_cupti_join_finalised(const pki_cupti_limits *limits);

/* whole: false in a fork's child, where all of it may be half of something: nothing is freed. */
void pki_cupti_join_forget(bool whole);

/* The identifier that a mangled name begins with; false: it is not mangled in a way that is known.
 */
bool pki_cupti_identifier(const char *mangled, char *name, size_t size);
