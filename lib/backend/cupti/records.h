/* lib/backend/cupti/records.h - CUPTI's records and calls in words of our own */
#pragma once

#include "backend/cupti/control.h"

/* ---- which calls of the CUDA runtime and driver matter, and their names ---- */

/* Going by the names that the library itself gives to its callback ids: so calls that came after
 * our header are known by what they begin with.
 *
 * Threads: pki_cupti_calls_learn before anybody else asks; it learns once per process. After that
 * any thread. */

#define PKI_CUPTI_LAUNCHES 1u   /* puts work on a device: kernels, copies, graphs */
#define PKI_CUPTI_WAITS 2u      /* for a device, a stream or an event */
#define PKI_CUPTI_ASKS 8u       /* whether an event or a stream is done */
#define PKI_CUPTI_RECORDS 16u   /* an event */
#define PKI_CUPTI_ALLOCATES 32u /* or frees, on a device or pinned on the host */
#define PKI_CUPTI_QUIET 4u      /* asks for nothing but state, and is called very often */

typedef struct pki_cupti_call {
    char *name; /* as PyTorch's tools know it; NULL: no memory */
    unsigned traits;
} pki_cupti_call;

/* False without memory. */
bool pki_cupti_calls_learn(void);

/* One past the last id of the domain (runtime or driver). */
uint32_t pki_cupti_calls_count(CUpti_CallbackDomain domain);

/* Never NULL; an unknown one is called after its number's domain. */
const pki_cupti_call *pki_cupti_call_of(CUpti_CallbackDomain domain, uint32_t id);

/* For tests: what the name says. */
unsigned pki_cupti_traits(CUpti_CallbackDomain domain, const char *plain_name);

/* ---- CUPTI's records in words of our own ---- */

/* The structs of the header are the newest ones. Each family only ever grew at its end, so what an
 * older library wrote is the beginning of ours, and what a newer one writes begins with ours: a
 * record's length is known to cuptiActivityGetNextRecord alone, and fields that came late are read
 * only if the library's version has them (pki_cupti_has).
 *
 * Threads: the reader is one at a time (the drain lock). */

typedef enum pki_cupti_what {
    PKI_CUPTI_KERNEL,
    PKI_CUPTI_GRAPH,
    PKI_CUPTI_COPY,
    PKI_CUPTI_SET,
    PKI_CUPTI_RUNTIME,
    PKI_CUPTI_DRIVER,
    PKI_CUPTI_SYNC,
    PKI_CUPTI_OVERHEAD,
    PKI_CUPTI_EXTERNAL, /* id: what was pushed; no time */
    PKI_CUPTI_EVENT,    /* id: the event that the call recorded; no time */
    PKI_CUPTI_POOL      /* a sample of a memory pool: bytes in use */
} pki_cupti_what;

typedef struct pki_cupti_record {
    pki_cupti_what what;
    uint32_t correlation;
    uint64_t start, end; /* ns since the session started */
    uint64_t arrived;    /* the same, when it was read */
    uint32_t device, context, stream;
    uint32_t detail;  /* cbid, CUPTI's kind of synchronisation or overhead, copyKind */
    uint64_t bytes;   /* moved or set; of the pool's use */
    uint64_t id;      /* of the graph, what was pushed, the event waited for, the pool's address */
    uint64_t node;    /* of the graph; 0: none */
    const char *name; /* of a kernel: CUPTI's string, interned by the reader's caller */
    uint32_t thread;  /* of a call, or of an overhead; 0: unknown */
    uint32_t result;  /* of a call */
    uint32_t grid[3], block[3], cluster[3], registers, shared_bytes;
    uint8_t from, to;                /* kinds of memory; of a memset: to */
    uint32_t from_device, to_device; /* of a copy between devices */
} pki_cupti_record;

/* Why a record is not in the trace. */
typedef struct pki_cupti_counts {
    uint64_t records;     /* read */
    uint64_t unknown;     /* of kinds that nobody asked for */
    uint64_t bad_time;    /* without times, or with impossible ones */
    uint64_t broken;      /* buffers that could not be read to their end */
    uint64_t other_clock; /* times that are not of our clock, but of another tool's */
    uint64_t outside;     /* before the session or outside the window of steps */
    uint64_t covered;     /* driver calls within a runtime call: the same launch */
    uint64_t unlinked;    /* device activities without the call that launched them */
    uint64_t lost;        /* no memory to hold them */
} pki_cupti_counts;

/* When CUPTI began to record, and now: no record's times lie far outside. Of the session, ns. */
typedef struct pki_cupti_span {
    uint64_t opened, now;
} pki_cupti_span;

#define PKI_CUPTI_SLACK_NS 1000000000u /* devices' clocks are off by microseconds */

/* CUPTI takes its times from the clock that was registered last, by whichever tool of the process:
 * its ticks, read as nanoseconds, are hours off. */
static inline bool pki_cupti_is_placed(uint64_t start, uint64_t end, const pki_cupti_span *span)
{
    return start + PKI_CUPTI_SLACK_NS >= span->opened && end <= span->now + PKI_CUPTI_SLACK_NS;
}

/* Reads a buffer; each record that has a meaning goes to take. memory: but what is allocated and
 * what becomes of pools is held for pki_cupti_memory_emit; else take gets pools' use. */
typedef void pki_cupti_take(void *user, const pki_cupti_record *record);
void pki_cupti_read(const pki_cupti_buffer *buffer, const pki_cupti_span *span,
                    pki_cupti_counts *counts, pki_cupti_take *take, void *user, bool memory);

/* Fields that came after CUDA 11.6. */
typedef enum pki_cupti_field {
    PKI_CUPTI_HAS_CLUSTER,
    PKI_CUPTI_HAS_OVERHEAD_CORRELATION,
    PKI_CUPTI_HAS_OVERHEAD_DATA,
    PKI_CUPTI_FIELDS
} pki_cupti_field;
bool pki_cupti_has(uint32_t version, pki_cupti_field field);

/* cudaLaunchKernel of __cudaLaunchKernel_ptsz_v13000. At most size - 1 bytes of it. */
void pki_cupti_plain_name(const char *name, char *plain, size_t size);

/* ---- which region a call of CUDA was made in ---- */

/* CUPTI calls back, on the calling thread, as a launch begins and as it ends. In between our
 * external id (CUSTOM2; PyTorch has the other two) lies on that thread's stack of CUPTI's, so each
 * record of the call comes with one that names the id; kernels share the call's correlation. The id
 * is made from the innermost open region: its name's id, and when this call of it began.
 *
 * Threads: the callback on any, without locks. The rest: one at a time. */

/* For cuptiSubscribe. Does nothing while off. */
void CUPTIAPI pki_cupti_called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                               const void *data);

/* Asks for callbacks of all calls that launch, wait or ask whether something is done; or for none
 * any more, where the subscription stays. The number of those that were refused. */
unsigned pki_cupti_attribute(CUpti_SubscriberHandle subscriber, bool on);
void pki_cupti_attribute_off(void);

/* The same, on and off, of calls that allocate and free: they are noted (above), and push
 * nothing. */
unsigned pki_cupti_attribute_memory(CUpti_SubscriberHandle subscriber, bool on);

/* Launches of all threads while all kinds are recorded, counted from 1. One that ends before that
 * is switched off leaves a record. recorded: the latest of which it is known that it has ended so,
 * since its thread has called something after it. */
typedef struct pki_cupti_launched {
    uint64_t begun, recorded;
} pki_cupti_launched;
extern pki_cupti_launched pki_cupti_launches;

#define PKI_CUPTI_ID_BITS 16 /* of it, the name's; the rest is a tick */

/* ---- how much of a device's memory pools is in use, as a counter ---- */

/* Threads: one at a time (the drain lock). */

void pki_cupti_pool_sample(const pki_cupti_record *record);

/* ---- memory ---- */

/* Records of what is allocated and freed, and of memory pools, in the
 * order of their times, to the session (session/costs/gpu_memory.h).
 *
 * CUPTI makes a record of each allocation and each free (MEMORY2), with its kind and,
 * if a pool served it, how large that is and how much of it is in use. Threads fill buffers of
 * their own, so records are held until all that came before them has been read.
 *
 * Threads: one at a time (the drain lock). */

/* Hands over what is of before that, ns of the session. dropped: by CUPTI. */
void pki_cupti_memory_emit(uint64_t complete, uint64_t dropped);

/* whole: as of pki_cupti_join_forget. */
void pki_cupti_memory_forget(bool whole);
