/* fake/device.h - what the mock of a device tells the mock of CUPTI, if that is loaded. */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum fake_wait { FAKE_WAIT_STREAM, FAKE_WAIT_CONTEXT, FAKE_WAIT_QUERY } fake_wait;

bool fake_has_fault(const char *name); /* FAKE_DEVICE_FAULT */
void fake_tell_begin(void);
/* It begins so many ns from now. */
void fake_tell_kernel(const char *name, uint64_t from_now, uint64_t ns);
void fake_tell_wait(fake_wait kind, CUresult answer);
void fake_tell_memory(uint64_t address, size_t bytes, bool frees, bool pinned);
/* The same of the device's pool; trim: it keeps so many bytes. */
void fake_tell_pool(uint64_t address, size_t bytes, bool frees);
void fake_tell_trim(size_t keeps);
