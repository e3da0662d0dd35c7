/* module.h - what each module of this folder has: n regions, one after the other. */
#ifndef BENCH_FFI_MODULE_H
#define BENCH_FFI_MODULE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C"
#endif
    void
    ffi_pairs(uint64_t n);

#endif
