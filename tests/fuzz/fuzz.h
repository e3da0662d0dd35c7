/* fuzz.h - targets: anything that anybody may give us, as bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct fuzz_target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} fuzz_target;

extern const fuzz_target fuzz_targets[]; /* up to one without a name */

/* libFuzzer has a main of its own, which calls one function. */
#ifdef FUZZ_TARGET
static int FUZZ_TARGET(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return FUZZ_TARGET(data, size);
}
#endif
