/* lib/backend/nvml/visible.h - which devices of NVML are the process's, and as which CUDA ordinals.
 *
 * NVML counts the machine's devices by PCI address, CUDA those that CUDA_VISIBLE_DEVICES names, in
 * its order. The list is read as CUDA reads it: indices, or beginnings of UUIDs; the first entry
 * that means nothing ends it. Indices are PCI order if CUDA_DEVICE_ORDER=PCI_BUS_ID or if all
 * devices are of one model; else CUDA puts the fastest first, which is its secret, and `doubtful`
 * says so.
 *
 * Ranks that a launcher put on one node share the work if each of them sees all devices: of n ranks
 * the i-th takes those with ordinal i, i + n, ...
 */
#pragma once

#include <stdint.h>

#include "backend/nvml/api.h"

#define PKI_NVML_DEVICES 16

typedef struct pki_nvml_visible {
    struct {
        pki_nvml_handle handle;
        unsigned ordinal; /* CUDA's */
        bool is_slice;    /* a MIG device: memory is all that NVML has of it */
    } devices[PKI_NVML_DEVICES];
    unsigned count;   /* of those that are this process's to read */
    unsigned seen;    /* by CUDA, those of other ranks among them */
    unsigned machine; /* that this process may open */
    bool doubtful;    /* ordinals may be others in CUDA */
} pki_nvml_visible;

/* What the environment and the launcher say; tests say something else. */
typedef struct pki_nvml_wish {
    const char *list;                /* of CUDA_VISIBLE_DEVICES; NULL: all */
    const char *order;               /* of CUDA_DEVICE_ORDER; NULL: not set */
    unsigned local_rank, local_size; /* 0 and 0: not known */
    bool energy;                     /* the counter of it is read, too */
} pki_nvml_wish;

/* NVML's code if the devices cannot even be counted. */
int pki_nvml_find(const pki_nvml *nvml, const pki_nvml_wish *wish, pki_nvml_visible *out);
