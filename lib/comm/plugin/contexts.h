/* lib/comm/plugin/contexts.h - NCCL's communicators, as its profiler interface describes them.
 *
 * A context is an index and a number that does not come again, like an event's handle. Version 4
 * and later have name, id, rank and size as a communicator is made; of older ones the first
 * collective says what there is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PKI_NCCL_CONTEXTS 1024
#define PKI_NCCL_NAME 64

enum {
    PKI_NCCL_CONTEXT_FREE,
    PKI_NCCL_CONTEXT_CLAIMED,
    PKI_NCCL_CONTEXT_LIVE,
    PKI_NCCL_CONTEXT_GONE
};

typedef struct pki_nccl_context {
    uint32_t state, handle; /* state: released when what stands below has been written */
    uint32_t described;     /* 0: nobody knows its name; 1: being written; 2: known */
    int32_t rank, ranks, nodes;
    uint64_t id;
    char name[PKI_NCCL_NAME];
} pki_nccl_context;

/* 0: there are too many. id and name may come later. */
uint32_t pki_nccl_context_open(void);
void pki_nccl_context_describe(uint32_t context, const char *name, uint64_t id, int32_t rank,
                               int32_t ranks, int32_t nodes);
void pki_nccl_context_close(uint32_t context);

/* By its index; NULL if it is free. Whether a context is still that one's: compare. */
pki_nccl_context *pki_nccl_context_at(uint32_t index);

static inline uint32_t pki_nccl_context_index(uint32_t context)
{
    return context & (PKI_NCCL_CONTEXTS - 1);
}

/* The collector's: nothing of a closed one is left. */
void pki_nccl_context_free(uint32_t index);

/* That have been opened and not closed; and that found no room. */
uint32_t pki_nccl_contexts_live(void);
uint64_t pki_nccl_contexts_refused(void);

void pki_nccl_contexts_after_fork(void);
