/* lib/session/costs/gpu_load.h - what devices were busy with, of backends (measure/device/load.h).
 */
#pragma once

#include <stdint.h>

#include "measure/rows.h"

/* Something that a device said of itself: into the report, and on a track of the device into the
 * trace. what: "xid", "clocks", "rows"; from == to: a moment. Under the drain lock. */
void pki_gpu_event(uint32_t device, const char *what, uint64_t number, const char *text,
                   uint64_t from, uint64_t to);

/* A device's means from one moment to another, ns since the session started; NAN: not known. Under
 * the drain lock. */
void pki_gpu_load_read(uint32_t device, uint64_t from, uint64_t to, const double values[PKI_LOADS]);
