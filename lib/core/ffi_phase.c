/* lib/core/ffi_phase.c - see ffi.c: phases and checkpoints. */
#include <pk/goodput.h>
#include <pk/pk.h>

extern inline void pk_phase_begin(pk_phase phase);
extern inline void pk_phase_end(pk_phase phase);
extern inline void pk_checkpoint_done(uint64_t step, uint64_t bytes);
