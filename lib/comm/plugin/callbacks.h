/* lib/comm/plugin/callbacks.h - what NCCL calls, and the tables of it. */
#pragma once

#include "comm/plugin/abi.h"
#include "comm/plugin/pool.h"

#define PKI_NCCL_START(V)                                                                          \
    int pki_nccl_start_v##V(void *context, void **event, pki_nccl_description_v##V *description);
PKI_NCCL_VERSIONS(PKI_NCCL_START)

pki_nccl_stop pki_nccl_stop_event;
pki_nccl_state pki_nccl_change_v2, pki_nccl_change_v4;
pki_nccl_finalize pki_nccl_finalize_comm;

int pki_nccl_init_v2(void **context, int *mask);
int pki_nccl_init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
                     int ranks, int rank, pki_nccl_logger *log);
int pki_nccl_init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                     int rank, pki_nccl_logger *log);

/* What an event has waited until now, or its end, is added up. */
void pki_nccl_leave_state(pki_nccl_event *event, uint64_t now);

void pki_nccl_callbacks_after_fork(void);

/* X(version, the one whose init it has, the one whose states) */
#define PKI_NCCL_TABLES(X) X(2, 2, 2) X(3, 2, 2) X(4, 4, 4) X(5, 5, 4) X(6, 5, 4)

#define PKI_NCCL_FUNCTIONS(V, INIT, STATE)                                                         \
    {                                                                                              \
        "perfkit", pki_nccl_init_v##INIT, pki_nccl_start_v##V, pki_nccl_stop_event,                \
            pki_nccl_change_v##STATE, pki_nccl_finalize_comm                                       \
    }
