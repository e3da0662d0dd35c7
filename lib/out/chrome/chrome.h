/* lib/out/chrome/chrome.h - records as Chrome trace events, and what stands before them */
#pragma once

#include <pk/session.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/overhead.h"
#include "core/record.h"

/* ---- records as Chrome trace events ---- */

/* The formatter is a function from record to bytes: the same for a live run, for `pk recover` and
 * for the golden tests. What it needs besides the record it gets from a pki_chrome: the clock map,
 * the process, and the names, each of which it escapes once. What viewers need of each field is in
 * docs/internals/trace-format.md.
 *
 * Threads: one at a time. Failure: without memory for a name's escaped form the event is named "(no
 * memory)". */

#define PKI_EVENT_BYTES 4096 /* no event is longer */
#define PKI_HEAD_BYTES 8192  /* nor is the head */
#define PKI_RANKS_BYTES 384

/* A name as the formatter needs it; not NUL-terminated. For a variant, key and value; for a
 * counter, key is its unit. */
typedef struct pki_chrome_name {
    const char *name, *key;
    uint16_t length, key_length;
    uint32_t kind; /* as in core/names.h; UINT32_MAX: unknown name */
    int64_t value;
} pki_chrome_name;

typedef pki_chrome_name pki_chrome_names(void *user, uint32_t id);

/* Those of this process (core/names.h). */
pki_chrome_name pki_chrome_name_of(void *user, uint32_t id);

struct pki_chrome_text;

typedef struct pki_chrome {
    const pki_clock_map *clock;
    uint32_t pid;
    int32_t rank, world_size; /* of the job; set by pki_chrome_set_rank, as what follows from it */
    uint64_t id_base;         /* added to ids of events: unique over the ranks of a job */
    char ranks[PKI_RANKS_BYTES]; /* "[0, 1, 2, 3]" */
    size_t
        ranks_length; /* 0: there is one, or they do not fit: a list that is cut would be wrong */
    bool coarse;      /* slices often begin and end at the same tick */
    pki_chrome_names *names;
    void *user;
    struct pki_chrome_text **texts; /* by name id */
    size_t text_count;
    uint64_t stem_ns; /* of moments that share their first digits, the earliest; these are: */
    uint32_t stem_length;
    uint32_t noted; /* that wait for their call's end; of which `notes` are */
    struct pki_chrome_notes *notes;
    char stem[24];
} pki_chrome;

void pki_chrome_init(pki_chrome *chrome, const pki_clock_map *clock, uint32_t pid,
                     pki_chrome_names *names, void *user);
void pki_chrome_set_rank(pki_chrome *chrome, int32_t rank,
                         int32_t world_size); /* -1, 0: not known */
void pki_chrome_finish(pki_chrome *chrome);

/* The colour of a kind in the trace; NULL: none. */
const char *pki_chrome_colour(uint32_t kind);

/* An event for the record (`more` is its second slot), preceded by ",\n". Returns its length, 0 if
 * the record has none. */
size_t pki_chrome_event(pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint32_t tid,
                        const pki_record *record, const pki_record *more);

/* The same of n records that follow each other, all of the type PKI_RECORD_REGION. There is room
 * for n times PKI_EVENT_BYTES. */
size_t pki_chrome_regions(pki_chrome *chrome, char *out, uint32_t tid, const pki_record *records,
                          uint32_t n);

/* A duration in ns that, `depth` levels deep, ends a part of a nanosecond early where it touches
 * others: chrome.c says why. lacks_ps: how much earlier still. */
char *pki_chrome_put_early(char *p, uint64_t duration, unsigned depth, uint32_t lacks_ps);

/* The thread's name and place among the tracks, preceded by ",\n". */
size_t pki_chrome_thread(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint32_t tid,
                         const char *name, uint32_t index);

/* What stands before the first event, and the first events. */
typedef struct pki_chrome_run {
    const char *host, *program;
    int32_t rank, world_size;
    int32_t local_rank, local_size, node; /* base/process.h */
    const char *job;                      /* NULL: not known */
    uint64_t start_unix;                  /* ns */
    uint64_t base_ns;                     /* CLOCK_MONOTONIC at ts 0 */
    const char *clock_name;
    const char *clock_reason; /* why the cycle counter is not trusted; "" or NULL: it is */
    const char *clock_id;     /* base/process.h; NULL: not known */
    double clock_hz, clock_step_ns, clock_uncertainty_ns, clock_ppm;
    bool complete;
    pk_counts counts;
    pki_toll toll;
} pki_chrome_run;

/* The head has the same length whatever the figures in it, so that it can be written again at the
 * end. */
size_t pki_chrome_head(const pki_chrome *chrome, char out[PKI_HEAD_BYTES],
                       const pki_chrome_run *run);

/* Closes the document. */
#define PKI_CHROME_TAIL "\n]}\n"

/* ---- names as events have them, each escaped once ---- */

#define PKI_CHROME_BLOCK 32 /* lines are copied in whole blocks of so many bytes */

/* A name, ready to be copied. */
typedef struct pki_chrome_text {
    uint32_t before_length, args_length;
    bool counter;
    const char *args;          /* of a variant or counter: what goes inside "args":{...} */
    uint32_t tid, line_length; /* 0: there is no line yet */
    char *line;                /* what an event of thread `tid` has up to its time */
    char before[];             /* from ",\n{" to "tid": */
} pki_chrome_text;
