/* fuzz.h - targets: anything that anybody may give us, as bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct fuzz_target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} fuzz_target;

extern const fuzz_target fuzz_targets[]; /* up to one without a name */
