/* lib/core/ffi.c - a symbol for every inline of the public headers, for callers that cannot inline
 * C: C's rule is that an `extern inline` declaration in one file makes the definition there. Here
 * are those of regions and steps, in ffi_*.c the others: a program whose compiler does not inline
 * either (debug builds, what runs once) carries only what it calls.
 */
#include <pk/goodput.h>
#include <pk/pk.h>

extern inline void pk_region_begin(pk_region *region);
extern inline void pk_region_end(pk_region *region);
extern inline void pk_region_next(pk_region *from, pk_region *to);
extern inline void pk_region_add(pk_region *region, uint64_t bytes, uint64_t flops);
extern inline void pk_region_note(pk_region *region, pk_region *key, int64_t value);
extern inline void pk_region_note_text(pk_region *region, pk_region *key, const char *text);
extern inline void pk_region_mark(pk_region *region);
extern inline void pk_step(uint64_t items);
extern inline void pk_step_begin(void);
extern inline void pk_step_kind(const char *kind);
extern inline void pk_step_add_flops(double model, double hardware);
extern inline void pk_training_set_step(uint64_t step);
