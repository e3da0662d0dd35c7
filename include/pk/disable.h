/* pk/disable.h - what -DPK_DISABLE makes of every call: nothing.
 *
 *     cc -O2 -DPK_DISABLE program.c            // no instruction of perfkit's, and no libpk
 *
 * For builds that must not carry perfkit at all. A program that is merely not to record needs none
 * of this: without pk_start a region costs a load and a branch.
 *
 * Define PK_DISABLE on the command line, before any header of perfkit's, for a whole program or for
 * some of its files: the others record as ever. The program compiles as before, with the same
 * types, checks and warnings, and links without libpk. What the headers declare then means:
 *
 *   - Every call is an empty function, inlined. Its arguments are evaluated as those of any
 *     function are, so their side effects still happen, and what they only compute is removed by
 *     the compiler. With optimisation (-O1 and more) the code is what it would be without the
 *     calls, and regions and counters that are static take no memory; without it empty calls
 *     remain.
 *   - Scopes (PK_REGION_SCOPE, PK_FUNCTION, PK_GPU_SCOPE, pk.hpp's) are plain blocks.
 *   - Answers: PK_OK; 0 for figures; structures are zero behind their size. pk_error_message is "",
 *     pk_version "disabled". Pointers that are never NULL point to one that does nothing.
 *     pk_backend_status says in words that this is a program without perfkit.
 *
 * Not for direct use: each header includes the part of this file that belongs to it, once all of
 * its functions are declared. A function without its twin here is an error of the compiler, and of
 * tests/headers.
 */
#ifdef PK_DISABLE

/* clang-format off: a function that does nothing fits on a line. */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifdef PK_DISABLE_STATUS_
#undef PK_DISABLE_STATUS_
#define PK_DISABLE_REASON_ "compiled with PK_DISABLE"

/* A structure that says its size: all the rest becomes zero. */
#define PK_DISABLE_ZERO_(structure)                                                                \
    do {                                                                                           \
        if (structure) {                                                                           \
            uint32_t size_ = (structure)->size;                                                    \
            __builtin_memset((structure), 0,                                                       \
                             size_ < sizeof *(structure) ? size_ : sizeof *(structure));           \
            (structure)->size = size_;                                                             \
        }                                                                                          \
    } while (0)

PK_API const char *pk_status_name(pk_status status)
{
    switch (status) {
#define PK_DISABLE_NAME_(code, value, text)                                                        \
    case code:                                                                                     \
        return #code;
        PK_STATUS_LIST(PK_DISABLE_NAME_)
#undef PK_DISABLE_NAME_
    }
    return "PK_E?";
}

PK_API const char *pk_status_text(pk_status status)
{
    switch (status) {
#define PK_DISABLE_TEXT_(code, value, text)                                                        \
    case code:                                                                                     \
        return text;
        PK_STATUS_LIST(PK_DISABLE_TEXT_)
#undef PK_DISABLE_TEXT_
    }
    return "unknown status";
}

PK_API const char *pk_error_message(void)
{
    return "";
}

PK_API const char *pk_version(void)
{
    return "disabled";
}
#endif

#ifdef PK_DISABLE_SESSION_
#undef PK_DISABLE_SESSION_
PK_API pk_status pk_start(const pk_options *options)
{
    return PK_OK;
}

PK_API pk_status pk_flush(void)
{
    return PK_OK;
}

PK_API pk_status pk_capture(const char *reason, uint32_t steps)
{
    (void)reason, (void)steps;
    return PK_OK;
}

PK_API pk_status pk_stop(void)
{
    return PK_OK;
}

PK_API pk_status(pk_get_counts)(pk_counts *counts)
{
    PK_DISABLE_ZERO_(counts);
    return PK_OK;
}

PK_API pk_status(pk_backend_status)(const char *name, pk_backend_info *info)
{
    PK_DISABLE_ZERO_(info);
    if (info && info->size >= sizeof *info)
        __builtin_memcpy(info->reason, PK_DISABLE_REASON_, sizeof PK_DISABLE_REASON_);
    return PK_OK;
}

PK_API void pk_thread_set_name(const char *name) {}
#endif

#ifdef PK_DISABLE_REGION_
#undef PK_DISABLE_REGION_
/* No variable: clang would give others other registers. */
#define PK_REGION_SCOPE_AT_(region, scope) (void)&(region)

PK_API void pk_region_begin(pk_region *region) {}
PK_API void pk_region_end(pk_region *region) {}
PK_API void pk_region_next(pk_region *from, pk_region *to) {}
PK_API void pk_region_add(pk_region *region, uint64_t bytes, uint64_t flops) {}
PK_API void pk_region_note(pk_region *region, pk_region *key, int64_t value) {}
PK_API void pk_region_note_text(pk_region *region, pk_region *key, const char *text) {}
PK_API void pk_region_mark(pk_region *region) {}

PK_API pk_region *pk_region_named(const char *name)
{
    static pk_region none = {"(disabled)", PK_OTHER, 0, "", 0, 0, {0, 0, 0, 0}};
    return &none;
}

PK_API pk_region *pk_region_named_of(pk_kind kind, const char *name)
{
    return pk_region_named(name);
}

PK_API void pk_region_set_limit(pk_region *region, double seconds) {}

PK_API pk_region *pk_region_variant(pk_region *region, const char *key, int64_t value)
{
    return pk_region_named(key);
}
#endif

#ifdef PK_DISABLE_STEP_
#undef PK_DISABLE_STEP_
PK_API void pk_step(uint64_t items) {}
PK_API void pk_step_begin(void) {}
PK_API void pk_step_kind(const char *kind) {}
PK_API void pk_step_add_flops(double model, double hardware) {}
PK_API double pk_transformer_flops(uint64_t n, uint64_t l, uint64_t h, uint64_t q, uint64_t t)
{
    return 0;
}
#endif

#ifdef PK_DISABLE_GOODPUT_
#undef PK_DISABLE_GOODPUT_
PK_API void pk_phase_begin(pk_phase phase) {}
PK_API void pk_phase_end(pk_phase phase) {}
PK_API void pk_checkpoint_done(uint64_t step, uint64_t bytes) {}
PK_API void pk_training_set_step(uint64_t step) {}
#endif

#ifdef PK_DISABLE_SPAN_
#undef PK_DISABLE_SPAN_
PK_API pk_span pk_span_begin(pk_region *region, uint64_t id)
{
    pk_span none;
    __builtin_memset(&none, 0, sizeof none);
    return none;
}

PK_API void pk_span_mark(pk_span *span, pk_region *region) {}
PK_API void pk_span_end(pk_span *span) {}
PK_API pk_status(pk_get_span_counts)(pk_span_counts *counts)
{
    PK_DISABLE_ZERO_(counts);
    return PK_OK;
}
#endif

#ifdef PK_DISABLE_REQUEST_
#undef PK_DISABLE_REQUEST_
PK_API pk_request pk_request_begin(pk_region *region, uint64_t id)
{
    pk_request none;
    __builtin_memset(&none, 0, sizeof none);
    return none;
}

PK_API void pk_request_schedule(pk_request *request) {}
PK_API void pk_request_prefill(pk_request *request, uint64_t tokens) {}
PK_API void pk_request_tokens(pk_request *request, uint64_t count) {}
PK_API void pk_request_preempt(pk_request *request) {}
PK_API void pk_request_end(pk_request *request, pk_request_outcome outcome) {}
PK_API void pk_request_set_limits(double ttft_seconds, double tpot_seconds) {}
PK_API pk_status(pk_get_request_counts)(pk_request_counts *counts)
{
    PK_DISABLE_ZERO_(counts);
    return PK_OK;
}
#endif

#ifdef PK_DISABLE_COUNTER_
#undef PK_DISABLE_COUNTER_
PK_API void pk_counter_set(pk_counter *counter, double value) {}

PK_API pk_counter *pk_counter_named(const char *name, const char *unit)
{
    static pk_counter none = PK_COUNTER("(disabled)", "");
    return &none;
}
#endif

#ifdef PK_DISABLE_STATS_
#undef PK_DISABLE_STATS_
PK_API pk_status(pk_region_stats)(const pk_region *region, pk_stats *stats)
{
    PK_DISABLE_ZERO_(stats);
    return PK_OK;
}

PK_API pk_status(pk_step_stats)(pk_stats *stats)
{
    PK_DISABLE_ZERO_(stats);
    return PK_OK;
}

PK_API uint64_t pk_stats_quantile(const pk_stats *stats, double q)
{
    return 0;
}

PK_API pk_status pk_region_quantile(const pk_region *region, double q, uint64_t *ns)
{
    if (ns)
        *ns = 0;
    return PK_OK;
}
#endif

#ifdef PK_DISABLE_GPU_
#undef PK_DISABLE_GPU_
#define PK_GPU_SCOPE_AT_(region, stream, scope) ((void)&(region), (void)(stream))

PK_API void(pk_gpu_begin)(pk_region *region, void *stream) {}
PK_API void(pk_gpu_end)(pk_region *region, void *stream) {}
PK_API void(pk_gpu_graph_launching)(void *exec, void *graph, void *stream) {}

PK_API pk_status(pk_region_gpu_stats)(const pk_region *region, pk_stats *stats)
{
    PK_DISABLE_ZERO_(stats);
    return PK_OK;
}

PK_API pk_status(pk_get_gpu_counts)(pk_gpu_counts *counts)
{
    PK_DISABLE_ZERO_(counts);
    return PK_OK;
}
#endif

#ifdef PK_DISABLE_COMM_
#undef PK_DISABLE_COMM_
PK_API pk_comm *pk_comm_create(const char *library, const char *name, uint64_t id, int32_t rank,
                               int32_t size)
{
    static char none;
    void *address = &none;
    pk_comm *comm;
    __builtin_memcpy(&comm, &address, sizeof comm);
    return comm;
}
PK_API void pk_comm_set_peers(pk_comm *comm, const int32_t *ranks, int32_t count) {}
PK_API void pk_comm_destroy(pk_comm *comm) {}
PK_API void pk_comm_call(pk_region *region, pk_comm *comm, pk_comm_op op, pk_comm_type type,
                         uint64_t count, int32_t peer)
{
}
PK_API void pk_comm_set_tag(pk_region *region, int32_t tag) {}

PK_API pk_comm_request pk_comm_start(pk_comm *comm, pk_comm_op op, pk_comm_type type,
                                     uint64_t count, int32_t peer)
{
    pk_comm_request none;
    __builtin_memset(&none, 0, sizeof none);
    return none;
}

PK_API void pk_comm_correct(pk_comm_request *request, uint64_t bytes, int32_t peer) {}
PK_API void pk_comm_set_request_tag(pk_comm_request *request, int32_t tag) {}
PK_API void pk_comm_finish(pk_comm_request *request, uint64_t waited_ns) {}
#endif

#ifdef PK_DISABLE_NCCL_
#undef PK_DISABLE_NCCL_
PK_API void pk_nccl_begin(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                          int32_t peer, void *stream)
{
}
PK_API void pk_nccl_end(pk_comm *comm, void *stream, int32_t result) {}
PK_API void pk_nccl_group_start(void) {}
PK_API void pk_nccl_group_launch(void) {}
PK_API void pk_nccl_group_end(int32_t result) {}
PK_API void pk_nccl_async(pk_comm *comm, int32_t state) {}
PK_API void pk_nccl_abort(pk_comm *comm) {}
#endif

#pragma GCC diagnostic pop

#endif
