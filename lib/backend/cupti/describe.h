/* lib/backend/cupti/describe.h - what the end of the trace says of devices and records.
 *
 * Threads: one at a time (the drain lock).
 */
#pragma once

#include "backend/cupti/records.h"

/* "deviceProperties", in the words of PyTorch's profiler. */
void pki_cupti_describe_devices(void);

/* "cupti": the library's version and the accounting of its records. */
void pki_cupti_describe_counts(const pki_cupti_counts *counts, uint64_t dropped, uint64_t refused);
