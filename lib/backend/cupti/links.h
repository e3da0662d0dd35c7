/* lib/backend/cupti/links.h - what is known of a correlation: the call, what it launched, and the
 * region that it was made in. They come in different records, in any order, in different buffers.
 *
 * Links are forgotten once nobody has asked for them in two rounds of pki_cupti_links_age; those of
 * calls whose kernel is still to come, in PKI_CUPTI_LINK_AGES.
 *
 * Threads: one at a time (the drain lock).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PKI_CUPTI_LINK_AGES 30

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

/* The link, made if need be; good until the next call of these. NULL for correlation 0, and without
 * memory. */
pki_cupti_link *pki_cupti_link_at(uint32_t correlation);

void pki_cupti_links_age(void);
void pki_cupti_links_forget(void);
void pki_cupti_links_after_fork(void);
