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

const char *const pki_direction_names[PKI_DIRECTIONS] = {"h2d", "d2h", "d2d", "p2p"};

uint32_t pki_kind_named(const char *name)
{
    for (uint32_t k = 0; k < PKI_SHARES; k++)
        if (strcmp(name, pki_kind_names[k]) == 0)
            return k;
    return PKI_SHARES;
}

void pki_summary_init(pki_summary *summary)
{
    *summary = (pki_summary){0};
}

static void free_regions(pki_region_row *regions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(regions[i].name);
    free(regions);
}

static void free_threads(pki_thread_row *threads, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(threads[i].name);
        free_regions(threads[i].regions, threads[i].region_count);
    }
    free(threads);
}

static void free_counters(pki_counter_row *counters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(counters[i].name);
        free(counters[i].unit);
    }
    free(counters);
}

static void free_backends(pki_backend_row *backends, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(backends[i].name);
        free(backends[i].version);
        free(backends[i].reason);
    }
    free(backends);
}

static void free_run(pki_run *run)
{
    free(run->program);
    free(run->host);
    free(run->version);
    free(run->clock);
    free(run->trace_path);
    free(run->source);
}

void pki_step_summary_finish(pki_step_summary *steps)
{
    for (size_t i = 0; i < steps->slowest_count; i++) {
        for (size_t j = 0; j < steps->slowest[i].part_count; j++)
            free(steps->slowest[i].parts[j].name);
        free(steps->slowest[i].parts);
    }
    free(steps->slowest);
    free(steps->series);
    *steps = (pki_step_summary){0};
}

void pki_gpu_finish(pki_summary *summary)
{
    for (size_t i = 0; i < summary->kernel_count; i++) {
        free(summary->kernels[i].name);
        free(summary->kernels[i].region);
    }
    free(summary->kernels);
    free(summary->gpus);
    summary->kernels = NULL;
    summary->gpus = NULL;
    summary->gpu_count = summary->kernel_count = 0;
}

void pki_comm_finish(pki_summary *summary)
{
    pki_comm_summary *c = &summary->comm;
    for (size_t i = 0; i < c->comm_count; i++) {
        free(c->comms[i].library);
        free(c->comms[i].name);
    }
    for (size_t i = 0; i < c->region_count; i++)
        free(c->regions[i].region);
    for (size_t i = 0; i < c->slowest_count; i++)
        free(c->slowest[i].region);
    free(c->comms);
    free(c->collectives);
    free(c->regions);
    free(c->slowest);
    *c = (pki_comm_summary){0};
}

void pki_summary_clear_verdicts(pki_summary *summary)
{
    for (size_t i = 0; i < summary->verdict_count; i++) {
        free(summary->verdicts[i].name);
        free(summary->verdicts[i].text);
    }
    free(summary->verdicts);
    summary->verdicts = NULL;
    summary->verdict_count = 0;
}

void pki_summary_finish(pki_summary *summary)
{
    free_run(&summary->run);
    pki_summary_clear_verdicts(summary);
    free_regions(summary->regions, summary->region_count);
    free_threads(summary->threads, summary->thread_count);
    free_counters(summary->counters, summary->counter_count);
    free_backends(summary->backends, summary->backend_count);
    pki_step_summary_finish(&summary->steps);
    pki_gpu_finish(summary);
    pki_comm_finish(summary);
    pki_summary_init(summary);
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
