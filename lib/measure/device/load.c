#include "measure/device/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

const char *const pki_load_names[PKI_LOADS] = {
    [PKI_LOAD_SM] = "sm_active",          [PKI_LOAD_OCCUPANCY] = "sm_occupancy",
    [PKI_LOAD_TENSOR] = "tensor_active",  [PKI_LOAD_FP64] = "fp64_active",
    [PKI_LOAD_FP32] = "fp32_active",      [PKI_LOAD_FP16] = "fp16_active",
    [PKI_LOAD_DRAM] = "dram_bandwidth",   [PKI_LOAD_NVLINK_IN] = "nvlink_in",
    [PKI_LOAD_NVLINK_OUT] = "nvlink_out", [PKI_LOAD_PCIE_IN] = "pcie_in",
    [PKI_LOAD_PCIE_OUT] = "pcie_out",
};

void pki_load_begin(pki_load *l)
{
    memset(l, 0, sizeof *l);
    l->kind_count = 1;
}

void pki_load_finish(pki_load *l)
{
    for (size_t i = 0; i < l->device_count; i++) {
        for (int m = 0; m < PKI_LOADS; m++)
            pki_tally_finish(&l->devices[i]->steps[m]);
        free(l->devices[i]->waiting);
        free(l->devices[i]);
    }
    pki_load_begin(l);
}

/* NULL without memory, or if there are too many. */
static pki_load_device *device_of(pki_load *l, uint32_t device)
{
    for (size_t i = 0; i < l->device_count; i++)
        if (l->devices[i]->device == device)
            return l->devices[i];
    pki_load_device *d = l->device_count < PKI_LOAD_DEVICES ? calloc(1, sizeof *d) : NULL;
    if (d)
        d->waiting = malloc(PKI_LOAD_WAITING * sizeof *d->waiting);
    if (!d || !d->waiting) {
        free(d);
        return NULL;
    }
    d->device = device;
    l->devices[l->device_count++] = d;
    return d;
}

static int kind_of(pki_load *l, const char *kind)
{
    size_t i = 1;
    if (!kind)
        return 0;
    while (i < l->kind_count && strncmp(l->kinds[i], kind, sizeof l->kinds[i] - 1) != 0)
        i++;
    if (i == l->kind_count && i < PKI_LOAD_KINDS)
        snprintf(l->kinds[l->kind_count++], sizeof l->kinds[0], "%s", kind);
    return (int)PKI_MIN(i, PKI_LOAD_KINDS - 1u);
}

/* ---- sums ---- */

static void add(pki_load_sum *sum, double value, uint64_t time)
{
    if (isnan(value))
        return;
    sum->least = sum->count ? PKI_MIN(sum->least, value) : value;
    sum->most = sum->count ? PKI_MAX(sum->most, value) : value;
    sum->count++;
    sum->time += time;
    sum->sum += value * (double)time;
}

static void add_all(pki_load_sum sums[PKI_LOADS], const pki_load_interval *i)
{
    for (int m = 0; m < PKI_LOADS; m++)
        add(&sums[m], i->values[m], i->to - i->from);
}

static double mean_of(const pki_load_sum *sum)
{
    return sum->time ? sum->sum / (double)sum->time : 0;
}

/* ---- of which kind, of which step ---- */

/* Time on end that it lies in, of the last ones that are remembered. */
static const pki_load_stretch *around(const pki_load_stretch ring[PKI_LOAD_STRETCHES],
                                      uint64_t count, const pki_load_interval *i)
{
    uint64_t from = pki_saturating_sub(i->from, PKI_LOAD_LAG);
    for (uint64_t n = 0; n < PKI_MIN(count, PKI_LOAD_STRETCHES); n++) {
        const pki_load_stretch *s = &ring[(count - 1 - n) % PKI_LOAD_STRETCHES];
        if (s->start <= from && i->to <= s->end)
            return s;
    }
    return NULL;
}

/* A step's mean counts if half of it at least is known. */
static void close_step(pki_load *l, pki_load_device *d)
{
    for (int m = 0; m < PKI_LOADS; m++)
        if (d->step[m].count && d->step[m].time >= (d->step_end - d->step_start) / 2)
            l->without_room += !pki_tally_add(&d->steps[m], mean_of(&d->step[m]), 1);
    memset(d->step, 0, sizeof d->step);
}

static void settle_one(pki_load *l, pki_load_device *d, const pki_load_interval *i)
{
    const pki_load_stretch *of = around(l->stretches, l->stretch_count, i);
    const pki_load_stretch *step = around(l->steps, l->step_count, i);
    if (of && of->kind >= 0)
        add_all(d->kinds[of->kind], i);
    else
        l->mixed++;
    if (!step)
        return;
    if (step->start != d->step_start || step->end != d->step_end)
        close_step(l, d);
    d->step_start = step->start;
    d->step_end = step->end;
    add_all(d->step, i);
}

/* Those that are over before the last step that has ended is. */
static void settle(pki_load *l, pki_load_device *d, uint64_t known)
{
    while (d->count && d->waiting[d->first].to <= known) {
        settle_one(l, d, &d->waiting[d->first]);
        d->first = (d->first + 1) % PKI_LOAD_WAITING;
        d->count--;
    }
}

static uint64_t known_until(const pki_load *l)
{
    return l->stretch_count ? l->stretches[(l->stretch_count - 1) % PKI_LOAD_STRETCHES].end : 0;
}

/* ---- what comes ---- */

static pki_load_interval both(const pki_load_interval *a, const pki_load_interval *b)
{
    pki_load_interval sum = {.from = a->from, .to = b->to};
    double x = (double)(a->to - a->from), y = (double)(b->to - b->from);
    for (int m = 0; m < PKI_LOADS; m++)
        sum.values[m] = (a->values[m] * x + b->values[m] * y) / (x + y);
    return sum;
}

/* Neighbours become one where nothing is missing between them: else the earlier one is given up. */
static void make_room(pki_load *l, pki_load_device *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < PKI_LOAD_WAITING; i += 2) {
        const pki_load_interval *a = &d->waiting[(d->first + i) % PKI_LOAD_WAITING];
        const pki_load_interval *b = &d->waiting[(d->first + i + 1) % PKI_LOAD_WAITING];
        bool meet = a->to == b->from;
        l->mixed += !meet;
        pki_load_interval one = meet ? both(a, b) : *b;
        d->waiting[(d->first + kept++) % PKI_LOAD_WAITING] = one;
    }
    d->count = kept;
}

void pki_load_read(pki_load *l, uint32_t device, const pki_load_interval *interval)
{
    pki_load_device *d = interval->to > interval->from ? device_of(l, device) : NULL;
    if (!d) {
        l->without_room++;
        return;
    }
    l->intervals++;
    add_all(d->run, interval);
    if (d->count == PKI_LOAD_WAITING)
        make_room(l, d);
    d->waiting[(d->first + d->count++) % PKI_LOAD_WAITING] = *interval;
    settle(l, d, known_until(l));
}

void pki_load_step(pki_load *l, const char *kind, bool between, uint64_t start, uint64_t end)
{
    int k = between ? -1 : kind_of(l, kind);
    pki_load_stretch *last = &l->stretches[(l->stretch_count - 1) % PKI_LOAD_STRETCHES];
    if (l->stretch_count && last->kind == k && last->end == start)
        last->end = end;
    else
        l->stretches[l->stretch_count++ % PKI_LOAD_STRETCHES] = (pki_load_stretch){start, end, k};
    if (k == 0 && end - start > 2 * (uint64_t)PKI_LOAD_LAG)
        l->steps[l->step_count++ % PKI_LOAD_STRETCHES] = (pki_load_stretch){start, end, k};
    for (size_t i = 0; i < l->device_count; i++)
        settle(l, l->devices[i], end);
}

void pki_load_end(pki_load *l)
{
    for (size_t i = 0; i < l->device_count; i++) {
        settle(l, l->devices[i], UINT64_MAX);
        close_step(l, l->devices[i]);
    }
}

/* ---- the summary ---- */

static bool fill_row(const pki_load_device *d, int m, const pki_load_sum *sum, const char *run,
                     const char *kind, pki_load_row *row)
{
    size_t size = strlen(run) + strlen(kind) + 1;
    *row = (pki_load_row){.device = d->device,
                          .metric = strdup(pki_load_names[m]),
                          .step_kind = malloc(size),
                          .intervals = sum->count,
                          .time = sum->time,
                          .mean = mean_of(sum),
                          .least = sum->least,
                          .most = sum->most};
    if (row->step_kind)
        snprintf(row->step_kind, size, "%s%s", run, kind);
    return row->metric && row->step_kind;
}

/* Kinds are named as those of energy are: a program's "(run)" is "(run)(run)". */
static bool fill_metric(const pki_load *l, const pki_load_device *d, int m, pki_load_summary *out)
{
    if (!d->run[m].count)
        return true;
    pki_load_row *row = &out->rows[out->row_count++];
    bool done = fill_row(d, m, &d->run[m], PKI_ENERGY_RUN, "", row);
    row->per_step = pki_tally_dist(&d->steps[m]);
    for (size_t k = 0; k < l->kind_count; k++) {
        const char *kind = l->kinds[k];
        bool same = strncmp(kind, PKI_ENERGY_RUN, sizeof PKI_ENERGY_RUN - 1) == 0;
        if (d->kinds[k][m].count)
            done = fill_row(d, m, &d->kinds[k][m], same ? PKI_ENERGY_RUN : "", kind,
                            &out->rows[out->row_count++]) &&
                   done;
    }
    return done;
}

static int by_device(const void *a, const void *b)
{
    const pki_load_device *const *x = a, *const *y = b;
    return ((*x)->device > (*y)->device) - ((*x)->device < (*y)->device);
}

bool pki_load_fill(const pki_load *l, pki_load_summary *out)
{
    bool done = true;
    pki_load_device *sorted[PKI_LOAD_DEVICES];
    out->intervals = l->intervals;
    out->mixed = l->mixed;
    out->without_room = l->without_room;
    out->rows = calloc(l->device_count * PKI_LOADS * (PKI_LOAD_KINDS + 1) + 1, sizeof *out->rows);
    memcpy(sorted, l->devices, sizeof sorted);
    qsort(sorted, l->device_count, sizeof *sorted, by_device);
    for (size_t i = 0; i < l->device_count && out->rows; i++)
        for (int m = 0; m < PKI_LOADS; m++)
            done = fill_metric(l, sorted[i], m, out) && done;
    return out->rows && done;
}
