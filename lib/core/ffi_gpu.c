/* lib/core/ffi_gpu.c - see ffi.c: streams. */
#include <pk/nccl.h>
#include <pk/pk.h>

extern inline void pk_nccl_begin(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                                 int32_t peer, void *stream);
extern inline void pk_nccl_end(pk_comm *comm, void *stream, int32_t result);
extern inline void(pk_gpu_begin)(pk_region *region, void *stream);
extern inline void(pk_gpu_end)(pk_region *region, void *stream);
extern inline void(pk_gpu_graph_launching)(void *exec, void *graph, void *stream);
