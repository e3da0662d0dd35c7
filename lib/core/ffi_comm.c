/* lib/core/ffi_comm.c - see ffi.c: communication. */
#include <pk/comm.h>
#include <pk/pk.h>

extern inline void pk_comm_call(pk_region *region, pk_comm *comm, pk_comm_op op, pk_comm_type type,
                                uint64_t count, int32_t peer);
extern inline void pk_comm_set_tag(pk_region *region, int32_t tag);
extern inline pk_comm_request pk_comm_start(pk_comm *comm, pk_comm_op op, pk_comm_type type,
                                            uint64_t count, int32_t peer);
extern inline void pk_comm_correct(pk_comm_request *request, uint64_t bytes, int32_t peer);
extern inline void pk_comm_set_request_tag(pk_comm_request *request, int32_t tag);
extern inline void pk_comm_finish(pk_comm_request *request, uint64_t waited_ns);
