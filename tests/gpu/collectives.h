/* collectives.h - NCCL as far as the tests on a GPU use it: opened while the program runs, with one
 * communicator for each GPU of this process.
 */
#pragma once

#include <stddef.h>

#include <pk/pk.h>

#include "driver.h"

enum { GPUS_MOST = 16, FLOAT32 = 7, SUM = 0 };

typedef void *communicator;

typedef struct nccl_functions {
    int (*init_all)(communicator *comms, int devices, const int *list);
    int (*destroy)(communicator comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *, size_t, int, int, communicator, cuda_stream);
    int (*receive)(void *, size_t, int, int, communicator, cuda_stream);
    int (*all_reduce)(const void *, void *, size_t, int, int, communicator, cuda_stream);
} nccl_functions;

typedef struct one_gpu {
    cuda_context context;
    cuda_stream stream;
    cuda_memory from, to;
    communicator nccl;
    pk_comm *comm;
} one_gpu;

extern nccl_functions nccl;
extern one_gpu gpus[GPUS_MOST];
extern int ranks;

void nccl_open(void); /* skips the test if there is none */

/* Streams, memory and communicators; what fails there ends the program. */
void nccl_make(int devices, size_t bytes);
void nccl_destroy(void);
void nccl_synchronize(void);
void nccl_must(int result, const char *what);

/* A group, told to perfkit. */
void nccl_group_begins(void);
void nccl_group_ends(void);

static inline void *nccl_pointer(cuda_memory memory)
{
    return (void *)(uintptr_t)memory;
}
