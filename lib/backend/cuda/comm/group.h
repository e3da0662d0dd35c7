/* lib/backend/cuda/comm/group.h - what a stream is given by a group, as one operation (pk/nccl.h
 * says by which rules). */
#pragma once

#include "backend/cuda/lane.h"

#define PKI_CUDA_ALONE UINT32_MAX

typedef struct pki_cuda_member {
    pk_comm *comm; /* NULL: not any more */
    pki_cuda_lane *lane;
    CUstream stream;
    uint64_t count;
    uint32_t op, type, parent;
    int32_t peer;
    uint32_t next; /* index of the next one on the same lane; PKI_CUDA_ALONE: the last */
    uint32_t name; /* of the operation that it leads; 0: none */
    bool follows;  /* is it somebody's next? */
} pki_cuda_member;

/* One operation by itself. */
pki_cuda_operation pki_cuda_operation_of(const pki_cuda_member *m);

/* The operation of all that follow from the first one on. what 0: there is none left. */
pki_cuda_operation pki_cuda_group_fold(const pki_cuda_member *list, uint32_t first);

/* Links those of each lane. */
void pki_cuda_group_link(pki_cuda_member *list, uint32_t count);
