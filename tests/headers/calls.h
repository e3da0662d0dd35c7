/* Functions with calls of perfkit's, and the same functions without: nothing.py compiles both and
 * compares. PK(...) is what the second has not. As it is, the C part; included by calls.cpp. */
/* clang-format off: it cannot know what PK(...) becomes. */
#include <stddef.h>
#include <stdint.h>

#ifdef WITH_CALLS
#include <pk/nccl.h>
#include <pk/pk.h>
#include <pk/request.h>
#define PK(...) __VA_ARGS__
#else
#define PK(...)
#endif

#ifdef __cplusplus
extern "C" {
#endif
int work(int n); /* may throw */
extern void *stream;
int regions(int n);
int scopes(int n);
int named(int n);
int whole(int n);
int loop(int n);
int figures(int n);
int gpu(int n);
int collectives(int n);
int program(int n);
#ifdef __cplusplus
}
#endif

PK(static pk_region outer = PK_REGION("outer");)
PK(static pk_region inner = PK_REGION_OF(PK_COMPUTE, "inner");)
PK(static pk_counter queue = PK_COUNTER("queue", "batches");)

int regions(int n)
{
    PK(pk_region_begin(&outer);)
    int a = work(n);
    PK(pk_region_add(&outer, (uint64_t)n, 0);)
    PK(pk_region_next(&outer, &inner);)
    int b = work(a);
    PK(pk_region_note(&inner, &inner, 1);)
    PK(pk_region_note_text(&inner, &inner, "text");)
    PK(pk_region_mark(&inner);)
    PK(pk_region_end(&inner);)
    return a + b;
}

int scopes(int n)
{
    PK(PK_REGION_SCOPE(outer);)
    int sum = 0;
    for (int i = 0; i < n; i++) {
        PK(PK_REGION_SCOPE_NAMED("turn");)
        if (work(i) < 0)
            return -1;
        {
            PK(PK_REGION_SCOPE(inner);)
            sum += work(i + 1);
        }
        {
            PK(PK_REGION_SCOPE_NAMED("third");)
            sum += work(i + 2);
        }
    }
    return sum;
}

int named(int n)
{
    PK(pk_region *region = pk_region_named("named");)
    PK(pk_region *io = pk_region_named_of(PK_IO, "io");)
    PK(pk_region *variant = pk_region_variant(region, "n", n);)
    PK(pk_region_begin(io);)
    {
        PK(PK_REGION_SCOPE(*variant);)
        n = work(n);
    }
    PK(pk_region_end(io);)
    PK(pk_thread_set_name("worker");)
    return n;
}

int whole(int n)
{
    PK(PK_FUNCTION();)
    if (n < 2)
        return work(n);
    return whole(n - 1) + work(n);
}

int loop(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        PK(PK_FUNCTION_OF(PK_DATA);)
        sum += work(i);
        PK(pk_counter_set(&queue, sum);)
        PK(pk_counter_set(pk_counter_named("dynamic", ""), i);)
        PK(pk_step(32);)
    }
    return sum;
}

int figures(int n)
{
    PK(pk_stats stats; pk_counts counts; pk_gpu_counts gpus; pk_backend_info info;)
    n = work(n);
    PK(pk_region_stats(&outer, &stats); n += (int)stats.count;)
    PK(uint64_t ns; pk_region_quantile(&outer, 0.99, &ns); n += (int)ns;)
    PK(pk_step_stats(&stats); n += (int)pk_stats_quantile(&stats, 0.99);)
    PK(pk_region_gpu_stats(&outer, &stats); n += (int)stats.max;)
    PK(pk_get_counts(&counts); n += (int)counts.dropped;)
    PK(pk_get_gpu_counts(&gpus); n += (int)gpus.lost;)
    PK(pk_backend_status("cuda", &info); n += (int)info.live;)
    return n;
}

int gpu(int n)
{
    PK(pk_gpu_begin(&outer, stream);)
    {
        PK(PK_GPU_SCOPE(inner, stream);)
        n = work(n);
    }
    PK(pk_gpu_end(&outer, stream);)
    PK(pk_gpu_graph_launching(stream, stream, stream);)
    return n;
}

int collectives(int n)
{
    PK(pk_comm *world = pk_comm_create("ring", "world", 0, 0, 2);)
    PK(pk_comm_op op = (pk_comm_op)0; pk_comm_type type = (pk_comm_type)9;)
    PK(pk_region_begin(&outer); pk_comm_call(&outer, world, op, type, 8, -1);
       pk_comm_set_tag(&outer, 3);)
    n = work(n);
    PK(pk_region_end(&outer);)
    n ^= 7; /* no two functions alike, or a compiler would make them one */
    PK(pk_comm_request request = pk_comm_start(world, op, type, 8, -1);)
    PK(pk_nccl_group_start(); pk_nccl_begin(world, op, type, 8, -1, stream);)
    n += work(n);
    PK(pk_nccl_end(world, stream, 0); pk_nccl_group_launch(); pk_nccl_group_end(0);
       pk_nccl_abort(world);)
    PK(pk_comm_correct(&request, 64, 1); pk_comm_set_request_tag(&request, 7);
       pk_comm_finish(&request, 5);)
    PK(pk_comm_set_peers(world, 0, 0); pk_comm_destroy(world);)
    return n;
}

int spans(int n)
{
    PK(pk_span span = pk_span_begin(&outer, (uint64_t)n);)
    n = work(n) ^ 5;
    PK(pk_span_mark(&span, &outer);)
    n += work(n);
    PK(pk_span_end(&span);)
    return n;
}

int requests(int n)
{
    PK(pk_request request = pk_request_begin(&outer, (uint64_t)n);)
    n = work(n) ^ 9;
    PK(pk_request_schedule(&request); pk_request_prefill(&request, 64);)
    n += work(n);
    PK(pk_request_tokens(&request, 1); pk_request_preempt(&request);)
    n ^= work(n);
    PK(pk_request_set_limits(1, 0.1); pk_request_end(&request, PK_REQUEST_FINISHED);)
    return n;
}

int program(int n)
{
    PK(if (pk_start(NULL)) return -1;)
    n = work(n);
    PK(if (pk_flush() != PK_OK) return -2;)
    PK(if (pk_stop() != PK_OK) return -3;)
    PK(n += pk_error_message()[0];)
    return n;
}
