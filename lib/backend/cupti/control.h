/* lib/backend/cupti/control.h - libcupti: found, taken, switched, its buffers, given back */
#pragma once

#include <cupti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* ---- libcupti's functions, found while the program runs ---- */

/* Compiled against the newest header, run with whatever library is there: records are read field by
 * field up to what its version has (cupti/records.h), functions that came later may be NULL. */

/* cuptiGetVersion counted 1 to 28; since CUDA 13.0 it is major, minor and patch in two digits each.
 */
enum {
    PKI_CUPTI_11_6 = 17, /* takes somebody else's clock: the oldest that is used */
    PKI_CUPTI_11_8 = 18,
    PKI_CUPTI_12_2 = 20,
    PKI_CUPTI_12_5 = 23,
    PKI_CUPTI_12_9 = 27,
    PKI_CUPTI_13_0 = 130000,
    PKI_CUPTI_13_0_U1 = 130001,
    PKI_CUPTI_13_1 = 130100,
    PKI_CUPTI_13_1_U1 = 130101,
    PKI_CUPTI_13_3 = 130300,
    PKI_CUPTI_13_4_U1 = 130401
};

/* F(name), or L(name): a later one, NULL where the library is older. */
#define PKI_CUPTI_FUNCTIONS(F, L)                                                                  \
    F(GetVersion)                                                                                  \
    F(GetResultString)                                                                             \
    F(GetCallbackName)                                                                             \
    F(Subscribe)                                                                                   \
    L(Subscribe_v2) /* since 13.0 */                                                               \
    F(Unsubscribe)                                                                                 \
    F(EnableCallback)                                                                              \
    F(SetThreadIdType)                                                                             \
    F(ActivitySetAttribute)                                                                        \
    F(ActivityRegisterCallbacks)                                                                   \
    F(ActivityRegisterTimestampCallback)                                                           \
    F(ActivityEnable)                                                                              \
    F(ActivityDisable)                                                                             \
    L(ActivityEnableRuntimeApi)     /* since 12.5 */                                               \
    L(ActivityEnableDriverApi)      /* since 12.5 */                                               \
    L(ActivityEnableAllSyncRecords) /* later than 11.6 */                                          \
    F(ActivityFlushAll)                                                                            \
    F(ActivityGetNextRecord)                                                                       \
    F(ActivityGetNumDroppedRecords)                                                                \
    F(ActivityPushExternalCorrelationId)                                                           \
    F(ActivityPopExternalCorrelationId)

#define PKI_CUPTI_MEMBER(name) __typeof__(cupti##name) *name;
typedef struct pki_cupti_table {
    PKI_CUPTI_FUNCTIONS(PKI_CUPTI_MEMBER, PKI_CUPTI_MEMBER)
} pki_cupti_table;

/* Filled by pki_cupti_load, and never changed after that: its functions may be called for ever. */
extern pki_cupti_table pki_cupti;

/* Opens the library, once per process: true if it is there and of a version that can be used. It
 * does not ask whether there is a driver. If not, why not. */
bool pki_cupti_load(char *reason, size_t size);

/* Where the library has several users at a time: the table's functions are those of one of them
 * from then on, as long as there is a subscription (cupti/several.c). */
void pki_cupti_several_find(void *library, pki_cupti_table *table);

extern CUpti_SubscriberHandle pki_cupti_one; /* ours, of several; NULL: none, or it is alone */

uint32_t pki_cupti_version(void); /* 0: not loaded */

/* "12.8", from cuptiGetVersion's number. */
void pki_cupti_version_text(uint32_t version, char *text, size_t size);

/* Why a version is not used, or what it does wrong; NULL if nothing is known against it. */
typedef struct pki_cupti_fault {
    uint32_t from, until; /* versions, the last one not included */
    bool refused;
    bool of_nodes; /* where a graph is recorded kernel by kernel (cupti_graph_nodes) */
    const char *why;
} pki_cupti_fault;
const pki_cupti_fault *pki_cupti_fault_of(uint32_t version);

/* A result in words, with what can be done about it. */
const char *pki_cupti_result_text(CUptiResult result);

/* ---- the memory that CUPTI writes records into ---- */

/* CUPTI asks for a buffer on whatever thread needs one, the program's included, and gives it back,
 * filled, on one of its own or on the caller of a flush. Neither callback takes a lock: what is
 * filled is pushed onto a list. Where records begin CUPTI alone knows: who flushes asks it, and
 * pushes the buffer onto another list, which the collector takes as a whole, so that no call of
 * CUPTI's is made under the drain lock. What is free lies in slots that are exchanged. Buffers are
 * handed out zeroed (CUPTI is told so), by the collector where it can.
 *
 * Out of memory, or past the bound, CUPTI gets eight bytes that no record fits into, never NULL:
 * before CUDA 12.9 it wrote there. It counts what it then drops. */

/* Small ones come back soon: a flush leaves one alone that holds a record of what still runs, and
 * where the host is ahead of the device each has such a one until it is full. */
#define PKI_CUPTI_BUFFER_BYTES ((size_t)1 << 16)

typedef struct pki_cupti_buffer {
    struct pki_cupti_buffer *next;
    uint32_t place;                                /* in the table of all that exist */
    bool broken;                                   /* it could not be walked to its end */
    size_t valid;                                  /* bytes of records */
    uint64_t begins[PKI_CUPTI_BUFFER_BYTES / 512]; /* a bit for each 8 bytes: a record begins */
    PKI_ALIGNED uint8_t data[];
} pki_cupti_buffer;

/* The two callbacks for cuptiActivityRegisterCallbacks. */
void CUPTIAPI pki_cupti_buffer_requested(uint8_t **data, size_t *size, size_t *records_most);
void CUPTIAPI pki_cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *data,
                                         size_t size, size_t valid);

/* Asks CUPTI where the records begin in all that have come back since the last call. One at a time,
 * without a lock that others want. */
void pki_cupti_buffers_walk(void);

/* All that have been walked since the last call, the oldest first, linked by next. */
pki_cupti_buffer *pki_cupti_buffers_drain(void);

/* Read; may be handed out again. */
void pki_cupti_buffer_release(pki_cupti_buffer *buffer);

/* That came back and were another tool's, since the process began: they are left alone. */
uint64_t pki_cupti_buffers_foreign(void);

/* Yes: CUPTI gets no more of them, since nobody would read them. */
void pki_cupti_buffers_end(bool yes);

/* Requests that got nothing to write into, since the process began. */
uint64_t pki_cupti_buffers_refused(void);

/* Gives back what lies free; between sessions. */
void pki_cupti_buffers_trim(void);

/* In a fork's child: nothing is anybody's. */
void pki_cupti_buffers_after_fork(void);

/* ---- taking CUPTI, switching it on, off, and giving it back ---- */

/* In the order that the library wants: driver, library, subscription (which is the lock against
 * other tools), attributes, buffers, clock, kinds; and back: kinds, a forced flush, subscription.
 * cuptiFinalize is never called. Whatever fails undoes what came before it.
 *
 * Threads: one at a time, and with no lock that a callback takes (there is none): every call here
 * may wait for CUPTI's threads. */

/* True: it records. If not, why not. graph_nodes: each kernel of a graph. */
bool pki_cupti_open(bool graph_nodes, char *reason, size_t size);

/* Records what is allocated and freed, whether or not it records the rest, until it is turned off:
 * before pki_cupti_open, behind pki_cupti_close. */
bool pki_cupti_memory_on(char *reason, size_t size);
void pki_cupti_memory_off(void);

/* Grows with each time that all kinds are on; 0: not all are. What begins and ends in one of these
 * leaves a record. */
extern uint32_t pki_cupti_recording;

/* Records nothing more. What it has is still to be flushed. */
void pki_cupti_quiet(void);

/* Records again, after pki_cupti_quiet. False: why not, and it is closed. */
bool pki_cupti_resume(bool graph_nodes, char *reason, size_t size);

/* Gives back all that is complete, and walks it; forced: all. */
void pki_cupti_flush(bool forced);

/* Behind a flush: what began before that, and has ended, has come back and been walked.
 * CLOCK_MONOTONIC ns; UINT64_MAX: all has. CUPTI may have a buffer of ours since then: a flush that
 * is not forced "doesn't return buffers which have one or more incomplete records"
 * (cupti_activity.h). Or it has none, and what was launched since then has moved none: it has gone
 * to another tool, or was under way as the records were switched off. *lost, where all of them are
 * to be here: it is certain that there are more. */
uint64_t pki_cupti_all_until(bool *lost);

/* Quiet, a forced flush, and anybody may have it, unless what is allocated is recorded. */
void pki_cupti_close(void);

/* Once per flush: has another tool registered buffers of its own? Then calls come back and their
 * records do not: for two flushes there have been more of them than what CUPTI has of ours has room
 * for, and it has asked for nothing. */
bool pki_cupti_taken(void);

/* Nothing that is the other tool's now is switched, nor flushed. */
void pki_cupti_abandon(void);

/* Records that CUPTI says it has dropped in this session, however often it was opened. Any thread.
 */
uint64_t pki_cupti_dropped(void);
void pki_cupti_forget(void); /* a session begins */

/* In the child of a fork: nothing is open. A child of a process that had CUPTI open cannot. */
void pki_cupti_control_after_fork(void);
