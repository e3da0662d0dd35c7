/* lib/backend/cuda/comm/emit.h - operations of communicators that events have timed, into trace and
 * figures. */
#pragma once

#include "backend/cuda/lane.h"

/* The operation, part by part; times in whole ns of the session. Of a replay: its pattern. */
void pki_cuda_emit_parts(const pki_cuda_lane *lane, uint64_t start, uint64_t end,
                         const pki_cuda_operation *op, bool replayed);
