/* lib/backend/cupti/calls.h - which calls of the CUDA runtime and driver matter, and their names.
 *
 * Going by the names that the library itself gives to its callback ids: so calls that came after
 * our header are known by what they begin with.
 *
 * Threads: pki_cupti_calls_learn before anybody else asks; it learns once per process. After that
 * any thread.
 */
#pragma once

#include "backend/cupti/api.h"

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
