#include "collectives.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

nccl_functions nccl;
one_gpu gpus[GPUS_MOST];
int ranks;

static void bind(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    if (!address)
        gpu_skip("NCCL has no %s", name);
    memcpy(function, &address, sizeof address);
}

void nccl_open(void)
{
    const char *named = getenv("PK_NCCL_LIBRARY");
    void *library = dlopen(named && *named ? named : "libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        gpu_skip("there is no libnccl.so.2 (PK_NCCL_LIBRARY names one)");
    bind(library, "ncclCommInitAll", &nccl.init_all);
    bind(library, "ncclCommDestroy", &nccl.destroy);
    bind(library, "ncclGroupStart", &nccl.group_start);
    bind(library, "ncclGroupEnd", &nccl.group_end);
    bind(library, "ncclSend", &nccl.send);
    bind(library, "ncclRecv", &nccl.receive);
    bind(library, "ncclAllReduce", &nccl.all_reduce);
}

void nccl_must(int result, const char *what)
{
    if (!gpu_check(result == 0, "%s: NCCL's error %d", what, result))
        exit(gpu_result());
}

void nccl_make(int devices, size_t bytes)
{
    communicator comms[GPUS_MOST];
    int list[GPUS_MOST];
    ranks = devices < GPUS_MOST ? devices : GPUS_MOST;
    for (int i = 0; i < ranks; i++) {
        list[i] = i;
        must(cu.cuda_retain(&gpus[i].context, i));
        must(cu.cuda_set_current(gpus[i].context));
        must(cu.cuda_stream_create(&gpus[i].stream, CUDA_NON_BLOCKING));
        must(cu.cuda_memory(&gpus[i].from, bytes));
        must(cu.cuda_memory(&gpus[i].to, bytes));
    }
    nccl_must(nccl.init_all(comms, ranks, list), "ncclCommInitAll");
    for (int i = 0; i < ranks; i++) {
        gpus[i].nccl = comms[i];
        gpus[i].comm = pk_comm_create("NCCL", "all GPUs", 0, i, ranks);
    }
}

void nccl_destroy(void)
{
    for (int i = 0; i < ranks; i++) {
        nccl_must(nccl.destroy(gpus[i].nccl), "ncclCommDestroy");
        pk_comm_destroy(gpus[i].comm);
    }
}

void nccl_synchronize(void)
{
    for (int i = 0; i < ranks; i++) {
        must(cu.cuda_set_current(gpus[i].context));
        must(cu.cuda_stream_synchronize(gpus[i].stream));
    }
}

void nccl_group_begins(void)
{
    pk_nccl_group_start();
    nccl_must(nccl.group_start(), "ncclGroupStart");
}

void nccl_group_ends(void)
{
    pk_nccl_group_launch();
    int result = nccl.group_end();
    pk_nccl_group_end(result);
    nccl_must(result, "ncclGroupEnd");
}
