/* From devices to the summary. */
#include "measure/device/state.h"

#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

/* ---- per step ---- */

/* All steady steps of the view. */
static bool sum_figure(const pki_device_one *one, int view, int figure, uint64_t warmup,
                       pki_tally *sum)
{
    if (!pki_tally_merge(sum, &one->tail[view][figure]))
        return false;
    for (uint64_t i = warmup; i < PKI_STEPS_HEAD; i++) {
        const pki_device_whole *whole = &one->head[i];
        double memory = whole->sums[view].of[PKI_GPU_MEMORY];
        if (whole->in[view] && pki_device_has_figure(view, figure, memory) &&
            !pki_tally_add(sum, whole->sums[view].of[figure], 1))
            return false;
    }
    return true;
}

static bool has_steps(const pki_device_one *one, int view, uint64_t warmup)
{
    for (uint64_t i = warmup; i < PKI_STEPS_HEAD; i++)
        if (one->head[i].in[view])
            return true;
    return one->tail[view][PKI_GPU_STEP].moments.count > 0;
}

/* Where no collective was seen, or nothing that could hide one, nothing is known of it; nor where a
 * share of the work that is told is of graphs as wholes, which may hold some. */
static bool is_known(const pki_device_one *one, int view, int figure)
{
    bool timed = view == MEASURED || one->totals.spans > 0;
    bool comm = one->has_comm[view] && !(view == MEASURED && pki_gpu_graphs_told(&one->totals));
    switch (figure) {
    case PKI_GPU_COMM:
        return comm;
    case PKI_GPU_COMM_HIDDEN:
    case PKI_GPU_COMM_EXPOSED:
        return comm && timed;
    case PKI_GPU_BUSY:
    case PKI_GPU_IDLE:
    case PKI_GPU_GAPS:
    case PKI_GPU_LONGEST_GAP:
        return timed;
    default:
        return true;
    }
}

static bool fill_figures(const pki_device_one *one, uint64_t warmup, pki_gpu_row *row)
{
    int view = row->measured ? MEASURED : SPANS;
    for (int i = 0; i < PKI_GPU_FIGURES; i++) {
        pki_tally sum = {0};
        bool fits = !is_known(one, view, i) || sum_figure(one, view, i, warmup, &sum);
        row->per_step[i] = pki_tally_dist(&sum);
        pki_tally_finish(&sum);
        if (!fits)
            return false;
    }
    return true;
}

static bool is_used(const pki_device_one *one)
{
    return one->first[MEASURED] < UINT64_MAX || one->first[SPANS] < UINT64_MAX;
}

bool pki_device_series_fill(const pki_series *s, pki_gpu_row *row)
{
    row->series_count = 0;
    row->series = malloc(PKI_MAX(s->used, (size_t)1) * sizeof *row->series);
    if (!row->series)
        return false;
    if (s->used)
        memcpy(row->series, s->rows, s->used * sizeof *row->series);
    row->series_count = s->used;
    return true;
}

static bool fill_series(const pki_device_one *one, int view, pki_gpu_row *row)
{
    bool known = is_known(one, view, PKI_GPU_COMM_EXPOSED);
    if (!pki_device_series_fill(&one->series[view], row))
        return false;
    for (size_t i = 0; !known && i < row->series_count; i++)
        row->series[i].comm_hidden = row->series[i].comm_exposed = 0;
    return true;
}

static bool fill_row(const pki_device_one *one, uint64_t warmup, pki_gpu_row *row)
{
    *row = one->totals;
    row->streams = one->track_count;
    row->measured = has_steps(one, MEASURED, warmup) ||
                    (one->first[MEASURED] < UINT64_MAX && !has_steps(one, SPANS, warmup));
    int view = row->measured ? MEASURED : SPANS;
    return fill_figures(one, warmup, row) &&
           (!is_known(one, view, PKI_GPU_BUSY) || fill_series(one, view, row));
}

static bool fill_rows(const pki_device *d, uint64_t warmup, pki_summary *out)
{
    out->gpus = calloc(PKI_MAX(d->count, 1u), sizeof *out->gpus);
    if (!out->gpus)
        return false;
    for (size_t i = 0; i < d->count; i++)
        if (is_used(d->ones[i]) && !fill_row(d->ones[i], warmup, &out->gpus[out->gpu_count++]))
            return false;
    return true;
}

/* ---- kernels ---- */

static uint32_t main_launcher(const pki_device_kernel *k, double *share)
{
    uint64_t most = 0;
    uint32_t region = 0;
    for (size_t i = 0; i < k->launcher_count; i++)
        if (k->launchers[i].region && k->launchers[i].ns > most) {
            most = k->launchers[i].ns;
            region = k->launchers[i].region;
        }
    double all = pki_moments_sum(&k->time.moments);
    *share = all > 0 ? (double)most / all : 0;
    return region;
}

static bool fill_kernel(const pki_device_kernel *k, const char *title, pki_steps_name *name,
                        void *user, pki_kernel_row *row)
{
    double share;
    uint32_t region = main_launcher(k, &share);
    const char *launcher = region ? name(user, region) : NULL;
    *row = (pki_kernel_row){.name = strdup(title),
                            .region = strdup(launcher ? launcher : ""),
                            .region_share = share,
                            .time = pki_tally_dist(&k->time)};
    return row->name && row->region;
}

static int by_total(const void *a, const void *b)
{
    const pki_kernel_row *x = a, *y = b;
    if (x->time.sum > y->time.sum || x->time.sum < y->time.sum)
        return x->time.sum < y->time.sum ? 1 : -1;
    return strcmp(x->name, y->name);
}

static bool fill_kernels(const pki_device *d, pki_steps_name *name, void *user, pki_summary *out)
{
    out->kernels = calloc(d->kernel_count + 1, sizeof *out->kernels);
    if (!out->kernels)
        return false;
    for (size_t i = 0; i < PKI_COUNT_OF(d->kernels); i++)
        if (d->kernels[i] && !fill_kernel(d->kernels[i], d->kernels[i]->name, name, user,
                                          &out->kernels[out->kernel_count++]))
            return false;
    qsort(out->kernels, out->kernel_count, sizeof *out->kernels, by_total);
    return d->other_kernels.time.moments.count == 0 ||
           fill_kernel(&d->other_kernels, PKI_OTHER_KERNELS, name, user,
                       &out->kernels[out->kernel_count++]);
}

bool pki_device_fill(const pki_device *d, uint64_t warmup, pki_steps_name *name, void *user,
                     pki_summary *out)
{
    pki_gpu_finish(out);
    if (!d)
        return true;
    if (!fill_rows(d, warmup, out) || !fill_kernels(d, name, user, out)) {
        pki_gpu_finish(out);
        return false;
    }
    out->activities.late = d->late;
    out->activities.unmeasured = d->without_room;
    out->activities.overhead_count = d->overhead_count;
    out->activities.overhead = d->overhead;
    return true;
}
