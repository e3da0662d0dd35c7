#include "job/read/axis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/figures/figures.h"
#include "memory.h"

#define LEAST_DOUBT 200 /* ns: up to which a rank's own clock is corrected (base/clock.h) */
#define DOUBT_MOST 1e15

static const pki_sequences *of_rank(const job *j, size_t rank)
{
    return &j->ranks[rank].comm.sequences;
}

bool job_axis_believes(const pki_sequence_row *row)
{
    return row->start <= JOB_AXIS_MOST && row->duration <= JOB_AXIS_MOST &&
           row->waited <= row->duration;
}

static bool bounds_clocks(const pki_sequence_row *row)
{
    operation_kind kind = operation_kind_of(row->op);
    return kind != OPERATION_SEND && kind != OPERATION_RECEIVE && job_axis_believes(row);
}

static bool add_rank(operations *o, const job *j, size_t rank, complaint *why)
{
    const pki_sequences *q = of_rank(j, rank);
    for (size_t i = 0; i < q->row_count; i++) {
        const pki_sequence_row *row = &q->rows[i];
        if (!bounds_clocks(row))
            continue;
        operation op = {.key = row->key,
                        .start = row->start,
                        .end = row->start + row->duration,
                        .source = (uint32_t)rank,
                        .rank = j->ranks[rank].rank,
                        .peer = row->partner,
                        .ranks = row->ranks,
                        .kind = (uint8_t)operation_kind_of(row->op),
                        .op = (uint8_t)row->op};
        if (!operations_add(o, &op, why))
            return false;
    }
    return true;
}

/* What cannot be kept bounds nothing: then real times are what there is. */
static void bound(job_axis *a, const job *j)
{
    const char *folder = secure_getenv("TMPDIR"); /* it runs in the program, too (job/library) */
    folder = folder && *folder ? folder : "/tmp";
    size_t room = strlen(folder) + sizeof "/pk-job-axis";
    char *file = memory_zeroed(room, 1);
    snprintf(file, room, "%s/pk-job-axis", folder);
    complaint ignored = {""};
    operations *o = operations_create(file);
    bool added = true;
    for (size_t r = 0; added && r < j->rank_count; r++)
        added = a->own[r] < 0 || add_rank(o, j, r, &ignored);
    if (added)
        clocks_fit(&a->clocks, &a->sources, o, &ignored);
    operations_destroy(o);
    free(file);
}

bool job_axis_make(job_axis *a, const job *j)
{
    *a = (job_axis){0};
    a->own = memory_zeroed(j->rank_count + 1, sizeof *a->own);
    a->sources.all = memory_zeroed(j->rank_count + 1, sizeof *a->sources.all);
    a->sources.count = j->rank_count;
    bool any = false;
    for (size_t r = 0; r < j->rank_count; r++) {
        const job_rank *rank = &j->ranks[r];
        const pki_sequences *q = of_rank(j, r);
        bool sane = q->origin <= JOB_AXIS_MOST && rank->run.wall <= JOB_AXIS_MOST &&
                    rank->run.start_unix <= (uint64_t)1 << 61;
        bool known = sane && q->row_count && q->clock && *q->clock;
        a->sources.all[r] =
            (merge_source){.host = j->hosts.texts[rank->host],
                           .clock_name = known ? q->clock : j->hosts.texts[rank->host],
                           .rank = rank->rank,
                           .base_ns = sane ? q->origin : 0,
                           .unix_ns = sane ? rank->run.start_unix : 0,
                           .last_ns = sane ? rank->run.wall : 0};
        double doubt = fmin(fmax(rank->run.clock_uncertainty_ns, LEAST_DOUBT), DOUBT_MOST);
        a->own[r] = known ? doubt : -1;
        any |= known;
    }
    if (!any)
        return false;
    clocks_make(&a->clocks, &a->sources);
    if (a->clocks.count > 1)
        bound(a, j);
    return true;
}

void job_axis_finish(job_axis *a)
{
    clocks_free(&a->clocks);
    free(a->sources.all);
    free(a->own);
}

int64_t job_axis_at(const job_axis *a, size_t rank, uint64_t ns)
{
    return (int64_t)clocks_axis(&a->clocks, &a->sources.all[rank], ns);
}

int64_t job_axis_doubt(const job_axis *a, size_t one, size_t other)
{
    uint32_t c = a->sources.all[one].clock, d = a->sources.all[other].clock;
    if (a->own[one] < 0 || a->own[other] < 0)
        return -1;
    int64_t own = (int64_t)(a->own[one] + a->own[other]);
    if (c == d)
        return own;
    int64_t x = clock_doubt(&a->clocks.all[c]), y = clock_doubt(&a->clocks.all[d]);
    return x < 0 || y < 0 ? -1 : own + x + y;
}
