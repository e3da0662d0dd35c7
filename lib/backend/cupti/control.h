/* lib/backend/cupti/control.h - libcupti: found, taken, switched, its buffers, given back */
#pragma once

#include <cupti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/backend.h"
#include "session/session.h"

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

CUptiResult pki_cupti_buffers_register(void); /* them */

/* Asks CUPTI where the records begin in all that have come back since the last call. One at a time,
 * without a lock that others want. */
void pki_cupti_buffers_walk(void);

/* All that have been walked since the last call, the oldest first, linked by next. */
pki_cupti_buffer *pki_cupti_buffers_drain(void);

/* Read; may be handed out again. */
void pki_cupti_buffer_release(pki_cupti_buffer *buffer);

/* Since when CUPTI has the oldest that it has, CLOCK_MONOTONIC ns; UINT64_MAX: it has none. */
uint64_t pki_cupti_buffers_oldest(void);

/* How often buffers have been asked for and given back, and how many CUPTI has. */
uint64_t pki_cupti_buffers_moves(uint32_t *held);

/* Those that CUPTI has had since before that (ns) never come back: their memory is left alone. */
void pki_cupti_buffers_give_up(uint64_t before);

/* Since the process began; any thread. */
typedef struct pki_cupti_traffic {
    uint64_t refused; /* requests that got nothing to write into */
    uint64_t foreign; /* came back and were another tool's: they are left alone */
    bool ended;       /* set: CUPTI gets no more of them, since nobody would read them */
} pki_cupti_traffic;
extern pki_cupti_traffic pki_cupti_buffers;

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

/* Grows with each time that all kinds are on; 0: not all are. What begins and ends in one of these
 * leaves a record. */
extern uint32_t pki_cupti_recording;

/* ---- when CUPTI is on: for a session, a range of its steps, or what captures want ---- */

/* listed: among the session's backends. False: it is off. */
bool pki_cupti_switch_start(const pki_config *config, bool listed);
void pki_cupti_switch_flush(pki_flush why);

/* How it stands: read before buffers are taken, which then have all that was complete. Times are of
 * the session, ns. */
typedef struct pki_cupti_standing {
    bool windowed, armed;      /* for a range of steps; for captures */
    bool closed;               /* not yet on, or between two times that captures want it */
    uint64_t begin, end;       /* of what is wanted; UINT64_MAX: not known yet */
    uint64_t opened, complete; /* 0: it never was; what began before it has come back */
    uint64_t taken_at;         /* another tool has its buffers since; UINT64_MAX: none */
    uint64_t memory_opened, memory_complete; /* the same of what is allocated */
    uint64_t dropped; /* by CUPTI, in this session, however often it was opened */
} pki_cupti_standing;
pki_cupti_standing pki_cupti_standing_at(uint64_t now);

typedef struct pki_cupti_mark {
    uint64_t ns; /* of the session */
    bool on;
} pki_cupti_mark;

/* False: there is none. */
bool pki_cupti_marks_pop(pki_cupti_mark *mark);

/* The session's last word of it. */
void pki_cupti_switch_over(const char *why);

/* How it stands, in words. False: it is off. */
bool pki_cupti_switch_status(char *why, size_t size);

/* In the child of a fork: nothing is open. A child of a process that had CUPTI open cannot. */
void pki_cupti_switch_after_fork(void);
