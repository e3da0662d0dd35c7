/* lib/core/ffi.c - a symbol for every inline of the public headers, for callers that cannot inline
 * C: C's rule is that an `extern inline` declaration in one file makes the definition there. */
#include <pk/pk.h>

extern inline void pk_region_begin(pk_region *region);
extern inline void pk_region_end(pk_region *region);
extern inline void pk_region_next(pk_region *from, pk_region *to);
extern inline void pk_region_add(pk_region *region, uint64_t bytes, uint64_t flops);
extern inline void pk_region_mark(pk_region *region);
extern inline void pk_step(uint64_t items);
extern inline void pk_step_begin(void);
extern inline void pk_step_kind(const char *kind);
extern inline void pk_step_flops(double model, double hardware);
extern inline void pk_phase_begin(pk_phase phase);
extern inline void pk_phase_end(pk_phase phase);
extern inline void pk_checkpoint_done(uint64_t step, uint64_t bytes);
extern inline void pk_training_at(uint64_t step);
extern inline pk_span pk_span_begin(pk_region *region, uint64_t id);
extern inline void pk_span_mark(pk_span *span, pk_region *region);
extern inline void pk_span_end(pk_span *span);
extern inline pk_request pk_request_begin(pk_region *region, uint64_t id);
extern inline void pk_request_schedule(pk_request *request);
extern inline void pk_request_prefill(pk_request *request, uint64_t tokens);
extern inline void pk_request_tokens(pk_request *request, uint64_t count);
extern inline void pk_request_preempt(pk_request *request);
extern inline void pk_request_end(pk_request *request, pk_request_outcome outcome);
extern inline void pk_counter_set(pk_counter *counter, double value);
extern inline void pk_comm_call(pk_region *region, pk_comm *comm, pk_comm_op op, pk_comm_type type,
                                uint64_t count, int32_t peer);
extern inline void pk_comm_tag(pk_region *region, int32_t tag);
extern inline pk_comm_request pk_comm_start(pk_comm *comm, pk_comm_op op, pk_comm_type type,
                                            uint64_t count, int32_t peer);
extern inline void pk_comm_correct(pk_comm_request *request, uint64_t bytes, int32_t peer);
extern inline void pk_comm_tag_request(pk_comm_request *request, int32_t tag);
extern inline void pk_comm_finish(pk_comm_request *request, uint64_t waited_ns);
extern inline void pk_nccl_begin(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                                 int32_t peer, void *stream);
extern inline void pk_nccl_end(pk_comm *comm, void *stream, int32_t result);
extern inline void(pk_gpu_begin)(pk_region *region, void *stream);
extern inline void(pk_gpu_end)(pk_region *region, void *stream);
extern inline void(pk_gpu_graph_launching)(void *exec, void *graph, void *stream);
