/* streams DOUBLE TRACE [SHIM] - a trace with spans on two GPU streams (the mock of the driver) and
 * with NCCL's collectives (its role played), for those that read them. */
#include <pk/gpu.h>

#include "../../fake/driver.h"
#include "../../nccl/role.h"

enum { STEPS = 25 };

static pk_region load = PK_REGION_OF(PK_DATA, "load");
static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region attention = PK_REGION_OF(PK_COMPUTE, "attention");
static pk_region reduce = PK_REGION_OF(PK_COMM, "reduce gradients");
static pk_counter loss = PK_COUNTER("loss", "nats");
static const fake_cuda_script *gpu;

static void open_gpu(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    must(library);
    gpu = dlsym(library, FAKE_CUDA_SCRIPT);
    must(gpu && setenv("PK_CUDA_LIBRARY", path, 1) == 0);
    gpu->reset();
}

/* One span inside the other, and one on another stream beside them. */
static void compute(CUstream one, CUstream other)
{
    pk_region_begin(&forward);
    pk_gpu_begin(&forward, one);
    gpu->work(one);
    pk_gpu_begin(&attention, one);
    kit_sleep_us(50);
    gpu->work(one);
    pk_gpu_end(&attention, one);
    pk_gpu_begin(&load, other);
    kit_sleep_us(50);
    pk_gpu_end(&load, other);
    pk_gpu_end(&forward, one);
    pk_region_end(&forward);
}

/* A collective with the network's work for it, and a message. */
static void exchange(void *world)
{
    pk_region_begin(&reduce);
    void *all = collective(world, "AllReduce", 1000);
    void *op = begin(world, .type = PROXY_OP, .parent = all, .channels = 1, .peer = 0, .steps = 1,
                     .sends = 1);
    kit_sleep_us(100);
    end(op);
    task(world, NULL,
         (says){.type = P2P, .func = "Send", .element = float32, .count = 9, .peer = 0});
    pk_region_end(&reduce);
}

int main(int argc, char **argv)
{
    must(argc >= 3);
    open_gpu(argv[1]);
    CUcontext context = gpu->context_create(0);
    CUstream one = gpu->stream_create(context), other = gpu->stream_create(context);
    must(pk_start(
             pk_options(.trace_path = argv[2], .backends = "cuda,nccl", .rank = 1, .world_size = 2,
                        .tuning = kit_tuning("nvtx_shim=%s", argc > 3 ? argv[3] : ""))) == PK_OK);
    version = 5;
    open_plugin();
    void *world = make_comm("world", 0x1234, 1, 2);
    for (int i = 0; i < STEPS; i++) {
        {
            PK_REGION_SCOPE(load);
            kit_sleep_us(100);
        }
        compute(one, other);
        exchange(world);
        pk_counter_set(&loss, 1.0 / (1 + i));
        pk_step(8);
    }
    plugin->finalize(world);
    return pk_stop() == PK_OK ? 0 : 1;
}
