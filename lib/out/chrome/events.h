/* lib/out/chrome/events.h - events of devices, operations, spans and requests */
#pragma once

#include "comm/model/communicator.h"
#include "core/activity.h"
#include "core/arena.h"
#include "out/chrome/chrome.h"

/* ---- what an operation on a communicator says of itself in the trace ---- */

/* The arguments that PyTorch's profiler gives a collective and HTA reads, the same for a record and
 * for what a backend has seen. */

/* Appends the arguments, each with a comma before it. At most PKI_OPERATION_BYTES. */
#define PKI_OPERATION_BYTES 2200

/* The same for a record, and the region around; `more` is its second slot, tag the message's
 * (PKI_TAGGED). */
char *pki_chrome_put_recorded(char *p, const pki_chrome *chrome, const pki_record *more,
                              uint64_t tag);

/* An operation of its own, which may overlap with others: a pair of asynchronous events, each
 * preceded by ",\n". Returns the length. */
size_t pki_chrome_operation(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint32_t tid,
                            const pki_record *record, const pki_record *more);

/* How far a communicator has come: an instant of the process, of category "perfkit", preceded by
 * ",\n". */
#define PKI_CHROME_PROGRESS "communicator"
size_t pki_chrome_progress(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint64_t ns,
                           const pki_comms_entry *entry);

/* ---- activity ---- */

/* Activities of devices and libraries as Chrome trace events, in the
 * words of PyTorch's profiler, which its tools (HTA) read. docs/internals/trace-format.md lists the
 * fields.
 *
 * Threads: any; nothing is kept. Failure: none; what does not fit into an event is left out. */

/* An X event, and one end of an arrow if the activity is tied to another; preceded by ",\n".
 * region: name of the region that asked for it, n bytes, or NULL. */
size_t pki_chrome_activity(const pki_chrome *chrome, char out[PKI_EVENT_BYTES],
                           const pki_track *track, const pki_activity *activity, const char *region,
                           size_t n);

/* The category of what says that a thread was off its processor, and its names: it could have gone
 * on; it waited for something; the process was stopped, or frozen; the machine was suspended for
 * `off_ns` of it, on end. */
#define PKI_CHROME_STATE "thread_state"
#define PKI_STATE_READY "no processor"
#define PKI_STATE_BLOCKED "blocked"
#define PKI_STATE_STOPPED "stopped"
#define PKI_STATE_SUSPENDED "suspended"

/* Of a late step: who had its processor meanwhile, that its cgroup's quota was used up, and what
 * its thread waited for. */
#define PKI_STATE_NEIGHBOUR "neighbour"
#define PKI_STATE_QUOTA "quota"
#define PKI_STATE_FAULTS "page faults"
#define PKI_STATE_MAJOR_FAULTS "major page faults"
#define PKI_STATE_NUMA "pages moved between nodes" /* of the machine, as the next three */
#define PKI_STATE_COMPACTED "pages looked at to compact memory"
#define PKI_STATE_SPLIT "huge pages split"
#define PKI_STATE_PRESSURE "memory pressure"
#define PKI_STATE_CLOCK "lower clock"   /* of its processor */
#define PKI_STATE_TIME "processor time" /* by its account, of a late step */
#define PKI_STATE_UNTOLD "not told"     /* what the kernel does not say, and why */
#define PKI_STATE_FILE "code file"      /* that places of samples are in */
#define PKI_SAMPLE_KERNEL "(kernel)"
#define PKI_SAMPLE_ANYWHERE "(unknown)" /* in no file */
#define PKI_WAITS_LOCK "lock"
#define PKI_WAITS_THREAD "thread" /* another one of the process, by no lock that says which */
#define PKI_WAITS_SLEEP "sleep"
#define PKI_WAITS_READ "read"
#define PKI_WAITS_WRITE "write"
#define PKI_WAITS_SYNC "sync"
#define PKI_WAITS_PIPE "pipe"
#define PKI_WAITS_TERMINAL "terminal"
#define PKI_WAITS_SOCKET "socket"
#define PKI_WAITS_MEMORY "memory"
#define PKI_WAITS_UNKNOWN "wait"

/* From this moment on devices are measured (kernels, copies), or no longer: an instant of the
 * process, of category "perfkit", preceded by ",\n". */
#define PKI_CHROME_MEASURES "CUPTI on"
#define PKI_CHROME_MEASURES_NOT "CUPTI off"
size_t pki_chrome_measures(char out[PKI_EVENT_BYTES], uint32_t pid, uint64_t ns, bool on);

/* The argument (1) of a graph's launch as a whole, whose category is that of kernels. */
#define PKI_CHROME_WHOLE_GRAPH "whole graph"

/* The names and the order of a track, and of its process if it has a name; preceded by ",\n". */
size_t pki_chrome_track(char out[PKI_EVENT_BYTES], const pki_track *track);

/* ---- pk_spans as asynchronous events: b, n and e of the category "span" ---- */

#define PKI_CHROME_SPAN "span" /* the category */

/* Of a PKI_RECORD_SPAN_*. An end whose begin has no record is both events. */
size_t pki_chrome_span(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint32_t tid,
                       const pki_record *record, const pki_record *more);

/* The begin of one that is known to be open, or of an end. Its start in ticks. */
typedef struct pki_chrome_open {
    uint64_t start, id;
    uint32_t name, serial;
} pki_chrome_open;
size_t pki_chrome_span_begin(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint32_t tid,
                             const pki_chrome_open *span);

/* An end, marked, of one that has none: viewers draw what never ends in their own ways, or warn. */
size_t pki_chrome_span_unfinished(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint32_t tid,
                                  const pki_chrome_open *span, uint64_t ticks);
