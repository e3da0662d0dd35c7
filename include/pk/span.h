/* pk/span.h - what begins on one thread and ends on another: requests, jobs, messages.
 *
 *     static pk_region request = PK_REGION("request"), parsed = PK_REGION("parsed");
 *
 *     struct job { pk_span span; ... };        // wherever the program keeps what it works on
 *
 *     job->span = pk_span_begin(&request, job->number);    // on the thread that accepts it
 *     ...
 *     pk_span_mark(&job->span, &parsed);                   // on any other, later
 *     ...
 *     pk_span_end(&job->span);                             // and on a third one
 *
 * A span is a plain value: it may be copied, moved and stored, and needs no destruction. All zero,
 * it is no span: marking or ending it does nothing, so a program need not test whether perfkit was
 * on.
 *
 * Figures: each span, from its begin to its end, is a sample of its region's distribution (in
 *          pk_region_stats, the report, windows and metrics, as a region's call is). A mark is a
 *          sample of the distribution of the mark's own region: the time from the last mark of the
 *          span, or from its begin, to this one. Neither counts as self time or in a step's
 *          breakdown, since spans overlap with each other and with whatever their threads do. Give
 *          spans a region of their own to keep them apart from ordinary calls. count, sum, min and
 *          max are exact and quantiles are within 1 %, as of regions; a span whose records found no
 *          room in a ring is still in the distribution.
 * Trace:   asynchronous events (phases b, n and e) of the category "span", which viewers show on
 *          tracks of their own. Their id is perfkit's; the program's is the argument "id". A
 *          capture holds the spans that overlap with its steps, including their begins, even those
 *          older than the history (of spans still open: up to 16,384).
 *
 * Threads: begin, mark and end from any thread. One span is marked and ended by one thread at a
 *          time; handing it over from one to another is the program's own synchronisation.
 * Signals: as pk/region.h says; what a handler records when it interrupts one of these calls is
 *          dropped and counted.
 * Fork:    a child has no session, so it cannot end its parent's spans.
 * Failure: none visible; pk_get_span_counts says what was lost. Pointers must not be NULL. What is
 *          still open when the session ends is counted as unfinished and has no end in the trace;
 *          its end in a later session is counted there and recorded nowhere.
 * Cost:    off: a load and a branch. On: one clock read and 32 bytes into this thread's ring for
 *          begin and mark each, a clock read and 64 bytes for the end; no lock, no system call, no
 *          allocation after first uses (docs/internals/overhead.md). The collector keeps a table
 *          of open spans: 32 to 64 bytes each.
 */
#ifndef PK_SPAN_H
#define PK_SPAN_H

#include <pk/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Its id is the program's to read; the other members are perfkit's. */
typedef struct pk_span {
    uint64_t id;      /* as given to pk_span_begin */
    uint64_t start;   /* ticks */
    uint64_t marked;  /* ticks of the last mark */
    uint32_t region;  /* 0: none */
    uint32_t serial;  /* in the trace */
    uint32_t session; /* which it belongs to */
    uint32_t flags;
    uint64_t spare[2]; /* 0; for later versions */
} pk_span;

/* Begins a span. id: the program's own number, such as a request's; any value, also 0. */
PK_API PK_INLINE pk_span pk_span_begin(pk_region *region, uint64_t id);

/* The span has come to this point: the time since its last mark, or its begin, counts under this
 * region. */
PK_API PK_INLINE void pk_span_mark(pk_span *span, pk_region *region);

/* Ends the span. Ending or marking it again is a program error, which is counted. Ending a second
 * copy of it is detected as well, and no distribution holds it twice. The bounds of that: at most
 * 1,048,576 spans are open, and a thread whose ring is full ends at most 128 of them until the
 * collector, which that wakes, has emptied it. */
PK_API PK_INLINE void pk_span_end(pk_span *span);

/* ended + open == begun, once no thread is beginning or ending spans. */
typedef struct pk_span_counts {
    uint32_t size; /* sizeof(pk_span_counts); pk_get_span_counts(...) sets it */
    uint32_t reserved;
    uint64_t begun;       /* while perfkit was on */
    uint64_t ended;       /* of these */
    uint64_t open;        /* of these, not ended yet; after pk_stop: unfinished */
    uint64_t dropped;     /* begins, marks and ends without a record: ring full, no memory. Their
                             times count all the same. Included in pk_counts.points_dropped */
    uint64_t ended_twice; /* ends and marks of spans that had ended */
    uint64_t of_earlier;  /* ends and marks of spans of an earlier session */
} pk_span_counts;

/* During a session and after it, of all spans (requests included). PK_EOFF if there was none.
 * PK_EINVAL if size is 0 or too large. A smaller size is filled in as far as it goes. */
PK_API pk_status pk_get_span_counts(pk_span_counts *counts);

/* ---- below: how it is done ---- */

#define pk_get_span_counts(counts) (pk_get_span_counts)(pk_span_counts_sized_(counts))

static inline pk_span_counts *pk_span_counts_sized_(pk_span_counts *counts)
{
    if (counts)
        counts->size = sizeof *counts;
    return counts;
}

#ifndef PK_DISABLE

PK_API pk_span pk_span_begin_on_(pk_region *region, uint64_t id);
PK_API void pk_span_mark_on_(pk_span *span, pk_region *region);
PK_API void pk_span_end_on_(pk_span *span);

PK_INLINE pk_span pk_span_begin(pk_region *region, uint64_t id)
{
    pk_span none = {0, 0, 0, 0, 0, 0, 0, {0, 0}};
    if (PK_ON_)
        return pk_span_begin_on_(region, id);
    return none;
}

PK_INLINE void pk_span_mark(pk_span *span, pk_region *region)
{
    if (PK_ON_)
        pk_span_mark_on_(span, region);
}

PK_INLINE void pk_span_end(pk_span *span)
{
    if (PK_ON_)
        pk_span_end_on_(span);
}

#endif /* PK_DISABLE */

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_SPAN_
#include <pk/disable.h>
#endif
#endif
