/* lib/core/ffi_span.c - see ffi.c: spans. */
#include <pk/pk.h>
#include <pk/span.h>

extern inline pk_span pk_span_begin(pk_region *region, uint64_t id);
extern inline void pk_span_mark(pk_span *span, pk_region *region);
extern inline void pk_span_end(pk_span *span);
