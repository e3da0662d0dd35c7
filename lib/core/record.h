/* lib/core/record.h - what a thread hands over */
#pragma once

#include <pk/request.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "core/seats.h"

/* ---- what a thread hands over: 32 bytes in a ring ---- */

typedef enum pki_record_type {
    PKI_RECORD_REGION = 1,      /* start, value = duration in ticks; extra means something only with
                                   PKI_FLAG_LOST */
    PKI_RECORD_REGION_WORK = 2, /* the same; the next slot's start and value hold bytes and flops,
                                   its what and extra a payload's type and bits. Of a
                                   PKI_PAYLOAD_OPERATION, extra without PKI_FLAG_LOST is the
                                   message's tag (PKI_TAGGED) */
    PKI_RECORD_STEP_SELF = 3,   /* start = the step's end; value = self time in ns, in that step, of
                                   calls that found no room */
    PKI_RECORD_STEP_OPEN = 4, /* of a region that is open across the step's end, which is its start:
                                 value = ns up to where the one inside it began, or the step ended;
                                 extra = those of lost calls in them */
    PKI_RECORD_STEP =
        5, /* start, value = duration, extra = ns of it without a processor (core/ready.h); the next
              slot's start and value hold index and items, its
              extra the id of the kind's name, 0: the usual kind, and in its upper half, as a float,
              the model's operations; its what has those that were done, and the seat. With
              PKI_FLAG_BETWEEN the time before the step of that index, which belongs to none */
    PKI_RECORD_COUNTER = 6,   /* start; value = the double's bits; extra: of some of our own */
    PKI_RECORD_MARK = 7,      /* start; value and extra = a payload's bits and type */
    PKI_RECORD_OPERATION = 8, /* start, value = duration, id = the region around its start, extra =
                                 ns of it that were waited for; the next slot as REGION_WORK's, with
                                 a PKI_PAYLOAD_OPERATION, and its value the message's tag */
    PKI_RECORD_SPAN_BEGIN =
        9, /* of a pk_span: start; value = the program's id; extra = its serial */
    PKI_RECORD_SPAN_MARK = 10, /* start; value = ticks since the last mark, or the begin; id = the
                                  mark's; extra = serial | the span's name id << 32 */
    PKI_RECORD_SPAN_END = 11,  /* start, value = duration, extra = serial; the next slot's start
                                 holds the program's id. With PKI_FLAG_NO_BEGIN its begin has no
                                 record */
    PKI_RECORD_REQUEST = 12,   /* one that has ended: two slots, below */
    PKI_RECORD_NOTE = 13, /* of the region that is open at the place's depth: id = the key, start,
                             value = an integer */
    PKI_RECORD_NOTE_TEXT = 14 /* the same with a text: below */
} pki_record_type;

/* A number that came with a region or a mark, in 64 bits. */
typedef enum pki_payload_type {
    PKI_PAYLOAD_NONE = 0,
    PKI_PAYLOAD_UNSIGNED = 1,
    PKI_PAYLOAD_SIGNED = 2,
    PKI_PAYLOAD_REAL = 3,     /* a double */
    PKI_PAYLOAD_OPERATION = 4 /* the word's lowest byte; the rest: lib/comm/model/communicator.h */
} pki_payload_type;

#define PKI_TAGGED ((uint64_t)1 << 32) /* above a message's tag: there is one */

#define PKI_THINNED_SHIFT 40
#define PKI_THINNED_MOST ((uint64_t)(1 << 24) - 1)
#define PKI_THINNED_REST (((uint64_t)1 << PKI_THINNED_SHIFT) - 1) /* of extra, the lower part */

#define PKI_FLAG_UNBALANCED 1u /* region: not closed by its own end */
#define PKI_FLAG_UNKNOWN 2u    /* step: no breakdown */
#define PKI_FLAG_NO_BEGIN 2u   /* the end of a span: its begin found no room */
#define PKI_FLAG_TOUCHES 4u    /* region: the next one begins at the tick where it ends */
#define PKI_FLAG_CUT_OFF 16u   /* region: the process ended within it; also PKI_FLAG_UNBALANCED */
#define PKI_FLAG_BETWEEN 32u   /* step: it is none, but the time between two */
#define PKI_FLAG_LOST 8u       /* region: extra = ns of calls right inside it without a record */
#define PKI_FLAG_THINNED                                                                           \
    64u /* region: stands for others, too, which were not timed: so many are                       \
           the upper 24 bits of extra (core/thin.h) */

/* what = name id | place << 32. The place's low 11 bits are the low half of a thread's state
 * (lib/core/thread.h), which the fast path stores as it is: type + PKI_PLACE_BASE + depth *
 * PKI_PLACE_STEP. Depth counts from 1. Above them: ties << 16 | flags << 24. Ties: so many open
 * regions around this one began in the same nanosecond (viewers need them apart, see
 * lib/out/chrome/chrome.c). */
typedef struct pki_record {
    uint64_t start;
    uint64_t value;
    uint64_t what;
    uint64_t extra;
} pki_record;

_Static_assert(sizeof(pki_record) == 32, "the ring's bytes per region are a promise");

#define PKI_PLACE_BASE 32u
#define PKI_PLACE_STEP 16u
#define PKI_PLACE(type, depth)                                                                     \
    ((uint32_t)(type) + PKI_PLACE_BASE + (uint32_t)(depth)*PKI_PLACE_STEP)
#define PKI_PLACE_FLAGS(flags) ((uint32_t)(flags) << 24)

#define PKI_WHAT(id, type, depth) ((uint64_t)(id) | (uint64_t)PKI_PLACE(type, depth) << 32)
#define PKI_TIES(n) ((uint64_t)(n) << 48)
#define PKI_FLAGS(flags) ((uint64_t)(flags) << 56)

/* What an owner counts of pk_spans; all else is known from their records. */
typedef struct pki_span_tally {
    uint64_t begins_dropped, marks_dropped, ends_dropped;
    uint64_t ends_lost;   /* of these, those that who folds does not hear of */
    uint64_t ended_twice; /* ends and marks of what had ended */
    uint64_t of_earlier;  /* the same of an earlier session's */
    uint64_t requests_dropped;
} pki_span_tally;

/* The halves of a record's what, in two stores: putting them together first takes longer. */
static inline void pki_record_set_what(pki_record *r, uint32_t id, uint32_t place)
{
    typedef uint32_t __attribute__((may_alias)) half;
    half *halves = (half *)&r->what;
    __atomic_store_n(&halves[__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__], id, __ATOMIC_RELAXED);
    __atomic_store_n(&halves[__BYTE_ORDER__ != __ORDER_BIG_ENDIAN__], place, __ATOMIC_RELAXED);
}

static inline uint32_t pki_what_id(uint64_t what)
{
    return (uint32_t)what;
}

static inline unsigned pki_what_type(uint64_t what)
{
    return (unsigned)(what >> 32) & (PKI_PLACE_STEP - 1);
}

static inline unsigned pki_what_depth(uint64_t what)
{
    return (unsigned)(what >> 32) % 2048 / PKI_PLACE_STEP - PKI_PLACE_BASE / PKI_PLACE_STEP;
}

static inline unsigned pki_what_ties(uint64_t what)
{
    return (unsigned)(what >> 48) & 0xFF;
}

static inline unsigned pki_what_flags(uint64_t what)
{
    return (unsigned)(what >> 56);
}

/* Ring slots that a record takes. */
static inline unsigned pki_record_slots(uint64_t what)
{
    unsigned type = pki_what_type(what);
    return type == PKI_RECORD_REGION_WORK || type == PKI_RECORD_STEP ||
                   type == PKI_RECORD_OPERATION || type == PKI_RECORD_SPAN_END ||
                   type == PKI_RECORD_REQUEST || type == PKI_RECORD_NOTE_TEXT
               ? 2
               : 1;
}

/* Has it one of the types above, of which PKI_RECORD_NOTE_TEXT is the last? Else it is a record's
 * second slot. Readers of a ring may come upon one: what a handler wrote and was undone may be
 * overwritten by longer records (lib/measure/fold/walk.h). */
static inline bool pki_is_record(uint64_t what)
{
    return pki_what_type(what) - PKI_RECORD_REGION <= PKI_RECORD_NOTE_TEXT - PKI_RECORD_REGION;
}

/* Those of them that are not a region of their own. */
static inline unsigned pki_record_others(uint64_t what)
{
    unsigned type = pki_what_type(what);
    return pki_record_slots(what) - (type == PKI_RECORD_REGION || type == PKI_RECORD_REGION_WORK);
}

/* Untimed calls that a region's record stands for, itself not among them. */
static inline uint32_t pki_record_untimed(const pki_record *r)
{
    bool thinned = pki_what_flags(r->what) & PKI_FLAG_THINNED;
    return thinned ? (uint32_t)(r->extra >> PKI_THINNED_SHIFT) : 0;
}

/* ns of calls right inside a region that have no record. */
static inline uint64_t pki_record_lost(const pki_record *r)
{
    unsigned flags = pki_what_flags(r->what);
    uint64_t rest = flags & PKI_FLAG_THINNED ? r->extra & PKI_THINNED_REST : r->extra;
    return flags & PKI_FLAG_LOST ? rest : 0;
}

/* When it was written, or shortly before: a thread's records stand in this order. */
static inline uint64_t pki_record_ticks(const pki_record *r)
{
    switch (pki_what_type(r->what)) {
    case PKI_RECORD_REGION:
    case PKI_RECORD_REGION_WORK:
    case PKI_RECORD_STEP:
    case PKI_RECORD_OPERATION:
    case PKI_RECORD_SPAN_END:
        return r->start + r->value;
    default:
        return r->start;
    }
}

/* The two of them that a step's record holds as floats. */
static inline uint32_t pki_float_bits(double value)
{
    float narrow = (float)value;
    uint32_t bits;
    __builtin_memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

static inline double pki_float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float narrow;
    __builtin_memcpy(&narrow, &low, sizeof narrow);
    return (double)narrow;
}

/* Of a step's second slot, whose `what` has a float in its lower half and must not look like that
 * of a record: the seat above the place's type (core/seats.h). Its share has 10 bits. */
#define PKI_STEP_SEAT(seat) ((uint64_t)(seat) << 36)
_Static_assert(PKI_SEAT_ALL < 1 << 12, "a seat has room in a step's record");

static inline pki_seat pki_step_seat_of(const pki_record *more)
{
    return (pki_seat)(more->what >> 36);
}

static inline uint32_t pki_step_kind_of(const pki_record *more)
{
    return (uint32_t)more->extra;
}

static inline double pki_step_model(const pki_record *more)
{
    return pki_float_of(more->extra >> 32);
}

static inline double pki_step_hardware(const pki_record *more)
{
    return pki_float_of(more->what);
}

/* A clock that lags on another core can make a difference negative: that is 0. */
static inline uint64_t pki_not_negative(uint64_t ticks)
{
    return ticks >> 63 ? 0 : ticks;
}

/* ---- the text of a note: its length in extra, its bytes in value, then in the second slot ---- */

#define PKI_NOTE_BYTES 32u
#define PKI_NO_TYPE ((uint64_t)15 << 32) /* a second slot is no record (pki_is_record) */

/* Cut before a character that has no room as a whole. */
static inline void pki_note_pack(pki_record record[2], const char *text)
{
    uint64_t words[PKI_NOTE_BYTES / 8] = {0};
    size_t n = strnlen(text, PKI_NOTE_BYTES + 1);
    if (n > PKI_NOTE_BYTES)
        for (n = PKI_NOTE_BYTES; n && ((unsigned char)text[n] & 0xC0) == 0x80; n--)
            ;
    memcpy(words, text, n);
    record[0].value = words[0];
    record[0].extra = n;
    record[1] = (pki_record){words[1], words[2], PKI_NO_TYPE, words[3]};
}

/* Its length. */
static inline size_t pki_note_text(const pki_record *r, const pki_record *more,
                                   char text[PKI_NOTE_BYTES])
{
    const uint64_t words[] = {r->value, more->start, more->value, more->extra};
    memcpy(text, words, sizeof words);
    return PKI_MIN(r->extra, (uint64_t)PKI_NOTE_BYTES);
}

/* ---- a request that has ended, as a record of two slots ---- */

/* Times are in units of 1,024 ns (up to 73 minutes: what is more is that), and `behind` in 16 of
 * them, so ten figures fit. The
 * distributions come from marks, which are exact to the nanosecond; these are for their sums. */

/* The stages' regions. */
#define PKI_REQUEST_QUEUE "request queue time"
#define PKI_REQUEST_TTFT "time to first token"
#define PKI_REQUEST_ITL "inter-token latency"
#define PKI_REQUEST_TPOT "time per output token"

#define PKI_REQUEST_GOOD 4u /* flags: the outcome, and this */
#define PKI_REQUEST_UNIT_NS 1024u

typedef struct pki_request_done {
    /* ns */
    uint64_t total, queued, preempted, ttft;
    uint64_t generated;       /* from the first token to the last one */
    uint64_t reading;         /* from schedule to the first token, without what it was preempted */
    uint64_t crowded, behind; /* pk/request.h */
    uint64_t tokens, preemptions, first_step, steps;
    uint32_t outcome; /* a pk_request_outcome */
    bool good;
} pki_request_done;

/* In force now, ns; 0: none. */
void pki_request_limits(uint64_t *ttft_ns, uint64_t *tpot_ns);

static inline uint64_t pki_request_units(uint64_t ns)
{
    uint64_t units = (ns + PKI_REQUEST_UNIT_NS / 2) / PKI_REQUEST_UNIT_NS;
    return PKI_MIN(units, (uint64_t)UINT32_MAX);
}

static inline uint64_t pki_request_pair(uint64_t low, uint64_t high)
{
    return PKI_MIN(low, (uint64_t)UINT32_MAX) | PKI_MIN(high, (uint64_t)UINT32_MAX) << 32;
}

static inline uint64_t pki_request_times(uint64_t low, uint64_t high)
{
    return pki_request_pair(pki_request_units(low), pki_request_units(high));
}

static inline void pki_request_pack(const pki_request_done *d, const pk_span *span, uint64_t now,
                                    pki_record record[2])
{
    uint64_t flags = PKI_FLAGS(d->outcome | (d->good ? PKI_REQUEST_GOOD : 0));
    record[0] =
        (pki_record){.start = now,
                     .value = pki_request_times(d->total, d->queued),
                     .what = PKI_WHAT(span->region, PKI_RECORD_REQUEST, 0) | flags,
                     .extra = span->serial | PKI_MIN(d->preemptions, (uint64_t)0xFFF) << 32 |
                              PKI_MIN(d->steps, (uint64_t)0xFFFFF) << 44};
    record[1] = (pki_record){.start = pki_request_times(d->ttft, d->generated),
                             .value = pki_request_times(d->preempted, d->reading),
                             .what = pki_request_times(d->crowded, d->behind) & ~PKI_NO_TYPE,
                             .extra = pki_request_pair(d->tokens, d->first_step)};
}

static inline pki_request_done pki_request_unpack(const pki_record *r, const pki_record *more)
{
    const uint64_t unit = PKI_REQUEST_UNIT_NS;
    return (pki_request_done){.total = (uint32_t)r->value * unit,
                              .queued = (r->value >> 32) * unit,
                              .preempted = (uint32_t)more->value * unit,
                              .ttft = (uint32_t)more->start * unit,
                              .generated = (more->start >> 32) * unit,
                              .reading = (more->value >> 32) * unit,
                              .crowded = (uint32_t)more->what * unit,
                              .behind = (more->what >> 32) * unit,
                              .tokens = (uint32_t)more->extra,
                              .preemptions = r->extra >> 32 & 0xFFF,
                              .first_step = more->extra >> 32,
                              .steps = r->extra >> 44,
                              .outcome = pki_what_flags(r->what) & 3,
                              .good = pki_what_flags(r->what) & PKI_REQUEST_GOOD};
}
