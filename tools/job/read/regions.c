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

/* Only buckets that have something: of what other profilers wrote each call may have a name. */
struct job_regions {
    table names; /* kind as a digit, then the name */
    size_t room;
    pki_window_sum *sums;
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
    return at;
}

static void add_exact(pki_window_sum *to, const pki_window_sum *from)
{
    if (!from->count)
        return;
    to->min = to->count && to->min < from->min ? to->min : from->min;
    to->max = to->max > from->max ? to->max : from->max;
    to->count += from->count;
    to->sum += from->sum;
    to->squares_low += from->squares_low;
    to->squares_high += from->squares_high + (to->squares_low < from->squares_low);
    to->thinned.spread += from->thinned.spread;
    to->thinned.untimed += from->thinned.untimed;
    for (size_t i = 0; i < from->buckets.used; i++)
        if (from->buckets.buckets[i].key < PK_STATS_BUCKETS)
            memory_needed(pki_tally_count(&to->buckets, from->buckets.buckets[i].key,
                                          from->buckets.buckets[i].count));
}

void job_regions_add(job_regions *all, job_rank *rank, const pki_summary *from)
{
    free(rank->selves);
    rank->self_count = from->region_count;
    rank->selves = memory_zeroed(from->region_count, sizeof *rank->selves);
    for (size_t i = 0; i < from->region_count; i++) {
        const pki_region_row *row = &from->regions[i];
        uint32_t at = index_of_region(all, row);
        add_exact(&all->sums[at], &row->exact);
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

/* The squares travel in the spare words, as in measure/window/window.c. */
static pki_dist dist_of(const pki_window_sum *sum, pk_stats *room)
{
    pki_stats_again(room);
    room->count = sum->count;
    room->sum = sum->sum;
    room->min = sum->count ? sum->min : room->min;
    room->max = sum->max;
    room->untimed = sum->thinned.untimed;
    room->spare[0] = sum->squares_low;
    room->spare[1] = sum->squares_high;
    room->spare[2] = sum->thinned.spread;
    for (size_t i = 0; i < sum->buckets.used; i++)
        pki_stats_count(room, sum->buckets.buckets[i].key, sum->buckets.buckets[i].count);
    pki_stats_finish(room, 1);
    return pki_stats_dist(room);
}

static job_region region_of(const job_regions *all, uint32_t at, const job *j, const double *selves,
                            pk_stats *room)
{
    job_region out = {.name = memory_copy(all->names.texts[at] + 1),
                      .kind = (uint32_t)(all->names.texts[at][0] - '0'),
                      .number = at,
                      .time = dist_of(&all->sums[at], room),
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
    pk_stats *room = memory_zeroed(1, sizeof *room);
    j->regions = memory_zeroed(all->names.count, sizeof *j->regions);
    for (uint32_t i = 0; i < all->names.count; i++) {
        job_region region = region_of(all, i, j, selves, room);
        if (region.spread.have)
            j->regions[j->region_count++] = region;
        else
            free(region.name);
    }
    if (j->region_count)
        qsort(j->regions, j->region_count, sizeof *j->regions, most_self_first);
    free(selves);
    free(room);
}

void job_regions_end(job_regions *all, job *j)
{
    if (j)
        fill(all, j);
    for (uint32_t i = 0; i < all->names.count; i++)
        pki_tally_finish(&all->sums[i].buckets);
    free(all->sums);
    table_finish(&all->names);
    free(all);
}
