/* tools/job/read/regions.c - the regions of all ranks, added up. */
#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "stats/slot.h"

typedef struct job_self {
    uint32_t region;
    double self;
} job_self;

struct job_regions {
    table names; /* kind as a digit, then the name */
    size_t room;
    pk_stats **sums;
};

job_regions *job_regions_begin(void)
{
    return memory_zeroed(1, sizeof(job_regions));
}

static uint32_t index_of_region(job_regions *all, const pki_region_row *row)
{
    char name[512];
    size_t length = strnlen(row->name, sizeof name - 2);
    name[0] = (char)('0' + row->kind % 10);
    memcpy(name + 1, row->name, length);
    name[length + 1] = '\0';
    uint32_t at = table_add(&all->names, name);
    memory_fit(&all->sums, &all->room, at + (size_t)1, sizeof *all->sums);
    if (!all->sums[at]) {
        all->sums[at] = memory_resized(NULL, sizeof **all->sums);
        pki_stats_begin(all->sums[at]);
    }
    return at;
}

/* The squares travel in the spare words, as in measure/window/window.c. */
static void add_exact(pk_stats *to, const pki_window_sum *from)
{
    if (!from->count)
        return;
    to->min = to->count && to->min < from->min ? to->min : from->min;
    to->max = to->max > from->max ? to->max : from->max;
    to->count += from->count;
    to->sum += from->sum;
    to->spare[0] += from->squares_low;
    to->spare[1] += from->squares_high + (to->spare[0] < from->squares_low);
    to->spare[2] += from->thinned.spread;
    to->untimed += from->thinned.untimed;
    for (size_t i = 0; i < from->buckets.used; i++)
        if (from->buckets.buckets[i].key < PK_STATS_BUCKETS)
            to->buckets[from->buckets.buckets[i].key] += from->buckets.buckets[i].count;
}

void job_regions_add(job_regions *all, job_rank *rank, const pki_summary *from)
{
    free(rank->selves);
    rank->self_count = from->region_count;
    rank->selves = memory_zeroed(from->region_count, sizeof *rank->selves);
    for (size_t i = 0; i < from->region_count; i++) {
        const pki_region_row *row = &from->regions[i];
        uint32_t at = index_of_region(all, row);
        add_exact(all->sums[at], &row->exact);
        rank->selves[i] = (job_self){at, (double)row->self};
    }
}

/* ---- what comes out ---- */

/* Self times by region, then by rank; -1 of a rank that does not have it. */
static double *selves_of(const job_regions *all, const job *j)
{
    size_t ranks = j->rank_count, cells = all->names.count * ranks;
    double *selves = memory_zeroed(cells, sizeof *selves);
    for (size_t i = 0; i < cells; i++)
        selves[i] = -1;
    for (size_t r = 0; r < ranks; r++)
        for (size_t i = 0; i < j->ranks[r].self_count; i++) {
            double *self = &selves[j->ranks[r].selves[i].region * ranks + r];
            *self = (*self < 0 ? 0 : *self) + j->ranks[r].selves[i].self;
        }
    return selves;
}

static job_region region_of(const job_regions *all, uint32_t at, const job *j, const double *selves)
{
    pki_stats_finish(all->sums[at], 1);
    job_region out = {.name = memory_copy(all->names.texts[at] + 1),
                      .kind = (uint32_t)(all->names.texts[at][0] - '0'),
                      .number = at,
                      .time = pki_stats_dist(all->sums[at]),
                      .spread = job_spread_of(j, selves + at * j->rank_count)};
    out.self = out.spread.mean * (double)out.spread.have;
    return out;
}

double job_self_of_rank(const job_rank *rank, const job_region *region)
{
    double self = -1;
    for (size_t i = 0; i < rank->self_count; i++)
        if (rank->selves[i].region == region->number)
            self = (self < 0 ? 0 : self) + rank->selves[i].self;
    return self;
}

static int most_self_first(const void *x, const void *y)
{
    const job_region *a = x, *b = y;
    if (a->self != b->self)
        return a->self < b->self ? 1 : -1;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

static void fill(const job_regions *all, job *j)
{
    double *selves = selves_of(all, j);
    j->regions = memory_zeroed(all->names.count, sizeof *j->regions);
    for (uint32_t i = 0; i < all->names.count; i++) {
        job_region region = region_of(all, i, j, selves);
        if (region.spread.have)
            j->regions[j->region_count++] = region;
        else
            free(region.name);
    }
    if (j->region_count)
        qsort(j->regions, j->region_count, sizeof *j->regions, most_self_first);
    free(selves);
}

void job_regions_end(job_regions *all, job *j)
{
    if (j)
        fill(all, j);
    for (uint32_t i = 0; i < all->names.count; i++)
        free(all->sums[i]);
    free(all->sums);
    table_finish(&all->names);
    free(all);
}
