/* lib/measure/device/state.h - what the device*.c files share. Nobody else includes it. */
#pragma once

#include "measure/device/device.h"
#include "measure/device/steps.h"
#include "measure/steps/steps.h"
#include "stats/tally.h"

/* How a device's time is known. */
enum { MEASURED, SPANS, VIEWS };

/* What an interval is: work is kernels, graphs and memsets; collectives that events time are spans.
 */
enum { ITEM_WORK = 1, ITEM_COPY = 2, ITEM_SPAN = 4, ITEM_SYNC = 8 };

typedef struct pki_device_item {
    uint64_t start, end, bytes;
    uint8_t kind; /* ITEM_... */
    uint8_t copy; /* pki_copy */
    uint8_t kernel;
    uint8_t comm; /* a collective, of whichever kind */
    uint32_t stream;
} pki_device_item;

/* One step, or the part of it that has been swept. */
typedef struct pki_device_sums {
    double of[PKI_GPU_FIGURES];
} pki_device_sums;

typedef struct pki_device_whole { /* a step of the head */
    bool in[VIEWS];
    pki_device_sums sums[VIEWS];
} pki_device_whole;

typedef struct pki_device_point {
    uint64_t ns;
    double value;
} pki_device_point;

typedef struct pki_device_one {
    uint32_t device;
    uint64_t first[VIEWS]; /* start of the first activity; UINT64_MAX: none */
    bool has_comm[VIEWS];  /* a collective */

    size_t item_first, item_end, item_room;
    pki_device_item *items;      /* first to end; those before have been swept */
    bool sorted;                 /* by start */
    uint64_t swept;              /* up to here */
    pki_device_sums part[VIEWS]; /* of the step that is going on */

    size_t point_count, point_room;
    pki_device_point *points; /* memory in use, by time */

    pki_device_whole *head; /* PKI_STEPS_HEAD */
    pki_tally tail[VIEWS][PKI_GPU_FIGURES];
    pki_series series[VIEWS]; /* all steps */

    size_t context_count;
    uint32_t contexts[16]; /* of the device, as far as there is room */
    pki_gpu_row totals;    /* what of it does not depend on steps */
    size_t track_count;
    uint32_t tracks[64]; /* of kernels, copies and spans, as far as there is room */
} pki_device_one;

typedef struct pki_device_launcher {
    uint32_t region;
    uint64_t ns;
} pki_device_launcher;

typedef struct pki_device_kernel {
    char *name;
    uint32_t hash;
    uint32_t launcher_count;
    pki_device_launcher launchers[16]; /* the regions that launched it first */
    pki_tally time;
} pki_device_kernel;

typedef struct pki_device_region {
    pki_tally spans, kernels; /* kernels: launched while it was the innermost open one */
} pki_device_region;

typedef struct pki_device_window {
    uint64_t start, end;
} pki_device_window;

typedef struct pki_device_step_window {
    uint64_t index, start, end;
    bool counts; /* it is one of the usual kind */
} pki_device_step_window;

#define PKI_DEVICE_STEPS 65536 /* wait at most */
#define PKI_DEVICE_MARKS 64    /* windows of measuring that are remembered */

struct pki_device {
    size_t items_most, item_count; /* over all devices */
    uint64_t expected_warmup;
    uint64_t finalised;
    bool alone;          /* nobody tells of devices (pki_device_await) */
    uint64_t step_count; /* swept, of those that count */
    uint64_t late, without_room;
    size_t step_first, step_used, step_room;
    pki_device_step_window *steps; /* a ring of those that wait */
    size_t mark_count;
    pki_device_window marks[PKI_DEVICE_MARKS]; /* end UINT64_MAX: still on */
    size_t count;
    pki_device_one *ones[PKI_DEVICES_MOST];

    size_t region_room;
    pki_device_region *regions; /* by id */
    size_t kernel_count;
    pki_device_kernel *kernels[2 * PKI_DEVICE_KERNELS]; /* by hash */
    pki_device_kernel other_kernels;
    uint64_t overhead_count, overhead;
};

/* Whether the figure has a value in this view, memory in use being known or not. */
static inline bool pki_device_has_figure(int view, int figure, double memory)
{
    if (figure == PKI_GPU_MEMORY)
        return memory >= 0;
    return view == MEASURED || figure < PKI_GPU_MEMORY;
}

/* device/steps.c: sums up what the items say about [from, to) in this view, and adds it. Sorted. */
