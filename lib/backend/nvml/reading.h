/* lib/backend/nvml/reading.h - what is read from a device, one call of NVML each; and which
 * devices are the process's */
#pragma once

#include <stdint.h>

#include "backend/nvml/api.h"
#include "measure/device/load.h"

#define PKI_GPM_METRICS PKI_LOADS /* in the order of pki_load_metrics */
#define PKI_NVML_READINGS 10
#define PKI_NVML_VALUES PKI_GPM_METRICS /* of one reading, at most */

/* What a device was busy with, by NVML's GPM: Hopper and later, without
 * CUPTI and without a privilege.
 *
 * A device counts all the time; a sample is a copy of its counts, and two of them say what was in
 * between. So reading k gives the means of the time since reading k - 1, and the first one gives
 * none. The device renews its counts every 100 ms: a sample may be as old as that.
 */
typedef struct pki_nvml_gpm {
    pki_nvml_sample_handle samples[2];
    unsigned next; /* which one the next sample goes to */
    bool asked, begun;
    uint64_t at;                /* CLOCK_MONOTONIC, ns, of the last sample */
    uint64_t since;             /* of the one before, which the values begin with */
    uint64_t impossible;        /* values that cannot be, left out */
    int codes[PKI_GPM_METRICS]; /* what NVML last said of each metric */
} pki_nvml_gpm;

/* A device, and what its readings keep from one to the next. */
typedef struct pki_nvml_source {
    pki_nvml_handle handle;
    pki_nvml_gpm gpm;
} pki_nvml_source;

typedef struct pki_nvml_reading {
    const char *function; /* NVML's name of the call, for messages */
    const char *title;    /* of all its values; NULL: the first one's name */
    unsigned period_ms;   /* 0: 100 */
    struct {
        const char *name, *unit; /* of the counter gpuN.NAME; NULL: no such value */
    } values[PKI_NVML_VALUES];
    /* A value that is NAN is not known. */
    int (*read)(const pki_nvml *nvml, pki_nvml_source *device, double *values);
} pki_nvml_reading;

extern const pki_nvml_reading pki_nvml_readings[PKI_NVML_READINGS];

/* The one whose value is the bits of enum pki_nvml_reason. */
#define PKI_NVML_READING_REASONS 6

/* The one that is made of two samples: its values are those of the time between. */
#define PKI_NVML_READING_GPM 7

/* Rows of memory that were replaced; the second value is what of PKI_NVML_ROWS_... is so. */
#define PKI_NVML_READING_ROWS 8
enum { PKI_NVML_ROWS_PENDING = 1, PKI_NVML_ROWS_FAILED = 2 };

/* Only on request (pki_nvml_wish.energy): J since the driver was loaded. */
#define PKI_NVML_READING_ENERGY 9

/* No reading: an XID that the device has told. */
#define PKI_NVML_XID PKI_NVML_READINGS

/* Those bits that mean that something holds the clocks down against the program's wish. */
#define PKI_NVML_HELD_DOWN                                                                         \
    (PKI_NVML_POWER_CAP | PKI_NVML_HW_SLOWDOWN | PKI_NVML_SYNC_BOOST | PKI_NVML_SW_THERMAL |       \
     PKI_NVML_HW_THERMAL | PKI_NVML_POWER_BRAKE)

/* One of them in words; NULL for other bits. */
const char *pki_nvml_reason_text(uint64_t bit);

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
