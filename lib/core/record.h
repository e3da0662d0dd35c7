/* lib/core/record.h - what a thread hands over: 32 bytes in a ring. */
#ifndef PKI_CORE_RECORD_H
#define PKI_CORE_RECORD_H

#include <stdint.h>

typedef enum pki_record_type {
    PKI_RECORD_REGION = 1,      /* start, value = duration, extra = own time; all in ticks */
    PKI_RECORD_REGION_WORK = 2, /* the same; the next slot holds bytes and flops */
    PKI_RECORD_STEP_SELF = 3,   /* value = a region's own time in the step that the next PKI_RECORD_STEP closes */
    PKI_RECORD_STEP = 4,        /* start, value = duration; the next slot holds index and items */
    PKI_RECORD_COUNTER = 5,     /* start; value = the double's bits */
    PKI_RECORD_MARK = 6         /* start */
} pki_record_type;

#define PKI_FLAG_UNBALANCED 1u /* region: not closed by its own end */
#define PKI_FLAG_UNKNOWN 2u    /* step: no breakdown */

/* what = name id | type << 32 | ties << 40 | flags << 48. Ties: so many open regions around this one
 * began at the very same tick (trace viewers need them apart, see lib/out/chrome.c). */
typedef struct pki_record {
    uint64_t start;
    uint64_t value;
    uint64_t what;
    uint64_t extra;
} pki_record;

_Static_assert(sizeof(pki_record) == 32, "the ring's bytes per region are a promise");

#define PKI_WHAT(id, type, ties, flags)                                                            \
    ((uint64_t)(id) | (uint64_t)(type) << 32 | (uint64_t)(ties) << 40 | (uint64_t)(flags) << 48)

static inline uint32_t pki_what_id(uint64_t what)
{
    return (uint32_t)what;
}

static inline unsigned pki_what_type(uint64_t what)
{
    return (unsigned)(what >> 32) & 0xFF;
}

static inline unsigned pki_what_ties(uint64_t what)
{
    return (unsigned)(what >> 40) & 0xFF;
}

static inline unsigned pki_what_flags(uint64_t what)
{
    return (unsigned)(what >> 48) & 0xFF;
}

/* Ring slots that a record takes. */
static inline unsigned pki_record_slots(uint64_t what)
{
    unsigned type = pki_what_type(what);
    return type == PKI_RECORD_REGION_WORK || type == PKI_RECORD_STEP ? 2 : 1;
}

#endif
