#include "measure/summary.h"

#include <stdlib.h>
#include <string.h>

const char *const pki_kind_names[PKI_SHARES] = {
    [PK_OTHER] = "other",
    [PK_COMPUTE] = "compute",
    [PK_DATA] = "data",
    [PK_COMM] = "comm",
    [PK_IO] = "io",
    [PK_WAIT] = "wait",
    [PKI_UNTRACKED] = "untracked",
};

const char *const pki_gpu_figures[PKI_GPU_FIGURES] = {
    [PKI_GPU_STEP] = "step",
    [PKI_GPU_BUSY] = "busy",
    [PKI_GPU_IDLE] = "idle",
    [PKI_GPU_GAPS] = "gaps",
    [PKI_GPU_LONGEST_GAP] = "longest_gap",
    [PKI_GPU_COMM] = "comm",
    [PKI_GPU_COMM_HIDDEN] = "comm_hidden",
    [PKI_GPU_COMM_EXPOSED] = "comm_exposed",
    [PKI_GPU_MEMORY] = "memory",
    [PKI_GPU_COPY] = "copy",
    [PKI_GPU_COPY_ALONE] = "copy_alone",
    [PKI_GPU_SYNC] = "sync",
    [PKI_GPU_SYNC_GAPS] = "sync_gaps",
    [PKI_GPU_LAUNCH_GAPS] = "launch_gaps",
    [PKI_GPU_KERNELS] = "kernels",
    [PKI_GPU_SHORT_KERNELS] = "short_kernels",
    [PKI_GPU_H2D_TIME] = "h2d_time",
    [PKI_GPU_H2D_BYTES] = "h2d_bytes",
    [PKI_GPU_D2H_TIME] = "d2h_time",
    [PKI_GPU_D2H_BYTES] = "d2h_bytes",
    [PKI_GPU_D2D_TIME] = "d2d_time",
    [PKI_GPU_D2D_BYTES] = "d2d_bytes",
    [PKI_GPU_P2P_TIME] = "p2p_time",
    [PKI_GPU_P2P_BYTES] = "p2p_bytes",
};

double pki_gpu_graphs_share(const pki_gpu_row *row)
{
    return row->kernel_time ? (double)row->graph_time / (double)row->kernel_time : 0;
}

bool pki_gpu_graphs_told(const pki_gpu_row *row)
{
    return pki_gpu_graphs_share(row) >= PKI_GPU_GRAPHS_SHARE;
}

const char *const pki_direction_names[PKI_DIRECTIONS] = {"h2d", "d2h", "d2d", "p2p"};

void pki_summary_init(pki_summary *summary)
{
    *summary = (pki_summary){0};
}

static int by_self(const void *a, const void *b)
{
    const pki_region_row *x = a, *y = b;
    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->kind > y->kind) - (x->kind < y->kind);
}

void pki_regions_sort(pki_region_row *regions, size_t count)
{
    if (count)
        qsort(regions, count, sizeof *regions, by_self);
}
