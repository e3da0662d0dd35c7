/* lib/core/ffi_request.c - see ffi.c: requests. */
#include <pk/pk.h>
#include <pk/request.h>

extern inline pk_request pk_request_begin(pk_region *region, uint64_t id);
extern inline void pk_request_schedule(pk_request *request);
extern inline void pk_request_prefill(pk_request *request, uint64_t tokens);
extern inline void pk_request_tokens(pk_request *request, uint64_t count);
extern inline void pk_request_preempt(pk_request *request);
extern inline void pk_request_end(pk_request *request, pk_request_outcome outcome);
