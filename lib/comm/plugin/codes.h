/* lib/comm/plugin/codes.h - NCCL's words as numbers.
 *
 * They are literals of NCCL's, so an address has been seen before, and is looked up in a small
 * table; that is forgotten when a communicator is made, since NCCL may be another one by then.
 */
#pragma once

#include <stdint.h>

#include <pk/comm.h>

#include "base/atomic.h"
#include "base/compiler.h"

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
