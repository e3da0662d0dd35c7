/* lib/measure/device/rows.h - what a report says of devices and their kernels: part of a
 * pki_summary.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/series.h"

#define PKI_GPU_SHORT_NS 10000u      /* a kernel below that is a short one */
#define PKI_GPU_LAUNCH_GAP_NS 50000u /* a gap up to that is one between launches */

/* What is known of a device in a step. Times in ns. */
enum pki_gpu_figure {
    PKI_GPU_STEP, /* the step's duration */
    PKI_GPU_BUSY, /* something ran on it, on whatever stream */
    PKI_GPU_IDLE, /* nothing did */
    PKI_GPU_GAPS, /* how many times; a gap across a step's end is one in each */
    PKI_GPU_LONGEST_GAP,
    PKI_GPU_COMM,         /* a collective was in flight on one of its streams... */
    PKI_GPU_COMM_HIDDEN,  /* ...and a stream without one computed meanwhile */
    PKI_GPU_COMM_EXPOSED, /* ...and none did */
    PKI_GPU_MEMORY,       /* bytes in use at the step's end */
    /* from here on only of steps that were measured */
    PKI_GPU_COPY,        /* something was copied */
    PKI_GPU_COPY_ALONE,  /* ...and no kernel ran meanwhile */
    PKI_GPU_SYNC,        /* a thread waited for it */
    PKI_GPU_SYNC_GAPS,   /* idle time of gaps that such a wait reaches into */
    PKI_GPU_LAUNCH_GAPS, /* idle time of other gaps, of those up to PKI_GPU_LAUNCH_GAP_NS */
    PKI_GPU_KERNELS,     /* that began in it */
    PKI_GPU_SHORT_KERNELS,
    PKI_GPU_H2D_TIME, /* copies that began in it, added up: host to device... */
    PKI_GPU_H2D_BYTES,
    PKI_GPU_D2H_TIME,
    PKI_GPU_D2H_BYTES,
    PKI_GPU_D2D_TIME, /* ...within the device... */
    PKI_GPU_D2D_BYTES,
    PKI_GPU_P2P_TIME, /* ...to another one */
    PKI_GPU_P2P_BYTES,
    PKI_GPU_FIGURES
};

/* "step", "busy", ...: their names in the report file */
extern const char *const pki_gpu_figures[PKI_GPU_FIGURES];

typedef struct pki_gpu_copies {
    uint64_t count, time, bytes;
} pki_gpu_copies;

enum { PKI_H2D, PKI_D2H, PKI_D2D, PKI_P2P, PKI_DIRECTIONS };

/* "h2d", "d2h", ... */
extern const char *const pki_direction_names[PKI_DIRECTIONS];

/* A device in some consecutive steps. Times are sums over them. */
typedef struct pki_gpu_series_row {
    uint64_t index, steps;
    uint64_t step, busy, gaps, longest_gap;
    uint64_t copy_alone, sync_gaps, launch_gaps, kernels; /* 0 if it was not measured */
    uint64_t comm_hidden, comm_exposed;                   /* 0 if that is not known */
} pki_gpu_series_row;

/* A device, over the whole run; `per_step` over the steady steps since its first use. */
typedef struct pki_gpu_row {
    uint32_t device;
    bool measured; /* per_step is made of kernels and copies; else of stream spans */
    uint64_t streams;
    uint64_t spans;
    uint64_t collectives; /* timed by events; those that CUPTI measures are kernels */
    uint64_t kernels, short_kernels, kernel_time; /* graphs are among the kernels */
    uint64_t memsets;
    pki_gpu_copies copies[PKI_DIRECTIONS];
    pki_dist per_step[PKI_GPU_FIGURES];
    size_t series_count;
    pki_gpu_series_row *series; /* all steps since its first use (measure/device/series.h) */
} pki_gpu_row;

/* A kernel by its name; the last row may be that of all names for which there was no room. */
typedef struct pki_kernel_row {
    char *name;
    char *region;        /* that launched most of its time; "": none was open */
    double region_share; /* how much of it */
    pki_dist time;
} pki_kernel_row;

#define PKI_OTHER_KERNELS "(other kernels)"
