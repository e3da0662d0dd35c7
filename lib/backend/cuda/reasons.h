/* lib/backend/cuda/reasons.h - why a span is missing, in words, for pk_backend_status. */
#pragma once

#include <stdbool.h>

#include "backend/cuda/api.h"

typedef enum pki_cuda_reason {
    PKI_CUDA_FINE,
    PKI_CUDA_SAMPLED, /* the mildest first: a milder one does not replace another */
    PKI_CUDA_CAPTURE_OFF,
    PKI_CUDA_REFUSED,
    PKI_CUDA_LATE,
    PKI_CUDA_CAPTURE_NO_EVENTS,
    PKI_CUDA_CAPTURE_PROGRAMMATIC,
    PKI_CUDA_CAPTURE_NO_PAIR,
    PKI_CUDA_NO_PAIR,
    PKI_CUDA_NO_ROOM,
    PKI_CUDA_NO_MEMORY,
    PKI_CUDA_NO_END,
    PKI_CUDA_NOT_REACHED,
    PKI_CUDA_LEGACY_CAPTURED,
    PKI_CUDA_CAPTURE_INVALID,
    PKI_CUDA_CAPTURE_SPLIT,
    PKI_CUDA_CAPTURE_OLD,
    PKI_CUDA_CAPTURE_FAILED,
    PKI_CUDA_NO_CONTEXT,
    PKI_CUDA_CALL_FAILED,
    PKI_CUDA_CONTEXT_GONE,
    PKI_CUDA_CONTEXT_DEAD,
    PKI_CUDA_REASONS
} pki_cuda_reason;

/* Is it one for which a capture was left alone? */
static inline bool pki_cuda_is_capture_reason(pki_cuda_reason reason)
{
    return reason == PKI_CUDA_CAPTURE_OFF || reason == PKI_CUDA_CAPTURE_NO_EVENTS ||
           reason == PKI_CUDA_CAPTURE_PROGRAMMATIC;
}

/* Remembers it, if nothing graver is remembered. Any thread. context: its number, or 0. */
void pki_cuda_note_reason(pki_cuda_reason reason, CUresult code, uint32_t context);

/* Nothing to say. Between sessions. */
void pki_cuda_forget_reason(void);

/* What is remembered, as a sentence. */
void pki_cuda_reason_text(char *text, size_t size);
