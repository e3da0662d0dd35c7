/* lib/measure/memory/gpu.h - what CUDA allocates and frees: how much lives */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/rows.h"

/* ---- what is allocated on devices, by address ---- */

/* Addresses are unique in a process: devices' memory, the host's and handles of arrays share one
 * address space. All zero is an empty table. Not for two threads at once. */

typedef struct pki_block {
    uint64_t address; /* 0: a free place */
    uint64_t bytes, ns;
    uint32_t region;
    uint8_t place, kind;
} pki_block;

typedef struct pki_blocks {
    size_t count, room; /* room: 0 or a power of two */
    pki_block *all;
} pki_blocks;

/* ---- what CUDA allocates and frees, operation by operation ---- */

/* How much lives on each device, of which kind, and which regions asked for it.
 *
 * Operations come in the order of their times, as far as that is known. One that comes too late
 * finds its place as well: a free whose allocation follows, an allocation whose address is in use
 * again. What was allocated before anybody looked is unknown: its free is counted apart, and no
 * figure falls below 0.
 *
 * Places are devices, by ordinal, and the host, which has what is pinned. Not for two threads at
 * once. */

#define PKI_GPU_DEVICES 16u /* by ordinal; the last one has those beyond, too */
#define PKI_GPU_HOST PKI_GPU_DEVICES
#define PKI_GPU_PLACES (PKI_GPU_DEVICES + 1)
#define PKI_GPU_POOLS 64u /* at once; what is beyond them is not known, and counted */
#define PKI_GPU_LATE 64u  /* frees without an allocation that are kept for one that comes late */

typedef enum pki_gpu_kind {
    PKI_GPU_DEVICE,
    PKI_GPU_POOL, /* of a memory pool, in the order of a stream */
    PKI_GPU_ARRAY,
    PKI_GPU_MANAGED, /* wherever its pages are */
    PKI_GPU_STATIC,  /* a module's variables */
    PKI_GPU_PINNED,
    PKI_GPU_KINDS
} pki_gpu_kind;

typedef struct pki_gpu_operation {
    bool frees;
    bool known_region; /* else it is unknown in which one it was made */
    uint64_t ns, address, bytes;
    uint32_t device, region;
    pki_gpu_kind kind;
} pki_gpu_operation;

/* Of a region, a kind or a place. at_peak is of the peak with the number `stamp` of its place; if
 * there was a later one, what lives now is what lived then: nothing has changed since. */
typedef struct pki_gpu_use {
    uint64_t allocations, bytes, frees, freed, live, peak, at_peak, stamp;
} pki_gpu_use;

typedef struct pki_gpu_region {
    pki_gpu_use use;
    uint64_t timed, early, next_early; /* allocations that are no pool's: now, by two looks */
    pki_growth_series growth;
} pki_gpu_region;

typedef struct pki_gpu_place {
    pki_gpu_use all, kinds[PKI_GPU_KINDS];
    uint64_t peaks, peak_ns; /* of all.peak: its number, and when */
    uint64_t held, most_held;
    uint64_t reserved, used, most_reserved, used_then; /* by its pools */
    uint64_t pools;                                    /* that were seen */
    struct {
        uint64_t peak, peak_ns, most_held, most_reserved, used_then;
    } part; /* the most since the last cut; peak_ns may be before it */
    pki_growth_series growth;
    size_t region_room;
    pki_gpu_region *regions; /* by id */
} pki_gpu_place;

typedef struct pki_gpu_account {
    pki_gpu_place places[PKI_GPU_PLACES];
    pki_blocks blocks;
    struct pki_gpu_pool {
        uint64_t address, size, used, most_reserved, used_then;
        uint64_t number; /* of its place */
        uint32_t place;
        bool gone; /* its row stays until there is none for another one */
    } pools[PKI_GPU_POOLS];
    size_t pool_count;
    struct pki_gpu_late {
        uint64_t address, bytes, ns;
    } late[PKI_GPU_LATE];
    size_t late_at;
    uint64_t last_steps;
    uint64_t early_ns, next_early_ns; /* when the two early looks were */
    uint64_t operations, unknown_frees, unknown_freed, missed_frees, untied, lost, pools_beyond;
} pki_gpu_account;

/* All zero is one that has seen nothing. */
void pki_gpu_account_finish(pki_gpu_account *account);

/* The place that it has changed. */
uint32_t pki_gpu_account_do(pki_gpu_account *account, const pki_gpu_operation *operation);

/* A pool's bytes, taken from the device and in use; gone: there is no such pool any more. The place
 * that it has changed. */
uint32_t pki_gpu_account_pool(pki_gpu_account *account, uint32_t device, uint64_t address,
                              uint64_t size, uint64_t used, bool gone);

/* So many steps have been made by now. early: as pki_memory_course_see says. */
void pki_gpu_account_see(pki_gpu_account *account, uint64_t steps, bool early, uint64_t ns);

/* names: of a region's id, NULL without one. steady: steps since the early look, 0 if there was
 * none. Without totals, texts of why not, and what the library has dropped. False without memory.
 */
bool pki_gpu_account_fill(const pki_gpu_account *account, const char *(*names)(uint32_t id),
                          uint64_t steady, pki_gpu_memory_summary *out);

/* ---- parts of a run ---- */

/* What is known so far; the most of each place is that since the last cut. `out` is empty before.
 * No text of why not. False without memory. */
bool pki_gpu_account_sums(const pki_gpu_account *account, pki_gpu_memory_sums *out);

/* The next part begins. */
void pki_gpu_account_cut(pki_gpu_account *account);

/* All false without memory. What is new since then; `out` is empty before. */
bool pki_gpu_sums_more(const pki_gpu_memory_sums *now, const pki_gpu_memory_sums *before,
                       pki_gpu_memory_sums *out);

/* In the order of time. */
bool pki_gpu_sums_add(pki_gpu_memory_sums *into, const pki_gpu_memory_sums *more);

/* As a report says it: places without kinds, regions and pools. */
bool pki_gpu_sums_summarise(const pki_gpu_memory_sums *sums, pki_gpu_memory_summary *out);

void pki_gpu_sums_finish(pki_gpu_memory_sums *sums);
