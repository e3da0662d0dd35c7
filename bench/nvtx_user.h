/* bench/nvtx_user.h - a library that uses NVTX; loaded twice, each copy finds its own listener, or
 * none. */
#ifndef BENCH_NVTX_USER_H
#define BENCH_NVTX_USER_H

#include <stdint.h>

typedef struct bench_nvtx_user {
    void (*first_call)(void); /* looks for a listener */
    void (*text)(uint64_t n); /* n pairs of push and pop */
    void (*domain)(uint64_t n);
    void (*registered)(uint64_t n);
    void (*category)(uint64_t n);
    void (*payload)(uint64_t n);
    void (*schema)(uint64_t n);
    void (*changing)(uint64_t n);
    void (*ids)(uint64_t n); /* start and end */
    void (*mark)(uint64_t n);
} bench_nvtx_user;

#define BENCH_NVTX_USER "bench_nvtx"

#endif
