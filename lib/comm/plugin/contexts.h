/* lib/comm/plugin/contexts.h - NCCL's communicators, as its profiler interface tells of them.
 *
 * A context is an index and a number that does not come again, like an event's handle. Version 4 and
 * later tell name, id, rank and size as a communicator is made; of older ones the first collective
 * tells what there is.
 */
#ifndef PKI_COMM_PLUGIN_CONTEXTS_H
#define PKI_COMM_PLUGIN_CONTEXTS_H

#include <stdbool.h>
#include <stdint.h>

#define PKI_NCCL_COMMS 1024
#define PKI_NCCL_NAME 64

enum { PKI_NCCL_COMM_FREE, PKI_NCCL_COMM_CLAIMED, PKI_NCCL_COMM_LIVE, PKI_NCCL_COMM_GONE };

typedef struct pki_nccl_comm {
    uint32_t state, context; /* state: released when what stands below has been written */
    uint32_t told;           /* 0: nobody knows its name; 1: being written; 2: known */
    int32_t rank, ranks, nodes;
    uint64_t id;
    char name[PKI_NCCL_NAME];
} pki_nccl_comm;

/* 0: there are too many. id and name may come later. */
uint32_t pki_nccl_comm_open(void);
void pki_nccl_comm_tell(uint32_t context, const char *name, uint64_t id, int32_t rank, int32_t ranks,
                        int32_t nodes);
void pki_nccl_comm_close(uint32_t context);

/* By its index; NULL if it is free. Whether a context is still that one's: compare. */
pki_nccl_comm *pki_nccl_comm_at(uint32_t index);

static inline uint32_t pki_nccl_comm_index(uint32_t context)
{
    return context & (PKI_NCCL_COMMS - 1);
}

/* The collector's: nothing of a closed one is left. */
void pki_nccl_comm_free(uint32_t index);

/* That have been opened and not closed; and that found no room. */
uint32_t pki_nccl_comms_live(void);
uint64_t pki_nccl_comms_refused(void);

/* What is left of closed ones is nobody's: no session is open. */
void pki_nccl_comms_sweep(void);
void pki_nccl_comms_after_fork(void);

#endif
