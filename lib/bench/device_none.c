/* No device to time: builds without the CUDA driver's header. */
#include "bench/device.h"

const pki_bench_device *pki_bench_device_find(const char **why_not)
{
    *why_not = "no GPU is live: this perfkit has no backend that times streams";
    return NULL;
}
