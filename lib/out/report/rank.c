/* lib/out/report/rank.c - the file of a rank: of the report what a job of many ranks is made of, in
 * 64 KiB for 100 regions and any number of steps. */
#include "measure/shape.h"
#include "out/report/report.h"
#include "out/report/sections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REGIONS 256     /* those with the most self time */
#define COLLECTIVES 8   /* those with the most time */
#define BUCKETS 3000    /* of all regions together... */
#define BUCKETS_LEAST 8 /* ...but of each so many */

static bool copy_buckets(pki_region_row *row, size_t most)
{
    pki_tally *t = &row->exact.buckets;
    pki_tally_bucket *copy = malloc((t->used + 1) * sizeof *copy);
    if (!copy)
        return false;
    if (t->used)
        memcpy(copy, t->buckets, t->used * sizeof *copy);
    t->buckets = copy;
    pki_window_sum_narrow(&row->exact, most);
    return true;
}

static bool copy_regions(const pki_summary *from, pki_summary *to)
{
    size_t count = from->region_count < REGIONS ? from->region_count : REGIONS;
    size_t most = count ? BUCKETS / count : 0;
    to->region_count = 0;
    to->regions = calloc(count + 1, sizeof *to->regions);
    for (size_t i = 0; to->regions && i < count; i++) {
        to->regions[i] = from->regions[i];
        if (!copy_buckets(&to->regions[i], most > BUCKETS_LEAST ? most : BUCKETS_LEAST))
            return false;
        to->region_count++;
    }
    return to->regions;
}

static int most_time_first(const void *a, const void *b)
{
    const pki_operation_row *x = a, *y = b;
    if (x->time.sum != y->time.sum)
        return x->time.sum < y->time.sum ? 1 : -1;
    return (x->comm > y->comm) - (x->comm < y->comm);
}

static bool copy_collectives(const pki_summary *from, pki_summary *to)
{
    size_t count = from->comm.collective_count;
    pki_operation_row *rows = calloc(count + 1, sizeof *rows);
    if (!rows)
        return false;
    if (count)
        memcpy(rows, from->comm.collectives, count * sizeof *rows);
    qsort(rows, count, sizeof *rows, most_time_first);
    to->comm.collectives = rows;
    to->comm.collective_count = count < COLLECTIVES ? count : COLLECTIVES;
    to->comm.region_count = 0;
    return true;
}

/* The copy shares all but what is smaller in it. */
static void finish_copy(pki_summary *copy)
{
    for (size_t i = 0; copy->regions && i < copy->region_count; i++)
        free(copy->regions[i].exact.buckets.buckets);
    free(copy->regions);
}

int pki_report_rank(const pki_summary *summary, FILE *file)
{
    pki_summary copy = *summary;
    int error = -ENOMEM;
    copy.comm.collectives = NULL;
    if (copy_regions(summary, &copy) && copy_collectives(summary, &copy))
        error = pki_report_json_as(&copy, &pki_rank_shape, file);
    finish_copy(&copy);
    free(copy.comm.collectives);
    return error;
}
