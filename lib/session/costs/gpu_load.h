/* lib/session/costs/gpu_load.h - what devices were busy with, of backends (measure/device/load.h).
 */
#pragma once

#include <stdint.h>

#include "measure/rows.h"

/* A device's means from one moment to another, ns since the session started; NAN: not known. Under
 * the drain lock. */
void pki_gpu_load_read(uint32_t device, uint64_t from, uint64_t to, const double values[PKI_LOADS]);
