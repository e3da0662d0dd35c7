/* lib/session/captures/capture_file.h - a capture on its way to a file with a name */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "capture/capture.h"
#include "history/format.h"
#include "session/report/run.h"
#include "session/session.h"

/* ---- names of captures: a pattern in which %s is the first step and %% a % ---- */

/* capture_path with %s kept for later, and all else for pki_path_expand. False: too long. */
bool pki_capture_path_prepare(const char *path, char out[PATH_MAX]);

/* Has it a %s? */
bool pki_capture_path_is_one(const char *pattern);

/* run.json.gz -> run-%s.json.gz */
bool pki_capture_path_derive(const char *trace, char out[PATH_MAX]);

/* False: too long. */
bool pki_capture_path_expand(const char *pattern, const char *step, char out[PATH_MAX]);

/* Makes it mean the same after the program has changed its working directory. */
void pki_capture_path_anchor(char pattern[PATH_MAX]);

/* ---- wishes for captures on their way ---- */

/* Until their last step has ended, the records of other threads have come and what devices did is
 * known.
 *
 * Under the drain lock. */

#define PKI_CAPTURES_WAITING 64
#define PKI_CAPTURE_AROUND 64 /* steps whose figures are in the file */

/* What a wish means is written down while the steps are at hand: the history knows the last few
 * hundred, and of short ones a single round of the collector brings more. */
typedef struct pki_waiting_capture {
    pki_wish wish;
    bool begun;           /* one of its steps has ended: */
    uint64_t number, at;  /* the first of them, and its position in the history */
    uint64_t from, until; /* ticks: where that one began, and the last one so far ended */
    pki_history_step around[PKI_CAPTURE_AROUND]; /* up to its last step, in order */
    unsigned around_count;
    uint64_t pin; /* position from which it needs the history */
    uint64_t due; /* the round in which it may be written; 0: its last step has not ended */
    uint64_t end; /* of its last step, ns of the session; what devices did until then is awaited */
    uint64_t latest; /* but not longer than this, CLOCK_MONOTONIC */
} pki_waiting_capture;

typedef struct pki_capture_queue {
    unsigned count;
    pki_waiting_capture waiting[PKI_CAPTURES_WAITING];
} pki_capture_queue;

/* ---- a capture: some steps of the history as a trace of their own ---- */

/* The thread that writes it is no recording thread and holds no lock of the session: what it reads
 * is pinned (lib/history), or a copy. */

typedef struct pki_capture_job {
    pki_wish wish;
    pki_history_view view;
    pki_history_range range;
    pki_open_span *open;    /* what the range refers to */
    bool beginning_gone;    /* of its first step */
    uint64_t lost;          /* records that found no room in the history, in the run so far */
    uint64_t refused;       /* other captures, in the run so far */
    uint64_t devices_until; /* what began on devices before that is there; ns of the session */
    const pki_config *config;
    const pki_environment *environment;          /* NULL: not known */
    pki_history_step around[PKI_CAPTURE_AROUND]; /* up to its last step, in order */
    unsigned around_count;
    uint64_t most_bytes;
    bool compressed;
    char path[PATH_MAX], part[PATH_MAX]; /* part: its name until it is whole */
    pki_clock_map clock;
    pki_chrome chrome;
    size_t head_bytes;
    char head[PKI_HEAD_BYTES];
    /* once written */
    uint64_t bytes, events;
    bool full; /* most_bytes were not enough for all of it */
} pki_capture_job;

/* Into `part`. False and errno: nothing is there. */
bool pki_capture_file_write(pki_capture_job *job);

/* So many wishes wait; what has become of the others. */
typedef struct pki_capture_counts {
    uint64_t written, refused, failed, removed;
    unsigned waiting;
} pki_capture_counts;
