/* lib/measure/memory/rows.h - a run's memory in numbers: part of a pki_summary. Bytes, and per step
 * means per step of whatever kind. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/memory/growth.h"
#include "stats/buckets.h"

/* What libpk_alloc counted of a region's own: what was asked for while it was the innermost one. */
typedef struct pki_memory_region {
    char *name;                                /* "": no region was open */
    uint64_t allocations, bytes, frees, freed; /* in the session */
    uint64_t live;                             /* at its end, of whatever age */
    uint64_t peak, at_peak;                    /* the most; and when all regions' was at its most */
    double steady; /* allocations in a step of the run's later half or more */
    pki_growth growth;
} pki_memory_region;

/* What the kernel says of the process, of the run so far or, but for the extremes, a part of it. */
typedef struct pki_memory_sum {
    uint64_t looks; /* first: 0 leaves it out of a line of windows */
    uint64_t resident, most_resident, most_private; /* at the end; the most so far */
    uint64_t minor_faults, major_faults;
} pki_memory_sum;

typedef struct pki_memory_summary {
    uint64_t looks;                   /* first: 0 leaves it out of the report file */
    uint64_t resident, most_resident; /* at the end; the most since the program's start */
    uint64_t most_private; /* that is no file's and shared with nobody, as far as was seen */
    uint64_t minor_faults, major_faults;
    double steady_minor, steady_major;              /* in a step of the later half or more */
    pki_dist step_resident, step_minor, step_major; /* by steps */
    size_t series_count;
    struct pki_counter_point *series; /* resident, by time; as a counter's (measure/summary.h) */
    pki_growth growth;                /* of private memory */
    uint64_t limit, used; /* the nearest limit and the most against it; limit 0: there is none */
    char *limit_of;       /* whose: "cgroup", "RLIMIT_AS" */
    char *allocator;      /* beneath libpk_alloc; "": that is not there, or counts nothing... */
    char *uncounted;      /* ...for this reason */
    uint64_t live, peak, within; /* bytes allocated: at the end, at most; and how exact peaks are */
    uint64_t steady_steps;       /* of `steady` */
    size_t region_count;
    pki_memory_region *regions; /* by bytes at the peak, most first */
} pki_memory_summary;

/* What CUDA has allocated, as CUPTI records it: a kind of memory on a place. */
typedef struct pki_gpu_memory_kind {
    char *kind; /* "device", "pool", "array", "managed", "static", "pinned" */
    uint64_t allocations, bytes, frees, freed, live, peak, at_peak;
} pki_gpu_memory_kind;

/* A memory pool: what it has reserved of the device, and how much of that was in use. */
typedef struct pki_gpu_pool_row {
    uint64_t pool; /* a number on its device, from 0, as they were seen */
    bool gone;     /* it was destroyed */
    uint64_t reserved, used, most_reserved, used_then; /* at the end; when most was reserved */
    double unused;                                     /* 1 - used_then / most_reserved */
} pki_gpu_pool_row;

/* A device's, or what is pinned of the host's. Of pools: what they have reserved of the device, at
 * the end and at most; and how much of that was in use then. */
typedef struct pki_gpu_memory_place {
    char *place;    /* "gpu0"; "host" */
    uint64_t total; /* bytes of the device; 0: unknown */
    uint64_t allocations, bytes, frees, freed, live, peak, peak_ns;
    uint64_t held, most_held; /* of the device: pools count with all that they have reserved */
    uint64_t in_use;          /* the most that NVML saw in use, by all processes; 0: unknown */
    uint64_t pool_reserved, pool_used, most_reserved, used_then;
    double unused; /* 1 - used_then / most_reserved */
    double steady; /* allocations of its own, not of a pool, in a step of the later half */
    pki_growth growth;
    size_t kind_count;
    pki_gpu_memory_kind *kinds;
    size_t region_count;
    pki_memory_region *regions; /* by bytes at the peak, most first */
    size_t pool_count;
    pki_gpu_pool_row *pools; /* by number */
} pki_gpu_memory_place;

typedef struct pki_gpu_memory_summary {
    uint64_t asked;                        /* first: 0 leaves it out of the report file */
    char *why_not;                         /* "": it was recorded */
    uint64_t operations;                   /* allocations and frees that were recorded */
    uint64_t unknown_frees, unknown_freed; /* of what was allocated before, and bytes */
    uint64_t missed_frees;                 /* an address was allocated anew and never freed */
    uint64_t untied;                       /* region unknown: these count outside */
    uint64_t dropped, lost; /* by CUPTI, of whatever kind; without a time, or memory for it */
    uint64_t steady_steps;  /* of `steady` */
    uint64_t pools_beyond;  /* records of pools that there was no row for */
    size_t place_count;
    pki_gpu_memory_place *places;
} pki_gpu_memory_summary;

/* A place, in a part of the run: what can be added up. */
typedef struct pki_gpu_memory_sum {
    char *place;
    uint64_t allocations, bytes, frees, freed;     /* in the part */
    uint64_t live, held, pool_reserved, pool_used; /* at its end */
    uint64_t peak, most_held, most_reserved;       /* the most in the part */
    uint64_t peak_ns, used_then; /* since the session's start; of what was reserved then */
    uint64_t peak_so_far;        /* of the run: not in the file */
} pki_gpu_memory_sum;

typedef struct pki_gpu_memory_sums {
    uint64_t asked; /* first: 0 leaves it out of a line of windows */
    char *why_not;
    uint64_t operations, dropped, lost;
    size_t place_count;
    pki_gpu_memory_sum *places;
} pki_gpu_memory_sums;
