/* lib/backend/cupti/buffers.h - the memory that CUPTI writes records into.
 *
 * CUPTI asks for a buffer on whatever thread needs one, the program's included, and gives it back,
 * filled, on one of its own or on the caller of a flush. Neither callback takes a lock: what is
 * filled is pushed onto a list that the collector takes as a whole, what is free lies in slots that
 * are exchanged. Buffers are handed out zeroed (CUPTI is told so), by the collector where it can.
 *
 * Out of memory, or past the bound, CUPTI gets eight bytes that no record fits into, never NULL:
 * before CUDA 12.9 it wrote there. It counts what it then drops.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "backend/cupti/api.h"
#include "base/compiler.h"

#define PKI_CUPTI_BUFFER_BYTES ((size_t)1 << 20)
#define PKI_CUPTI_BUFFERS_MOST 512u

typedef struct pki_cupti_buffer {
    struct pki_cupti_buffer *next;
    size_t valid;       /* bytes of records */
    uint64_t completed; /* when it came back, CLOCK_MONOTONIC ns */
    PKI_ALIGNED uint8_t data[];
} pki_cupti_buffer;

/* The two callbacks for cuptiActivityRegisterCallbacks. */
void CUPTIAPI pki_cupti_buffer_requested(uint8_t **data, size_t *size, size_t *records_most);
void CUPTIAPI pki_cupti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *data,
                                         size_t size, size_t valid);

/* All that have come back since the last call, the oldest first, linked by next. */
pki_cupti_buffer *pki_cupti_buffers_drain(void);

/* Read; may be handed out again. */
void pki_cupti_buffer_release(pki_cupti_buffer *buffer);

/* Requests that got nothing to write into, since the process began. */
uint64_t pki_cupti_buffers_refused(void);

/* Gives back what lies free; between sessions. */
void pki_cupti_buffers_trim(void);

/* In a fork's child: nothing is anybody's. */
void pki_cupti_buffers_after_fork(void);
