/* lib/session/session.h - the one session of the process, its services, other copies, fork and exit
 */
#pragma once

#include <pk/status.h>

#include <pthread.h>
#include <stdint.h>

#include "core/registry.h"
#include "history/history.h"
#include "measure/fold/fold.h"
#include "measure/summary.h"
#include "out/chrome/chrome.h"
#include "out/file.h"
#include "session/trace/paths.h"

/* ---- the one session of the process, from pk_start to pk_stop ---- */

/* Locks, in the order in which they are taken:
 *   control   pk_start, pk_flush, pk_stop, pk_get_counts: one at a time
 *   drain     the output: buffer, file, formatter; the collector's rounds and flushes
 *   fold      lib/measure/fold/fold.h
 *   registry  lib/core/registry.h
 * A recording thread takes only the last, and only to join, to leave and at the first use of a
 * name. */

/* The machine was suspended; as of the last time. */
typedef struct pki_suspension {
    uint64_t count, ns;   /* so often; the last time for so long */
    uint64_t from, until; /* within that time, CLOCK_MONOTONIC: from the last look to the next */
    bool counted;         /* the session's time has it (base/clock.h, pki_clock_sleeps) */
} pki_suspension;

typedef struct pki_session {
    bool open;
    pki_config config;
    pki_paths paths;
    pki_arena *arena;
    bool arena_lost; /* its descriptor is not ours any more; under the drain lock */
    pki_registry *registry;
    uint64_t start_unix, start_cpu; /* ns */
    uint64_t stop_ns;               /* length, once stopped */
    bool operators;  /* the environment asks for its trace or report (session/control.h) */
    bool job_has_it; /* its part of the job's report has been taken (session/job/job.h) */
    pk_counts final; /* once stopped */

    /* under the drain lock */
    pki_toll toll; /* but for what pki_toll_now asks for (session/collector/collect.h) */
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
    uint64_t asleep, awake_at; /* as of that moment the machine had slept so long; 0: not known */
    int64_t calendar;     /* the same of what pki_clock_offsets has of the calendar's clock... */
    int64_t calendar_set; /* ...and by how much that has been set since the start */
    pki_suspension slept;

    /* what full rings reach into (session/collector/drain.h); times of CLOCK_MONOTONIC, ns */
    uint32_t spares_wanted, spares_next;
    uint64_t spares_rated, spares_asked, spares_fresh, spares_retry;

    /* the thread that makes steps (session/collector/collect.h) */
    uint32_t stepper_tid;         /* 0: not seen yet */
    pki_processor stepper_before; /* as of the last look */

    /* the collector */
    pthread_t collector;
    bool collecting;
    bool stopping;          /* under the wake lock */
    uint32_t collector_tid; /* 0: it does not run */
    uint64_t woke, watch;   /* the last time; and to watch, 0: no. CLOCK_MONOTONIC, ns; its own */
    uint32_t fullest;       /* most records that the last round found in one ring */
    bool growing;           /* a ring that is used has pages that nobody has touched yet */
    bool idle;              /* from a round to the last one the program did next to nothing... */
    uint64_t used, used_at; /* ...and its processors' time by then, ns */
    uint64_t arena_checked;

    /* the asker (session/collector/collect.h) */
    struct pki_asker *asker; /* NULL: it does not run (any more) */
    bool unasked;            /* there is none, so the collector asks */
    uint64_t asked_cpu;      /* that it has taken, ns, once it does not run any more */
} pki_session;

extern pki_session pki_the_session;
extern pthread_mutex_t pki_drain_lock;

/* The control lock. Every control call begins here; not PK_OK: it does not have the lock, and
 * answers that. */
pk_status pki_control_lock(void);
bool pki_control_lock_within(uint64_t ns);
void pki_control_unlock(void);

/* ---- service ---- */

/* What a session does beside recording, each service behind the same table
 * of functions.
 *
 * A service is one constant pki_service beside the code that it is about; control.c has the one
 * list of them. The session goes through the list at each of the moments below, in its order, and
 * knows no service by name: so none can be forgotten at one of them. All functions are optional.
 *
 *     reset       pk_start: nothing is known of the session before. Under the control lock
 *     open        the distributions are there, the gate is still closed; not PK_OK ends the start
 *     start       the session is open, and so are its backends
 *
 *     drain       in a round, before anything is taken out of the rings       drain lock
 *     folded      in it, behind folding and before events are formatted       drain lock
 *     drained     in it, when the rings have been emptied                     drain lock
 *     round       behind each round of the collector                         drain lock
 *     look        what is looked at now and then is looked at now: pk_flush, pk_stop; drain lock
 *     flush       what waits to be written is written: pk_flush               drain lock
 *     behind      behind all of that, once its cost is known                  drain lock
 *     unlocked    behind that, without a lock
 *     watch       each time that the collector has slept: from when until when it wanted to. The
 *                 answer: when it is to wake for this again, CLOCK_MONOTONIC; 0: at its next round.
 *                 Without a lock
 *
 *     halt        pk_stop begins: threads of its own end. Without the drain lock
 *     close       the backends have stopped: nothing is measured from here on; drain lock
 *     end         the last record is folded and counted                       drain lock
 *     wait        behind that, without the drain lock: for what it writes elsewhere
 *     summarise   its part of the report; false without memory                drain and fold lock
 *     forget      the reports are written
 *     status      then: what went wrong, with its message; PK_OK: nothing
 *
 *     abandon     the start has failed: what open has made goes
 *     after_fork  in the child, which has one thread: no state is trusted, nothing is freed
 *     spent       what it has taken of the program's own threads, ns, beside recording */

typedef struct pki_service {
    const char *name;
    void (*reset)(void);
    pk_status (*open)(pki_session *session);
    void (*start)(pki_session *session);
    void (*drain)(pki_session *session);
    void (*folded)(pki_session *session);
    void (*drained)(pki_session *session);
    void (*round)(pki_session *session);
    void (*look)(pki_session *session);
    void (*flush)(pki_session *session);
    void (*behind)(pki_session *session);
    void (*unlocked)(void);
    uint64_t (*watch)(pki_session *session, uint64_t slept, uint64_t due);
    void (*halt)(pki_session *session);
    void (*close)(pki_session *session);
    void (*end)(pki_session *session);
    void (*wait)(pki_session *session);
    bool (*summarise)(const pki_session *session, pki_summary *out);
    void (*forget)(void);
    pk_status (*status)(void);
    void (*abandon)(pki_session *session);
    void (*after_fork)(void);
    uint64_t (*spent)(void);
} pki_service;

extern const pki_service *const pki_services[];
extern const size_t pki_service_count;

/* Each service in turn that has this function; its arguments in parentheses. */
#define pki_services_each(function, arguments)                                                     \
    do {                                                                                           \
        for (size_t each_ = 0; each_ < pki_service_count; each_++)                                 \
            if (pki_services[each_]->function)                                                     \
                pki_services[each_]->function arguments;                                           \
    } while (0)

bool pki_services_summarise(const pki_session *session, pki_summary *out);
uint64_t pki_services_spent(void);
uint64_t pki_services_watch(pki_session *session, uint64_t slept, uint64_t due);

/* ---- other copies of perfkit in this process ---- */

/* Two libraries that are both linked with libpk.a bring two perfkits that share nothing: two
 * collectors, two handlers where CUPTI and NCCL know one, two reports that each say half. So one
 * copy at a time has a session. Whoever comes second is refused, and counted by the first one.
 *
 * Copies find each other whatever their symbols' visibility: each carries an ELF note, the linker
 * gathers notes where the loader shows them, and dl_iterate_phdr goes through all objects.
 * Namespaces of dlmopen do not see each other; each has a C library of its own, too. */

/* This copy has a session from now on. PK_EBUSY, and which one it is, if another one has. */
pk_status pki_duplicates_claim(void);

void pki_duplicates_release(void);

/* How often another copy wanted to start since the last claim. */
uint32_t pki_duplicates_refused(void);

/* ---- fork, exit, and being unloaded ---- */
