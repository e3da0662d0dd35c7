/* lib/backend/nvml/sampler.h - a thread that reads the devices through NVML, and what it has read
 */
#pragma once

#include <pk/counter.h>
#include <pk/session.h>

#include <stddef.h>
#include <stdint.h>

#include "backend/nvml/api.h"
#include "backend/nvml/reading.h"

/* ---- which devices of NVML are the process's, and as which CUDA ordinals ---- */

/* NVML counts the machine's devices by PCI address, CUDA those that CUDA_VISIBLE_DEVICES names, in
 * its order. The list is read as CUDA reads it: indices, or beginnings of UUIDs; the first entry
 * that means nothing ends it. Indices are PCI order if CUDA_DEVICE_ORDER=PCI_BUS_ID or if all
 * devices are of one model; else CUDA puts the fastest first, which is its secret, and `doubtful`
 * says so.
 *
 * Ranks that a launcher put on one node share the work if each of them sees all devices: of n ranks
 * the i-th takes those with ordinal i, i + n, ... */

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

/* ---- a thread that reads the devices, and what it has read ---- */

/* Each reading of each device has a period of its own: 100 ms (GPM 200 ms), or a hundred times what
 * the call took, whichever is longer; a single slow call no more than doubles it. A reading that
 * fails is tried again more and more rarely, and given up where NVML says that it will never work,
 * or after eight failures in a row.
 *
 * All functions but the thread's own are called under the session's drain lock, in halt, or by a
 * probe. */

typedef struct pki_nvml_sample {
    pk_counter *counter; /* NULL: it is an event */
    double value;
    uint64_t when;            /* CLOCK_MONOTONIC, ns */
    unsigned device, ordinal; /* of this process's list; of CUDA */
    uint32_t reasons; /* pki_nvml_reason bits, PKI_NVML_ROWS_..., of the readings with them */
    unsigned reading, index; /* which one of pki_nvml_readings, and of its values */
    uint64_t since;          /* of GPM's: they are of the time from there to `when` */
} pki_nvml_sample;

/* NULL, or why not: there is no thread to be had, or the last one has not come back from NVML. The
 * strings of the wish are copied. */
const char *pki_nvml_sampler_start(const pki_nvml *nvml, const pki_nvml_wish *wish);

/* What has been read since the last call; valid until the next one. */
const pki_nvml_sample *pki_nvml_sampler_drain(size_t *count);

/* What the thread has taken of the processors, ns, as of its last reading. */
uint64_t pki_nvml_sampler_cpu(void);

/* Waits for the thread, a second at most. */
void pki_nvml_sampler_stop(void);

/* What it does or did, in words; live if it samples any device, or did until it was stopped. */
void pki_nvml_sampler_describe(pk_backend_info *info);

void pki_nvml_sampler_after_fork(void);
