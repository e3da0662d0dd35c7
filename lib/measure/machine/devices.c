#include "measure/machine/devices.h"

#include <string.h>

#include "base/compiler.h"

#define T 1e12
#define GB 1e9

#define H100 "NVIDIA H100 Tensor Core GPU data sheet"
#define H200 "NVIDIA H200 Tensor Core GPU data sheet"
#define A100 "NVIDIA A100 Tensor Core GPU data sheet"
#define V100 "NVIDIA V100 Tensor Core GPU data sheet"

/* Where a data sheet gives tensor rates with sparsity alone, half of them stands here. A comment is
 * not what a reader of a report sees, so `source` is. */
const pki_device_limits pki_devices[] = {
    /* name, source, bandwidth, fp64, fp64 tensor, fp32, tf32, bf16, fp16, fp8 */
    {"NVIDIA H200", H200, 4800 * GB, 34 * T, 67 * T, 67 * T, 494.5 * T, 989.5 * T, 989.5 * T,
     1979 * T},
    {"NVIDIA H100 80GB HBM3", H100, 3350 * GB, 34 * T, 67 * T, 67 * T, 494.5 * T, 989.5 * T,
     989.5 * T, 1979 * T},
    {"NVIDIA H100 PCIe", H100, 2000 * GB, 26 * T, 51 * T, 51 * T, 378 * T, 756.5 * T, 756.5 * T,
     1513 * T},
    {"NVIDIA A100-SXM4-40GB", A100, 1555 * GB, 9.7 * T, 19.5 * T, 19.5 * T, 156 * T, 312 * T,
     312 * T, 0},
    {"NVIDIA A100-SXM4-80GB", A100, 2039 * GB, 9.7 * T, 19.5 * T, 19.5 * T, 156 * T, 312 * T,
     312 * T, 0},
    {"NVIDIA A100-PCIE-40GB", A100, 1555 * GB, 9.7 * T, 19.5 * T, 19.5 * T, 156 * T, 312 * T,
     312 * T, 0},
    {"NVIDIA A100 80GB PCIe", A100, 1935 * GB, 9.7 * T, 19.5 * T, 19.5 * T, 156 * T, 312 * T,
     312 * T, 0},
    {"NVIDIA A30", "NVIDIA A30 Tensor Core GPU data sheet", 933 * GB, 5.2 * T, 10.3 * T, 10.3 * T,
     82 * T, 165 * T, 165 * T, 0},
    {"NVIDIA A10", "NVIDIA A10 Tensor Core GPU data sheet", 600 * GB, 0, 0, 31.2 * T, 62.5 * T,
     125 * T, 125 * T, 0},
    {"NVIDIA A40", "NVIDIA A40 data sheet", 696 * GB, 0, 0, 37.4 * T, 74.8 * T, 149.7 * T,
     149.7 * T, 0},
    {"NVIDIA L4", "NVIDIA L4 Tensor Core GPU data sheet", 300 * GB, 0, 0, 30.3 * T, 60 * T, 121 * T,
     121 * T, 242.5 * T},
    {"NVIDIA L40", "NVIDIA L40 data sheet", 864 * GB, 0, 0, 90.5 * T, 90.5 * T, 181 * T, 181 * T,
     362 * T},
    {"NVIDIA L40S", "NVIDIA L40S data sheet", 864 * GB, 0, 0, 91.6 * T, 183 * T, 362 * T, 362 * T,
     733 * T},
    {"Tesla V100-SXM2-16GB", V100, 900 * GB, 7.8 * T, 0, 15.7 * T, 0, 0, 125 * T, 0},
    {"Tesla V100-SXM2-32GB", V100, 900 * GB, 7.8 * T, 0, 15.7 * T, 0, 0, 125 * T, 0},
    {"Tesla V100-PCIE-16GB", V100, 900 * GB, 7 * T, 0, 14 * T, 0, 0, 112 * T, 0},
    {"Tesla V100-PCIE-32GB", V100, 900 * GB, 7 * T, 0, 14 * T, 0, 0, 112 * T, 0},
    {"Tesla T4", "NVIDIA T4 Tensor Core GPU data sheet", 320 * GB, 0, 0, 8.1 * T, 0, 0, 65 * T, 0},
};
const size_t pki_device_count = PKI_COUNT_OF(pki_devices);

const pki_device_limits *pki_device_find(const char *name)
{
    for (size_t i = 0; i < pki_device_count; i++)
        if (strcmp(pki_devices[i].name, name) == 0)
            return &pki_devices[i];
    return NULL;
}
