/* lib/session/session.h - the one session of the process, from pk_start to pk_stop.
 *
 * Locks, in the order in which they are taken:
 *   control   pk_start, pk_flush, pk_stop, pk_get_counts: one at a time
 *   drain     the output: buffer, file, formatter; the collector's rounds and flushes
 *   fold      lib/measure/fold/fold.h
 *   registry  lib/core/registry.h
 * A recording thread takes only the last, and only to join, to leave and at the first use of a
 * name.
 */
#pragma once

#include <pthread.h>

#include "core/registry.h"
#include "history/history.h"
#include "measure/fold/fold.h"
#include "measure/summary.h"
#include "out/chrome/chrome.h"
#include "out/file.h"
#include "session/trace/paths.h"

typedef struct pki_session {
    bool open;
    pki_config config;
    pki_paths paths;
    pki_arena *arena;
    bool arena_lost; /* its descriptor is not ours any more; under the drain lock */
    pki_registry *registry;
    uint64_t start_unix, start_cpu; /* ns */
    uint64_t stop_ns;               /* length, once stopped */
    bool operators;  /* the environment asks for its trace or report (session/operator.h) */
    bool job_has_it; /* its part of the job's report has been taken (session/job/job.h) */
    pk_counts final; /* once stopped */

    /* under the drain lock */
    pki_toll toll; /* but for what pki_toll_now asks for (session/collector/toll.h) */
    pki_chrome chrome;
    pki_history *history; /* NULL: none is kept */
    pki_trace_file file;
    bool thinning;           /* overhead_max is set (session/collector/thinning.h) */
    uint64_t untraced;       /* events kept out of the trace for it */
    bool writing;            /* there is a trace file */
    char *buffer;            /* in the arena; size output_bytes */
    pki_commit pending;      /* what the next commit puts in force */
    uint64_t file_events;    /* of pending.events, those in the file */
    uint64_t earlier_bytes;  /* of text, in the files before it */
    char trace_at[PATH_MAX]; /* paths.trace, wherever the program has gone since */
    pki_trace_location trace_location;
    bool full;  /* a write has failed in this round: the next attempt is the next one's */
    bool stuck; /* the last write failed: what is in the buffer is in no file */
    pk_status error_status; /* the first thing that went wrong with the file */
    pk_status unreported;   /* what no pk_flush has answered yet */
    uint64_t last_write;    /* CLOCK_MONOTONIC, ns */
    uint64_t next_clock_check;
    uint32_t clock_checks;

    /* what full rings reach into (session/collector/spares.h); times of CLOCK_MONOTONIC, ns */
    uint32_t spares_wanted, spares_next;
    uint64_t spares_rated, spares_asked, spares_fresh, spares_retry;

    /* the thread that makes steps (session/collector/stepper.h) */
    uint32_t stepper_tid;         /* 0: not seen yet */
    pki_processor stepper_before; /* as of the last look */

    /* the collector */
    pthread_t collector;
    bool collecting;
    bool stopping;    /* under the wake lock */
    uint32_t fullest; /* most records that the last round found in one ring */
    bool growing;     /* a ring that is used has pages that nobody has touched yet */
    uint64_t arena_checked;
} pki_session;

extern pki_session pki_the_session;
extern pthread_mutex_t pki_drain_lock;

/* The control lock. Every control call begins here; not PK_OK: it does not have the lock, and
 * answers that. */
pk_status pki_control_lock(void);
bool pki_control_lock_within(uint64_t ns);
void pki_control_unlock(void);

/* exit() has given up on the session, which is left as by a kill; no control call does anything
 * from here on. */
void pki_session_abandon(bool yes);

/* What the last session that has ended had counted. False: none has. Under the control lock. */
void pki_session_set_last_counts(const pk_counts *counts);
bool pki_session_last_counts(pk_counts *counts);

/* Whoever asked to hear what perfkit says in a session need not be there after it. */
void pki_session_reset_log(void);

/* In the child of a fork. False if one of the locks was held: what it guards may be half of
 * something. */
bool pki_session_after_fork(void);
