/* lib/comm/nccl/communicator.h - communicators of NCCL, by their handles */
#pragma once

#include "comm/nccl/glue.h"

/* ---- what is known of a communicator of NCCL, by its handle ---- */

/* The functions that make one say how it is called; of one that was made before anybody listened
 * NCCL is asked. Names and ids are the same on all ranks: an id is the hash that NCCL makes of the
 * unique id and passes to its profilers, so that both speak of the same communicator; for one that
 * was split off, it is made of the other's, how often that was split, and the colour.
 *
 * Threads: any. The look-up takes no lock once a thread has met a communicator. */

/* NULL for no communicator, and what NCCL does not take for one. errno stays. */
pk_comm *pki_wrap_comm_of(pki_wrap_comm handle);

/* The thread's groups, by how deep they nest; at the end of the outermost one NCCL has filled in
 * the handles. */
void pki_wrap_group_start(void);
void pki_wrap_group_end(pki_wrap_result result);
