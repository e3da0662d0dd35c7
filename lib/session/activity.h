/* lib/session/activity.h - where backends hand over what devices and libraries did.
 *
 * Everything here is called by a backend within its collect or stop, that is under the drain lock;
 * what is added is in the trace's output and in the statistics when the call returns. It may write
 * to the file, so nothing may be locked meanwhile that a thread of the program waits for.
 */
#pragma once

#include <stdbool.h>

#include <pk/counter.h>

#include "base/clock.h"
#include "core/activity.h"
#include "comm/figures/figures.h"

/* The track with these pid and tid, made and named in the trace at its first call; > 0. 0 without
 * memory. Names are copied, and those of the first call stay. */
uint32_t pki_track_add(const pki_track *track);

/* The same, but not named in the trace: what is on it goes to the history alone. */
uint32_t pki_track_unwritten(const pki_track *track);

/* pid of a device's tracks: beyond every process's, and another one in each process. */
uint32_t pki_track_device_pid(uint32_t device);

/* tid of the track beside a thread's own, for what a library says it called there. */
uint32_t pki_track_beside(uint32_t tid);

/* tid of a track of the process that is no thread's; n < 2^22, anybody's choice. */
uint32_t pki_track_apart(uint32_t n);

/* What is handed over by who asks: the drain lock. False, and it is not taken: the session has gone
 * on without this thread, and wants nothing of it any more. */
bool pki_activity_lock(void);
void pki_activity_unlock(void);

void pki_activity_add(const pki_activity *activity);

/* To the history, and to the trace if there it is to be: into no figures. */
void pki_activity_tell(const pki_activity *activity, bool traced);

/* An operation on a communicator, or so many alike, into the figures (see
 * pki_comm_figures_add_calls); comm and region are of lib/core. */
void pki_activity_count_operation(const pki_timed_operation *operation, uint32_t calls);

/* What a library told of operations and nobody had room for, in the session so far. */
void pki_activity_dropped_operations(uint64_t events, uint64_t operations);

/* Sources of what devices did. A step's figures are made once every source in use has delivered
 * all of it, so each says how far it is:
 *
 *     pki_activity_begins(PKI_SOURCE_CUDA, ns);   // what began before will not come
 *     pki_activity_finalised(PKI_SOURCE_CUDA, ns);  // now and then: what began before has been
 *     pki_activity_ends(PKI_SOURCE_CUDA);         // nothing more will be
 *
 * As often as it is turned on and off; one that is on when the session ends need not end. A source
 * that never begins delays nothing, and what it adds to finished steps is late. */
typedef enum pki_source { PKI_SOURCE_CUDA, PKI_SOURCE_CUPTI, PKI_SOURCES } pki_source;

void pki_activity_begins(pki_source source, uint64_t ns);
void pki_activity_finalised(pki_source source, uint64_t ns);
void pki_activity_ends(pki_source source);

/* Up to when all that devices did is here; UINT64_MAX: there is no source. */
uint64_t pki_activity_known_until(void);

/* All kernels and copies are recorded from this moment on, until that one: steps between count as
 * measured. Before those steps are finalised; the trace gets a mark. */
void pki_activity_measures(uint64_t ns, bool on);

/* At the end: what was measured since then has not been told. To captures it comes too late. */
void pki_activity_untold(uint64_t ns);

/* A sample of a counter, now. Of one named "gpuN.memory", in bytes: what is in use on device N. */
void pki_activity_counter(pk_counter *counter, double value);

/* The same, for a moment of the last seconds, in ns since the session started. */
void pki_activity_counter_at(pk_counter *counter, double value, uint64_t ns);

/* Nanoseconds since the session started; 0 for what was before. Any thread, also when it is over.
 */
uint64_t pki_activity_ns(uint64_t monotonic_ns);
void pki_activity_slept(const pki_clock_sleeps *now); /* the machine has; by who checks clocks */
uint64_t pki_activity_ns_of_ticks(uint64_t ticks);

/* Now, on the clock of the threads' records. */
uint64_t pki_activity_ticks(void);

/* To the beginning of another file: each track by name, and whether devices are measured. */
void pki_activity_repeat_metadata(void (*put)(void *user, const char *text, size_t n), void *user);

/* Activities added, and those of them that are not in the trace: no room, no track. */
typedef struct pki_activity_counts {
    uint64_t added, unwritten;
} pki_activity_counts;

/* The session's part. */
pki_activity_counts pki_activity_counted(void);
