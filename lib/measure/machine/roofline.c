#include "measure/machine/roofline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "measure/machine/machine.h"

/* ---- the peak that a step's operations are held against, with its source ---- */

#define FLOPS_MOST 1e30
#define USUAL "fp32" /* of processors */

/* ---- the option ---- */

static double of_device(const pki_device_limits *d, const char *precision)
{
    const struct {
        const char *name;
        double flops;
    } rates[] = {{"fp64", PKI_MAX(d->fp64, d->fp64_tensor)},
                 {"fp32", d->fp32},
                 {"tf32", d->tf32},
                 {"bf16", d->bf16},
                 {"fp16", d->fp16},
                 {"fp8", d->fp8}};
    for (size_t i = 0; i < PKI_COUNT_OF(rates); i++)
        if (strcmp(rates[i].name, precision) == 0)
            return rates[i].flops;
    return -1;
}

static bool is_precision(const char *name)
{
    static const pki_device_limits none;
    return of_device(&none, name) >= 0;
}

/* "989.5e12", in every locale: digits, perhaps a point and digits, perhaps an exponent. */
static bool read_flops(const char *text, double *flops)
{
    double scale = 1;
    int exponent = 0;
    const char *at = text;
    for (*flops = 0; *at >= '0' && *at <= '9'; at++)
        *flops = *flops * 10 + (*at - '0');
    if (at == text)
        return false;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            *flops += (*at - '0') * (scale /= 10);
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '+');
        if (*at < '0' || *at > '9')
            return false;
        for (; *at >= '0' && *at <= '9' && exponent < 100; at++)
            exponent = exponent * 10 + (*at - '0');
    }
    for (; exponent > 0 && *flops <= FLOPS_MOST; exponent--)
        *flops *= 10;
    return *at == '\0' && *flops >= 1 && *flops <= FLOPS_MOST;
}

bool pki_peak_parse(const char *text, pki_peak_wish *wish)
{
    size_t n = strcspn(text, ":");
    *wish = (pki_peak_wish){.flops = 0};
    if (n < sizeof wish->precision) {
        memcpy(wish->precision, text, n);
        if (is_precision(wish->precision))
            return text[n] == '\0' || read_flops(text + n + 1, &wish->flops);
    }
    memset(wish->precision, 0, sizeof wish->precision);
    return read_flops(text, &wish->flops);
}

/* ---- where it comes from ---- */

static void find_device(const pki_peak_wish *wish, const pki_peak_place *place, pki_peak *peak)
{
    const pki_device_limits *d = pki_device_find(place->gpu);
    size_t count = PKI_MAX(place->gpus, 1);
    if (!place->gpu[0])
        snprintf(peak->source, sizeof peak->source,
                 "this process used devices whose model is unknown: "
                 "peak=PRECISION:OPERATIONS_PER_SECOND says what they can do");
    else if (!d)
        snprintf(peak->source, sizeof peak->source,
                 "%s is not in the table of data sheets: peak=PRECISION:OPERATIONS_PER_SECOND says "
                 "what it can do",
                 place->gpu);
    else if (!wish->precision[0])
        snprintf(peak->source, sizeof peak->source,
                 "%s has a peak for each precision, and none was named: peak=bf16, for example",
                 place->gpu);
    else if (of_device(d, wish->precision) <= 0)
        snprintf(peak->source, sizeof peak->source, "the %s has no figure for %s", d->source,
                 wish->precision);
    else {
        peak->flops = (double)count * of_device(d, wish->precision);
        snprintf(peak->source, sizeof peak->source, "%zu x %s, dense, by the %s", count, d->name,
                 d->source);
    }
}

static void describe_processors(const pki_peak_wish *wish, const pki_peak_place *place,
                                pki_peak *peak)
{
    time_t when = (time_t)place->machine->measured;
    struct tm utc;
    memset(&utc, 0, sizeof utc);
    gmtime_r(&when, &utc);
    snprintf(peak->source, sizeof peak->source,
             "%llu processor%s of %s, as pk machine measured on %d-%02d-%02d%s",
             (unsigned long long)place->processors, place->processors == 1 ? "" : "s",
             place->machine->host, utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
             wish->precision[0] ? "" : "; single precision, since no other was named");
}

static void find_processors(const pki_peak_wish *wish, const pki_peak_place *place, pki_peak *peak)
{
    const char *precision = wish->precision[0] ? wish->precision : USUAL;
    bool is_double = strcmp(precision, "fp64") == 0;
    const char *name = is_double ? PKI_LIMIT_DOUBLE : PKI_LIMIT_SINGLE;
    if (!is_double && strcmp(precision, "fp32") != 0) {
        snprintf(peak->source, sizeof peak->source,
                 "no peak of processors in %s is measured: peak=%s:OPERATIONS_PER_SECOND states it",
                 precision, precision);
        return;
    }
    if (!place->machine) {
        snprintf(peak->source, sizeof peak->source,
                 "what the processors can do is not known (%s): pk machine measures it",
                 place->no_machine);
        return;
    }
    double one = (double)pki_machine_best(place->machine, name, false);
    double all = (double)pki_machine_best(place->machine, name, true);
    peak->flops = PKI_MIN((double)place->processors * one, PKI_MAX(one, all));
    snprintf(peak->precision, sizeof peak->precision, "%s", precision);
    if (peak->flops > 0)
        describe_processors(wish, place, peak);
    else
        snprintf(peak->source, sizeof peak->source, "pk machine's file has no peak in %s",
                 precision);
}

void pki_peak_find(const pki_peak_wish *wish, const pki_peak_place *place, pki_peak *peak)
{
    bool by_precision = wish->precision[0] && strcmp(wish->precision, "fp32") != 0 &&
                        strcmp(wish->precision, "fp64") != 0;
    memset(peak, 0, sizeof *peak);
    snprintf(peak->precision, sizeof peak->precision, "%s", wish->precision);
    if (wish->flops > 0) {
        peak->flops = wish->flops;
        snprintf(peak->source, sizeof peak->source, "as the option peak says");
    } else if (place->gpus || (by_precision && place->gpu[0])) {
        find_device(wish, place, peak);
    } else {
        find_processors(wish, place, peak);
    }
}

void pki_utilisation_rate(pki_utilisation *u, const pki_peak *peak)
{
    double possible = peak->flops * (double)u->time / 1e9;
    u->peak = peak->flops;
    u->mfu = possible > 0 ? u->model / possible : 0;
    u->hfu = possible > 0 ? u->hardware / possible : 0;
}

bool pki_utilisation_fill(pki_utilisation *u, const pki_peak *peak)
{
    if (!u->steps)
        return true;
    free(u->precision);
    free(u->source);
    pki_utilisation_rate(u, peak);
    u->precision = strdup(peak->precision);
    u->source = strdup(peak->source);
    return u->precision && u->source;
}

/* ---- regions with bytes and operations beside what the machine can do ---- */

#define MORE_AT_WORK 1.2

/* What so many threads can do. */
typedef struct roof {
    double bandwidth, peak[2];
} roof;

enum { DOUBLE, SINGLE };

static bool is_placed(const pki_region_row *r)
{
    bool on_devices = r->gpu.count || r->kernels.count;
    return r->time.sum > 0 && !on_devices && (r->flops || (r->bytes && r->kind == PK_COMPUTE));
}

bool pki_roofline_wanted(const pki_summary *s)
{
    for (size_t i = 0; i < s->region_count; i++)
        if (is_placed(&s->regions[i]))
            return true;
    return false;
}

/* All processors do no less than one, whatever a noisy moment has said. */
static double of_threads(double one, double all, double threads)
{
    return PKI_MIN(threads * one, PKI_MAX(one, all));
}

static roof roof_of(const pki_roofline *r, double threads)
{
    return (roof){of_threads(r->bandwidth_one, r->bandwidth_all, threads),
                  {of_threads(r->double_one, r->double_all, threads),
                   of_threads(r->single_one, r->single_all, threads)}};
}

/* The achieved share of the attainable, and which of the two it is bound by. */
static double share_of(const pki_roofline_row *row, const roof *limits, int precision, bool *memory)
{
    double by_memory = row->bytes_per_second / limits->bandwidth;
    double by_compute = row->flops_per_second / limits->peak[precision];
    *memory = by_memory > by_compute;
    return PKI_MAX(by_memory, by_compute);
}

static bool place_region(const pki_roofline *r, const pki_region_row *region, pki_roofline_row *row)
{
    double seconds = region->time.sum / 1e9;
    double threads = PKI_MIN(PKI_MAX(region->threads, 1), (double)r->processors);
    roof limits = roof_of(r, threads);
    *row = (pki_roofline_row){.region = strdup(region->name),
                              .share = (double)region->self,
                              .threads = threads,
                              .bytes_per_second = threads * (double)region->bytes / seconds,
                              .flops_per_second = threads * (double)region->flops / seconds};
    if (region->bytes)
        row->intensity = (double)region->flops / (double)region->bytes;
    row->all_processors = row->flops_per_second > MORE_AT_WORK * limits.peak[SINGLE];
    if (row->all_processors)
        limits = roof_of(r, (double)r->processors);
    row->of_double = share_of(row, &limits, DOUBLE, &row->memory_bound_double);
    row->of_single = share_of(row, &limits, SINGLE, &row->memory_bound_single);
    return row->region != NULL;
}

static bool fill_limits(const pki_machine *m, pki_roofline *r)
{
    *r = (pki_roofline){.measured = PKI_MAX(m->measured, 1),
                        .host = strdup(m->host),
                        .cpu = strdup(m->cpu),
                        .processors = m->processors,
                        .bandwidth_one = (double)pki_machine_best(m, PKI_LIMIT_TRIAD, false),
                        .bandwidth_all = (double)pki_machine_best(m, PKI_LIMIT_TRIAD, true),
                        .double_one = (double)pki_machine_best(m, PKI_LIMIT_DOUBLE, false),
                        .double_all = (double)pki_machine_best(m, PKI_LIMIT_DOUBLE, true),
                        .single_one = (double)pki_machine_best(m, PKI_LIMIT_SINGLE, false),
                        .single_all = (double)pki_machine_best(m, PKI_LIMIT_SINGLE, true)};
    return r->host && r->cpu;
}

/* Each row's part of the self time of all regions. */
static void fill_shares(const pki_summary *s, pki_roofline *r)
{
    double all = 0;
    for (size_t i = 0; i < s->region_count; i++)
        all += (double)s->regions[i].self;
    for (size_t i = 0; i < r->row_count; i++)
        r->rows[i].share = all > 0 ? r->rows[i].share / all : 0;
}

bool pki_roofline_fill(const pki_machine *m, pki_summary *s)
{
    pki_roofline *r = &s->roofline;
    if (!pki_roofline_wanted(s))
        return true;
    bool filled = fill_limits(m, r);
    r->rows = calloc(s->region_count, sizeof *r->rows);
    /* A file that lacks one of them can say nothing of it. */
    if (!(r->bandwidth_one > 0 && r->double_one > 0 && r->single_one > 0))
        r->measured = 0;
    for (size_t i = 0; filled && r->rows && r->measured && i < s->region_count; i++)
        if (is_placed(&s->regions[i]))
            filled = place_region(r, &s->regions[i], &r->rows[r->row_count++]);
    fill_shares(s, r);
    return filled && r->rows;
}
