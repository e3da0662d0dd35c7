/* lib/session/captures/capture_file.h - a capture: some steps of the history as a trace of their
 * own.
 *
 * The thread that writes it is no recording thread and holds no lock of the session: what it reads
 * is pinned (lib/history), or a copy.
 */
#pragma once

#include <limits.h>

#include "capture/capture.h"
#include "history/format.h"
#include "session/captures/capture_queue.h"
#include "session/report/environment.h"

#define PKI_CAPTURE_OPEN_SPANS 16384u

typedef struct pki_capture_job {
    pki_wish wish;
    pki_history_view view;
    pki_history_range range;
    pki_open_span *open; /* what the range refers to */
    bool beginning_gone; /* of its first step */
    uint64_t lost;       /* records that found no room in the history, in the run so far */
    uint64_t refused;    /* other captures, in the run so far */
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
