/* lib/backend/cupti/memory.h - what is allocated and freed, in which region */
#pragma once

#include "backend/cupti/control.h"
#include "backend/cupti/records.h"

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

/* ---- calls that ask whether an event or a stream is done, and do not wait ---- */

/* CUPTI records them as synchronisations, like calls that wait, and the collector asks about events
 * many times a second. Neither the record nor its type tells the two apart, so CUPTI's callback
 * notes which correlations were questions.
 *
 * The places are 8192, each for the newest question whose correlation falls into it: a record is
 * read within a round or two, unless a program asks hundreds of thousands of times a second.
 *
 * Threads: any, without locks. */

bool pki_cupti_is_query(uint32_t correlation);

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

/* Holds it. A record of another kind, or of what nobody can place, is left alone. */
void pki_cupti_memory_add(const CUpti_Activity *record, const pki_cupti_span *span,
                          pki_cupti_counts *counts);

/* Hands over what is of before that, ns of the session. dropped: by CUPTI. */
void pki_cupti_memory_emit(uint64_t complete, uint64_t dropped);

/* whole: as of pki_cupti_join_forget. */
void pki_cupti_memory_forget(bool whole);
