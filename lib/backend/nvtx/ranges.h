/* lib/backend/nvtx/ranges.h - what is known of a thread that uses NVTX: domains, and the ranges it
 * has open */
#pragma once

#include <string.h>

#include "backend/nvtx/nvtx.h"

/* ---- what is known of a thread that uses NVTX ---- */

/* Which ranges it has open, and which regions its messages were.
 *
 * A message is looked up by the address of its text in a small table per thread, and compared,
 * since the same address may hold another text tomorrow. What is not there takes the way of
 * pk_region_named: a hash, and no lock for a known name. */

#define PKI_NVTX_OPEN_MOST 128
#define PKI_NVTX_REMEMBERED 64 /* messages; a power of two */
#define PKI_NVTX_TEXT_BYTES 96

typedef struct pki_nvtx_remembered {
    uintptr_t message; /* an address; a registered string's is odd, and has no text */
    const pki_nvtx_domain *domain;
    pk_region *region;
    uint32_t category;
    pki_nvtx_meaning meaning;
    char text[PKI_NVTX_TEXT_BYTES];
} pki_nvtx_remembered;

_Static_assert(sizeof(pki_nvtx_remembered) == 128, "found by shifting");
