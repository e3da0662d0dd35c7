/* lib/comm/plugin/contexts.h - NCCL's communicators and words, and which events it is asked for */
#pragma once

#include <pk/comm.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* ---- NCCL's words as numbers ---- */

/* They are literals of NCCL's, so an address has been seen before, and is looked up in a small
 * table; that is forgotten when a communicator is made, since NCCL may be another one by then. */

typedef enum pki_nccl_code_kind { /* kinds */
                                  PKI_NCCL_FUNCTION,
                                  PKI_NCCL_ELEMENT,
                                  PKI_NCCL_ALGORITHM,
                                  PKI_NCCL_PROTOCOL,
                                  PKI_NCCL_CODE_KINDS
} pki_nccl_code_kind;

#define PKI_NCCL_SEEN 512 /* a quarter for each kind */

/* Address << 8 | kind << 5 | code; user addresses have 56 bits at most. */
extern __attribute__((visibility("hidden"))) uint64_t pki_nccl_seen[PKI_NCCL_SEEN];

uint8_t pki_nccl_look_up(pki_nccl_code_kind kind, const char *word);

static inline uint64_t pki_nccl_code_key(pki_nccl_code_kind kind, const char *word)
{
    return (uint64_t)(uintptr_t)word << 3 | kind;
}

static inline uint64_t *pki_nccl_code_seen(uint64_t key)
{
    return &pki_nccl_seen[(key & 3) << 7 | (key * UINT64_C(0x9E3779B97F4A7C15)) >> 57];
}

/* 0 for none, and for what is unknown. */
static inline uint8_t pki_nccl_code(pki_nccl_code_kind kind, const char *word)
{
    uint64_t key = pki_nccl_code_key(kind, word);
    uint64_t last = pki_load(pki_nccl_code_seen(key));
    return PKI_LIKELY(last >> 5 == key) ? last & 31 : pki_nccl_look_up(kind, word);
}
void pki_nccl_codes_forget(void);

const char *pki_nccl_text(pki_nccl_code_kind kind, uint8_t code);
pk_comm_op pki_nccl_op(uint8_t function);
pk_comm_type pki_nccl_type(uint8_t element);

/* ---- NCCL's communicators, as its profiler interface describes them ---- */

/* A context is an index and a number that does not come again, like an event's handle. Version 4
 * and later have name, id, rank and size as a communicator is made; of older ones the first
 * collective says what there is. */

#define PKI_NCCL_CONTEXTS 1024
#define PKI_NCCL_NAME 64

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

/* That have been opened and not closed; and that found no room. */
uint32_t pki_nccl_contexts_live(void);
uint64_t pki_nccl_contexts_refused(void);

void pki_nccl_contexts_after_fork(void);
