/* lib/comm/nccl/communicator.h - what is known of a communicator of NCCL, by its handle.
 *
 * The functions that make one say how it is called; of one that was made before anybody listened
 * NCCL is asked. Names and ids are the same on all ranks: an id is the hash that NCCL makes of the
 * unique id and passes to its profilers, so that both speak of the same communicator; for one that
 * was split off, it is made of the other's, how often that was split, and the colour.
 *
 * Threads: any. The look-up takes no lock once a thread has met a communicator.
 */
#pragma once

#include "comm/nccl/glue.h"

#define PKI_WRAP_NAME 64

/* What a communicator will be, once its handle is there. */
typedef struct pki_wrap_identity {
    uint64_t id; /* 0: unknown */
    char name[PKI_WRAP_NAME];
} pki_wrap_identity;

/* NULL for no communicator, and what NCCL does not take for one. errno stays. */
pk_comm *pki_wrap_comm_of(pki_wrap_comm handle);

/* The same, if it has been met; NCCL is not asked. */
pk_comm *pki_wrap_comm_met(pki_wrap_comm handle);

/* Name and number of those that are made of a unique id, and of another communicator. */
pki_wrap_identity pki_wrap_identify(const pki_wrap_id *id, const pki_wrap_config *config);
pki_wrap_identity pki_wrap_identify_child(pki_wrap_comm parent, int color,
                                          const pki_wrap_config *config);

/* The handle is there; or will be at the end of the thread's group, in its place. */
void pki_wrap_made(pki_wrap_comm *place, const pki_wrap_identity *identity, pki_wrap_result result);

/* The communicator goes: another one may get its handle. */
void pki_wrap_forget(pki_wrap_comm handle);

/* The thread's groups, by how deep they nest; at the end of the outermost one NCCL has filled in
 * the handles. */
void pki_wrap_group_start(void);
void pki_wrap_group_end(pki_wrap_result result);
