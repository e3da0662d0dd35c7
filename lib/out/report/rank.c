/* lib/out/report/rank.c - the file of a rank: of the report what a job of many ranks is made of, in
 * 64 KiB for 100 regions and any number of steps. */
#include "comm/figures/partners.h"
#include "comm/figures/sequences.h"
#include "measure/shape.h"
#include "out/report/report.h"
#include "out/report/sections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REGIONS 256     /* those with the most self time */
#define COLLECTIVES 8   /* those with the most time */
#define SITES 16        /* of operations: those with the most time */
#define PARTNERS 64     /* of messages: those with most bytes, and one of all others */
#define SEQUENCES 192   /* single operations; their number is a half, a quarter, ... of all */
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
    to->comm.region_count = from->comm.region_count < SITES ? from->comm.region_count : SITES;
    return true;
}

static void *copy_rows(const void *rows, size_t count, size_t size)
{
    char *copy = calloc(count + 1, size);
    if (copy && count)
        memcpy(copy, rows, count * size);
    return copy;
}

static bool copy_exchange(const pki_summary *from, pki_summary *to)
{
    const pki_comm_summary *c = &from->comm;
    pki_sequences *q = &to->comm.sequences;
    to->comm.partners = copy_rows(c->partners, c->partner_count, sizeof *c->partners);
    q->rows = copy_rows(c->sequences.rows, c->sequences.row_count, sizeof *q->rows);
    if (!to->comm.partners || !q->rows)
        return false;
    to->comm.partner_count = pki_partners_narrow(to->comm.partners, c->partner_count, PARTNERS);
    q->row_count = pki_sequences_narrow(q->rows, q->row_count, &q->one_in, SEQUENCES);
    return true;
}

/* The copy shares all but what is smaller in it. */
static void finish_copy(pki_summary *copy)
{
    for (size_t i = 0; copy->regions && i < copy->region_count; i++)
        free(copy->regions[i].exact.buckets.buckets);
    free(copy->regions);
    free(copy->comm.collectives);
    free(copy->comm.partners);
    free(copy->comm.sequences.rows);
}

int pki_report_rank(const pki_summary *summary, FILE *file)
{
    pki_summary copy = *summary;
    int error = -ENOMEM;
    copy.comm.collectives = NULL;
    copy.comm.partners = NULL;
    copy.comm.sequences.rows = NULL;
    if (copy_regions(summary, &copy) && copy_collectives(summary, &copy) &&
        copy_exchange(summary, &copy))
        error = pki_report_json_as(&copy, &pki_rank_shape, file);
    finish_copy(&copy);
    return error;
}
