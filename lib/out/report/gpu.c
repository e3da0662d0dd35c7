/* lib/out/report/gpu.c - of the text report: devices, their memory, events of calls, the roofline
 */
#include <inttypes.h>
#include <time.h>

#include "measure/costs/events.h"
#include "out/columns.h"
#include "out/report/sections.h"

/* ---- what CUDA has allocated, on which device, and in which regions ---- */

#define NAME 27 /* columns of a region's name */
#define BYTES(n) (pki_figure_scaled((double)(n), "B").text)

static void put_place(const pki_gpu_memory_place *p, FILE *file)
{
    char of_all[128] = "";
    if (p->total)
        snprintf(of_all, sizeof of_all, "; at most %s of %s taken", BYTES(p->most_held),
                 BYTES(p->total));
    pki_report_print(file, "%s: %s live at the end, %s at most (%s into the run)%s", p->place,
                     BYTES(p->live), BYTES(p->peak), TIME((double)p->peak_ns), of_all);
    if (p->in_use)
        pki_report_print(file, "%s: %s in use at most, by all processes, as NVML saw it", p->place,
                         BYTES(p->in_use));
    if (p->most_reserved)
        pki_report_print(
            file,
            "%s: pools had reserved %s at most, %s of it unused then: kept for later, or"
            " in pieces; %s at the end, %s of it in use",
            p->place, BYTES(p->most_reserved), pki_figure_percent(p->unused).text,
            BYTES(p->pool_reserved), BYTES(p->pool_used));
}

static void put_cells(const char *name, size_t width, const uint64_t cells[5], FILE *file)
{
    fputs("  ", file);
    pki_put_left(file, name, width);
    pki_report_cell(file, COUNT(cells[0]), 7);
    for (int i = 1; i < 5; i++)
        pki_report_cell(file, BYTES(cells[i]), 8);
    fputc('\n', file);
}

static void put_kinds(const pki_gpu_memory_place *p, size_t width, FILE *file)
{
    if (p->kind_count)
        fprintf(file, "  %-*s  allocs    bytes     live     peak  at peak\n", (int)width, "kind");
    for (size_t i = 0; i < p->kind_count; i++) {
        const pki_gpu_memory_kind *k = &p->kinds[i];
        put_cells(k->kind, width,
                  (const uint64_t[]){k->allocations, k->bytes, k->live, k->peak, k->at_peak}, file);
    }
}

static void put_regions(const pki_gpu_memory_place *p, size_t width,
                        const pki_report_options *options, FILE *file)
{
    size_t shown = 0, all = 0;
    for (size_t i = 0; i < p->region_count; i++)
        all += pki_report_shows(options, p->regions[i].name);
    if (!all)
        return;
    fprintf(file, "  %-*s  allocs    bytes     live     peak  at peak\n", (int)width, "region");
    for (size_t i = 0; i < p->region_count && shown < options->top; i++) {
        const pki_memory_region *r = &p->regions[i];
        if (!pki_report_shows(options, r->name))
            continue;
        put_cells(r->name && r->name[0] ? r->name : "(outside of regions)", width,
                  (const uint64_t[]){r->allocations, r->bytes, r->live, r->peak, r->at_peak}, file);
        shown++;
    }
    if (all > shown)
        fprintf(file, "  ... and %zu more\n", all - shown);
}

/* One pool's figures are the device's. */
static void put_pools(const pki_gpu_memory_place *p, size_t width,
                      const pki_report_options *options, FILE *file)
{
    size_t shown = 0;
    if (p->pool_count < 2)
        return;
    fprintf(file, "  %-*s  most reserved  in use   unused  reserved   in use\n", (int)width - 8,
            "pool");
    for (; shown < p->pool_count && shown < options->top; shown++) {
        const pki_gpu_pool_row *pool = &p->pools[shown];
        char name[48];
        snprintf(name, sizeof name, "%llu%s", (unsigned long long)pool->pool,
                 pool->gone ? ", given back" : "");
        fputs("  ", file);
        pki_put_left(file, name, width - 8);
        pki_report_cell(file, BYTES(pool->most_reserved), 14);
        pki_report_cell(file, BYTES(pool->used_then), 7);
        pki_report_cell(file, pki_figure_percent(pool->unused).text, 8);
        pki_report_cell(file, BYTES(pool->reserved), 9);
        pki_report_cell(file, BYTES(pool->used), 8);
        fputc('\n', file);
    }
    if (shown < p->pool_count)
        fprintf(file, "  ... and %zu more\n", p->pool_count - shown);
}

static size_t name_room(const pki_gpu_memory_place *p, const pki_report_options *options)
{
    size_t longest = 0;
    for (size_t i = 0; i < p->region_count; i++)
        longest = PKI_MAX(longest, pki_width(p->regions[i].name));
    return pki_report_name_room(options, NAME, longest);
}

/* What makes figures less than exact. */
static void put_doubts(const pki_gpu_memory_summary *m, FILE *file)
{
    if (m->unknown_frees)
        pki_report_print(file, "freed, and allocated before the recording: %s in %s calls",
                         BYTES(m->unknown_freed), COUNT(m->unknown_frees));
    if (m->untied)
        pki_report_print(file,
                         "the region of %s allocations is unknown: they count outside of regions",
                         COUNT(m->untied));
    if (m->pools_beyond)
        pki_report_print(file, "records of pools beyond the first %u at once, not counted: %s", 64u,
                         COUNT(m->pools_beyond));
    if (m->dropped || m->lost || m->missed_frees)
        pki_report_print(
            file,
            "not exact: CUPTI dropped %s records, of whatever kind; %s were not counted,"
            " without a time or for want of memory; %s frees were not seen",
            COUNT(m->dropped), COUNT(m->lost), COUNT(m->missed_frees));
}

void pki_report_gpu_memory(const pki_summary *summary, const pki_report_options *options,
                           FILE *file)
{
    const pki_gpu_memory_summary *m = &summary->gpu_memory;
    if (!m->asked)
        return;
    pki_report_title(file, "DEVICE MEMORY");
    if (m->why_not && m->why_not[0])
        pki_report_print(file, "not recorded: %s", m->why_not);
    else if (!m->place_count)
        pki_report_print(file, "nothing was allocated while it was recorded");
    for (size_t i = 0; i < m->place_count; i++) {
        const pki_gpu_memory_place *p = &m->places[i];
        size_t width = name_room(p, options);
        put_place(p, file);
        put_kinds(p, width, file);
        put_regions(p, width, options, file);
        put_pools(p, width, options, file);
    }
    put_doubts(m, file);
}

/* ---- What the processor and the kernel counted of sampled calls ---- */

#define EVENTS_NAME 18
#define NO_FIGURE "-"

static void put_value(double value, size_t width, FILE *file)
{
    pki_report_cell(file, value < 0 ? NO_FIGURE : pki_figure_scaled(value, "").text, width);
}

/* As a share of what it is the error of. */
static void put_error(double value, double error, FILE *file)
{
    bool known = value > 0 && error >= 0;
    pki_report_cell(file, known ? pki_figure_percent(error / value).text : NO_FIGURE, 8);
}

static const char *region_name(const void *row)
{
    return ((const pki_events_row *)row)->region;
}

static void put_head(const pki_events_summary *e, size_t at, FILE *file)
{
    const pki_events_row *r = &e->rows[at];
    pki_column names = pki_column_near(e->rows, e->row_count, sizeof *e->rows, at, region_name);
    fputs("  ", file);
    pki_put_apart(file, r->region, EVENTS_NAME, &names);
    pki_report_cell(file, COUNT(r->calls), 7);
    pki_report_cell(file, COUNT(r->sampled), 7);
}

static void put_hardware(const pki_events_row *r, FILE *file)
{
    put_value(r->value[PKI_EVENT_INSTRUCTIONS], 7, file);
    put_error(r->value[PKI_EVENT_INSTRUCTIONS], r->error[PKI_EVENT_INSTRUCTIONS], file);
    put_value(r->value[PKI_EVENT_CYCLES], 7, file);
    put_value(r->ratio[PKI_EVENT_IPC], 5, file);
    put_error(r->ratio[PKI_EVENT_IPC], r->ratio_error[PKI_EVENT_IPC], file);
    put_value(r->ratio[PKI_EVENT_CACHE], 6, file);
    put_value(r->ratio[PKI_EVENT_BRANCH], 6, file);
    fputc('\n', file);
}

static void put_software(const pki_events_row *r, FILE *file)
{
    double took = r->value[PKI_EVENT_PROCESSOR];
    pki_report_cell(file, took < 0 ? NO_FIGURE : TIME(took), 9);
    put_error(took, r->error[PKI_EVENT_PROCESSOR], file);
    put_value(r->value[PKI_EVENT_FAULTS], 8, file);
    put_value(r->value[PKI_EVENT_SWITCHES], 9, file);
    put_value(r->value[PKI_EVENT_MIGRATIONS], 10, file);
    fputc('\n', file);
}

/* Percent of the slots, and the largest error of the four in the same. */
static void put_topdown(const pki_events_row *r, FILE *file)
{
    double worst = 0;
    if (!(r->value[PKI_EVENT_SLOTS] > 0)) {
        put_value(-1, 7, file);
        fputc('\n', file);
        return;
    }
    put_value(r->value[PKI_EVENT_SLOTS], 7, file);
    for (pki_event_figure f = PKI_FIGURE_RETIRING; f <= PKI_FIGURE_BACKEND_BOUND; f++) {
        double error = pki_event_error_of(r, f);
        worst = error < 0 || worst < 0 ? -1 : PKI_MAX(worst, error);
        pki_report_cell(file, pki_figure_percent(pki_event_figure_of(r, f)).text, 8);
    }
    pki_report_cell(file, worst < 0 ? NO_FIGURE : pki_figure_percent(worst).text, 7);
    fputc('\n', file);
}

/* Has any region one of these means? */
static bool has(const pki_events_summary *e, int first, int last)
{
    for (size_t i = 0; i < e->row_count; i++)
        for (int j = first; j <= last; j++)
            if (e->rows[i].value[j] >= 0)
                return true;
    return false;
}

static void put_threads(const pki_events_summary *e, FILE *file)
{
    if (e->threads_without)
        pki_report_print(file, "%s threads had none: %s", COUNT(e->threads_without),
                         e->why_threads);
    if (e->threads_lost)
        pki_report_print(file,
                         "%s threads were not sampled any longer: the program has closed their "
                         "descriptors, or the session ended amid a reading",
                         COUNT(e->threads_lost));
    if (e->calls_beyond)
        pki_report_print(file, "at least %s calls were of regions beyond 256 on a thread",
                         COUNT(e->calls_beyond));
}

static void put_missed(const pki_events_summary *e, FILE *file)
{
    uint64_t missed = 0, sampled = 0;
    for (size_t i = 0; i < e->row_count; i++) {
        missed += e->rows[i].missed;
        sampled += e->rows[i].sampled;
    }
    if (missed)
        pki_report_print(file,
                         "%s sampled calls beside %s have no figures: the counters were others' "
                         "meanwhile, or the call had no end of its own",
                         COUNT(missed), COUNT(sampled));
}

static const struct {
    int first, last; /* means that it is of */
    const char *head;
    void (*put)(const pki_events_row *row, FILE *file);
} tables[] = {
    {PKI_EVENT_INSTRUCTIONS, PKI_EVENT_BRANCH_MISSES,
     "  instr.       +-  cycles   IPC       +-  cache branch", put_hardware},
    {PKI_EVENT_PROCESSOR, PKI_EVENT_MIGRATIONS, " processor       +-   faults  switches migrations",
     put_software},
    {PKI_EVENT_SLOTS, PKI_EVENT_SLOTS, "   slots retiring bad spec front-end back-end      +-",
     put_topdown},
};

static void put_rows(const pki_events_summary *e, FILE *file)
{
    for (size_t t = 0; t < PKI_COUNT_OF(tables); t++) {
        if (!has(e, tables[t].first, tables[t].last))
            continue;
        fprintf(file, "  region               calls sampled%s\n", tables[t].head);
        for (size_t i = 0; i < e->row_count; i++) {
            put_head(e, i, file);
            tables[t].put(&e->rows[i], file);
        }
    }
}

/* A file may be older than one of them. */
static void put_why_not(const char *what, const char *why_not, FILE *file)
{
    if (why_not && *why_not)
        pki_report_print(file, "%s events: %s", what, why_not);
}

void pki_report_events(const pki_summary *s, FILE *file)
{
    const pki_events_summary *e = &s->events;
    if (!e->asked)
        return;
    bool hardware = has(e, tables[0].first, tables[0].last);
    bool topdown = has(e, tables[2].first, tables[2].last);
    pki_report_title(file, "EVENTS A CALL");
    put_why_not("hardware", e->why_not_hardware, file);
    put_why_not("software", e->why_not_software, file);
    put_why_not("top-down", e->why_not_topdown, file);
    if (e->row_count)
        pki_report_print(
            file,
            "Means over sampled calls, with what is inside them; +-: 95 %% of samples "
            "would be as near.%s%s",
            hardware ? " cache, branch: misses in 1,000 instructions, in user mode." : "",
            topdown ? " slots: of the pipeline, in user mode, and what became of them; +- is the "
                      "largest of the four errors, in percent of the slots."
                    : "");
    put_rows(e, file);
    put_missed(e, file);
    put_threads(e, file);
}

/* ---- Regions beside the machine's limits ---- */

#define ROOFLINE_NAME 16

static const char *bound(bool memory)
{
    return memory ? "memory" : "compute";
}

static void put_bound(const pki_roofline_row *row, FILE *file)
{
    if (row->memory_bound_double == row->memory_bound_single)
        pki_report_cell(file, bound(row->memory_bound_double), 7);
    else /* in double precision its peak is what it meets first */
        pki_report_cell(file, "both", 7);
}

static const char *roofline_region_name(const void *row)
{
    return ((const pki_roofline_row *)row)->region;
}

static void put_row(const pki_roofline_row *row, size_t name, const pki_column *names, FILE *file)
{
    const char *none = "-";
    fputs("  ", file);
    pki_put_apart(file, row->region, name, names);
    pki_report_cell(file, row->all_processors ? "all" : pki_figure_scaled(row->threads, "").text,
                    7);
    pki_report_cell(file, row->intensity > 0 ? pki_figure_scaled(row->intensity, "").text : none,
                    9);
    pki_report_cell(
        file,
        row->bytes_per_second > 0 ? pki_figure_scaled(row->bytes_per_second, "B/s").text : none, 9);
    pki_report_cell(
        file,
        row->flops_per_second > 0 ? pki_figure_scaled(row->flops_per_second, "F/s").text : none, 9);
    put_bound(row, file);
    fputs("  ", file);
    pki_report_percent(file, row->of_double);
    fputs("  ", file);
    pki_report_percent(file, row->of_single);
    fputc('\n', file);
}

static void put_limits(const pki_roofline *r, FILE *file)
{
    time_t when = (time_t)r->measured;
    struct tm utc;
    char day[16] = "";
    if (gmtime_r(&when, &utc))
        strftime(day, sizeof day, "%Y-%m-%d", &utc);
    pki_report_print(file,
                     "One processor of %s, by pk machine on %s: %s, %s in double precision, %s in "
                     "single; all %s: %s, %s, %s.",
                     r->host, day, pki_figure_scaled(r->bandwidth_one, "B/s").text,
                     pki_figure_scaled(r->double_one, "flop/s").text,
                     pki_figure_scaled(r->single_one, "flop/s").text, COUNT(r->processors),
                     pki_figure_scaled(r->bandwidth_all, "B/s").text,
                     pki_figure_scaled(r->double_all, "flop/s").text,
                     pki_figure_scaled(r->single_all, "flop/s").text);
}

static size_t longest_name(const pki_roofline *r, const pki_report_options *options)
{
    size_t longest = 0;
    for (size_t i = 0; i < r->row_count; i++)
        if (pki_report_shows(options, r->rows[i].region))
            longest = PKI_MAX(longest, pki_width(r->rows[i].region));
    return longest;
}

void pki_report_roofline(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    const pki_roofline *r = &summary->roofline;
    size_t name = pki_report_name_room(options, ROOFLINE_NAME, longest_name(r, options)), shown = 0;
    if (!r->measured || !r->row_count)
        return;
    pki_report_title(file, "ROOFLINE: what regions reach of min(peak, intensity x bandwidth)");
    put_limits(r, file);
    fprintf(file, "  %-*s threads flop/byte     bytes     flops   bound double%% single%%\n",
            (int)name, "region");
    for (size_t i = 0; i < r->row_count; i++)
        if (pki_report_shows(options, r->rows[i].region) && shown++ < options->top) {
            pki_column names =
                pki_column_near(r->rows, r->row_count, sizeof *r->rows, i, roofline_region_name);
            put_row(&r->rows[i], name, &names, file);
        }
    if (shown > options->top)
        fprintf(file, "  ... and %zu more\n", shown - options->top);
}

/* ---- devices, their steps, kernels, and regions on streams ---- */

#define LABEL 26  /* columns of a figure's name */
#define KERNEL 29 /* of a kernel's */
#define LAUNCHER 14
#define REGION 24
#define KERNELS_SHOWN 15

#define PLAIN(n) (pki_figure_scaled(n, "").text)
#define GPU_BYTES(n) (pki_figure_scaled(n, "B").text)

/* ---- a device in the steps ---- */

typedef enum unit { AS_TIME, AS_COUNT, AS_BYTES } unit;

typedef struct figure_row {
    enum pki_gpu_figure figure;
    const char *label;
    unit unit;
    bool share; /* of the step */
} figure_row;

static const figure_row figures[] = {
    {PKI_GPU_BUSY, "busy", AS_TIME, true},
    {PKI_GPU_IDLE, "idle", AS_TIME, true},
    {PKI_GPU_SYNC_GAPS, "  after waits for it", AS_TIME, true},
    {PKI_GPU_LAUNCH_GAPS, "  other gaps up to 50 us", AS_TIME, true},
    {PKI_GPU_LONGEST_GAP, "  longest gap", AS_TIME, true},
    {PKI_GPU_GAPS, "  gaps", AS_COUNT, false},
    {PKI_GPU_KERNELS, "kernels", AS_COUNT, false},
    {PKI_GPU_SHORT_KERNELS, "  shorter than 10 us", AS_COUNT, false},
    {PKI_GPU_COMM, "collectives in flight", AS_TIME, true},
    {PKI_GPU_COMM_HIDDEN, "  hidden: others compute", AS_TIME, true},
    {PKI_GPU_COMM_EXPOSED, "  exposed: none does", AS_TIME, true},
    {PKI_GPU_COPY, "copies", AS_TIME, true},
    {PKI_GPU_COPY_ALONE, "  with no kernel beside", AS_TIME, true},
    {PKI_GPU_H2D_BYTES, "  host to device", AS_BYTES, false},
    {PKI_GPU_D2H_BYTES, "  device to host", AS_BYTES, false},
    {PKI_GPU_D2D_BYTES, "  within the device", AS_BYTES, false},
    {PKI_GPU_P2P_BYTES, "  to other devices", AS_BYTES, false},
    {PKI_GPU_SYNC, "waits for it", AS_TIME, true},
    {PKI_GPU_MEMORY, "memory in use at the end", AS_BYTES, false},
};

static void gpu_put_value(FILE *file, unit as, double value)
{
    pki_report_cell(file,
                    as == AS_TIME    ? TIME(value)
                    : as == AS_BYTES ? GPU_BYTES(value)
                                     : PLAIN(value),
                    9);
}

static void put_figure(const figure_row *row, const pki_gpu_row *gpu, FILE *file)
{
    const pki_dist *dist = &gpu->per_step[row->figure];
    double all = gpu->per_step[PKI_GPU_STEP].sum;
    if (dist->count == 0 || !(dist->sum > 0))
        return;
    fputs("  ", file);
    pki_put_left(file, row->label, LABEL);
    gpu_put_value(file, row->unit, dist->mean);
    pki_report_cell(file, row->share && all > 0 ? pki_figure_percent(dist->sum / all).text : "", 8);
    gpu_put_value(file, row->unit, dist->p50);
    gpu_put_value(file, row->unit, dist->p99);
    gpu_put_value(file, row->unit, dist->max);
    fputc('\n', file);
}

/* ---- over the run ---- */

static void put_copies(const pki_gpu_copies *copies, const char *direction, FILE *file)
{
    if (copies->count)
        pki_report_print(
            file, "%s: %s in %s cop%s, %s", direction, GPU_BYTES((double)copies->bytes),
            COUNT(copies->count), copies->count == 1 ? "y" : "ies",
            copies->time
                ? pki_figure_scaled((double)copies->bytes * 1e9 / (double)copies->time, "B/s").text
                : "no time");
}

static void put_totals(const pki_gpu_row *gpu, FILE *file)
{
    if (gpu->kernels)
        pki_report_print(file, "in all: %s kernel%s, %s of them shorter than 10 us, %s together",
                         COUNT(gpu->kernels), gpu->kernels == 1 ? "" : "s",
                         COUNT(gpu->short_kernels), TIME((double)gpu->kernel_time));
    else if (gpu->spans)
        pki_report_print(file, "in all: %s stream spans", COUNT(gpu->spans));
    if (gpu->graphs)
        pki_report_print(
            file,
            "%s of them CUDA graphs as wholes, %s (%s): kernels, gaps and collectives inside are not"
            " told apart%s (PK_CUPTI_GRAPH_NODES=1 does)",
            COUNT(gpu->graphs), TIME((double)gpu->graph_time),
            pki_figure_percent(pki_gpu_graphs_share(gpu)).text,
            pki_gpu_graphs_told(gpu) ? ", nor hidden and exposed communication" : "");
    if (gpu->collectives)
        pki_report_print(file, "%s collective%s timed by events", COUNT(gpu->collectives),
                         gpu->collectives == 1 ? "" : "s");
    put_copies(&gpu->copies[PKI_H2D], "host to device", file);
    put_copies(&gpu->copies[PKI_D2H], "device to host", file);
    put_copies(&gpu->copies[PKI_D2D], "within the device", file);
    put_copies(&gpu->copies[PKI_P2P], "to other devices", file);
}

static void put_gpu_title(const pki_gpu_row *gpu, FILE *file)
{
    const char *what = gpu->measured ? "kernels and copies, by CUPTI," : "stream spans, by events,";
    if (!gpu->measured && !gpu->spans)
        pki_report_title(file, "GPU %" PRIu32 ": collectives, by events", gpu->device);
    else
        pki_report_title(file, "GPU %" PRIu32 ": %s on %s stream%s", gpu->device, what,
                         COUNT(gpu->streams), gpu->streams == 1 ? "" : "s");
}

static void put_gpu(const pki_gpu_row *gpu, FILE *file)
{
    uint64_t steps = gpu->per_step[PKI_GPU_STEP].count;
    put_gpu_title(gpu, file);
    if (steps) {
        char title[64];
        snprintf(title, sizeof title, "per step, of %s", COUNT(steps));
        fprintf(file, "  %-*s      mean    share       p50       p99       max\n", LABEL, title);
        for (size_t i = 0; i < PKI_COUNT_OF(figures); i++)
            put_figure(&figures[i], gpu, file);
    }
    put_totals(gpu, file);
}

/* ---- kernels ---- */

static const char *kernel_name(const void *row)
{
    const char *name = ((const pki_kernel_row *)row)->name;
    return name ? name : "";
}

static void put_kernel(const pki_kernel_row *kernel, double all, size_t name,
                       const pki_column *names, FILE *file)
{
    fputs("  ", file);
    pki_put_apart(file, kernel_name(kernel), name, names);
    fputc(' ', file);
    pki_put_left(file, kernel->region && kernel->region[0] ? kernel->region : "-", LAUNCHER);
    pki_report_cell(file, COUNT(kernel->time.count), 6);
    pki_report_cell(file, TIGHT(kernel->time.sum), 6);
    pki_report_percent(file, all > 0 ? kernel->time.sum / all : 0);
    pki_report_cell(file, TIGHT(kernel->time.p50), 6);
    pki_report_cell(file, TIGHT(kernel->time.p99), 6);
    fputc('\n', file);
}

static void put_kernels(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    size_t top = options->top == PKI_REPORT_TOP ? KERNELS_SHOWN : options->top;
    size_t count = summary->kernel_count, matching = 0, longest = 0;
    double all = 0;
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        const pki_kernel_row *kernel = &summary->kernels[i];
        all += kernel->time.sum;
        longest = PKI_MAX(longest, pki_width(kernel->name ? kernel->name : ""));
    }
    size_t name = pki_report_name_room(options, KERNEL, longest);
    pki_report_title(file, "KERNELS by total time, and the region that launched most of it");
    fprintf(file, "  %-*s %-*s  calls  total     %%    p50    p99\n", (int)name, "kernel", LAUNCHER,
            "region");
    for (size_t i = 0; i < count; i++)
        if (pki_report_shows(options, summary->kernels[i].name) && matching++ < top) {
            pki_column names =
                pki_column_near(summary->kernels, count, sizeof *summary->kernels, i, kernel_name);
            put_kernel(&summary->kernels[i], all, name, &names, file);
        }
    if (matching > top)
        fprintf(file, "  ... and %zu more\n", matching - top);
}

/* ---- regions on devices ---- */

static void put_dist(const pki_dist *dist, FILE *file)
{
    bool any = dist->count > 0;
    pki_report_cell(file, any ? COUNT(dist->count) : "-", 6);
    pki_report_cell(file, any ? TIGHT(dist->sum) : "", 6);
    pki_report_cell(file, any ? TIGHT(dist->p50) : "", 6);
    pki_report_cell(file, any ? TIGHT(dist->p99) : "", 6);
}

static void put_region(const pki_region_row *region, size_t name, const pki_column *names,
                       FILE *file)
{
    fputs("  ", file);
    pki_put_apart(file, region->name ? region->name : "", name, names);
    put_dist(&region->gpu, file);
    if (region->kernels.count)
        put_dist(&region->kernels, file);
    fputc('\n', file);
}

static bool is_on_device(const pki_region_row *region)
{
    return region->gpu.count > 0 || region->kernels.count > 0;
}

static void gpu_put_regions(const pki_summary *summary, const pki_report_options *options,
                            FILE *file)
{
    size_t matching = 0, count = 0, longest = 0;
    for (size_t i = 0; i < summary->region_count; i++)
        if (is_on_device(&summary->regions[i])) {
            count++;
            longest = PKI_MAX(longest, pki_width(summary->regions[i].name));
        }
    if (count == 0)
        return;
    size_t name = pki_report_name_room(options, REGION - 3, longest);
    pki_report_title(file, "REGIONS on GPUs: spans on streams, and kernels launched in them");
    fprintf(file, "  %-*s  spans  total    p50    p99 kernels total    p50    p99\n", (int)name,
            "region");
    for (size_t i = 0; i < summary->region_count; i++) {
        const pki_region_row *region = &summary->regions[i];
        if (is_on_device(region) && pki_report_shows(options, region->name) &&
            matching++ < options->top) {
            pki_column names = pki_report_region_names(summary->regions, summary->region_count, i);
            put_region(region, name, &names, file);
        }
    }
    if (matching > options->top)
        fprintf(file, "  ... and %zu more\n", matching - options->top);
}

/* ---- what devices were busy with, by their own counters ---- */

#define LOAD_COLUMNS 5 /* the run, usual steps and three other kinds: the report file has all */

static const char *const load_labels[PKI_LOADS] = {
    [PKI_LOAD_SM] = "SMs active",         [PKI_LOAD_OCCUPANCY] = "  warps in them",
    [PKI_LOAD_TENSOR] = "tensor cores",   [PKI_LOAD_FP64] = "FP64 pipe",
    [PKI_LOAD_FP32] = "FP32 pipe",        [PKI_LOAD_FP16] = "FP16 pipe",
    [PKI_LOAD_DRAM] = "memory bandwidth", [PKI_LOAD_NVLINK_IN] = "NVLink in",
    [PKI_LOAD_NVLINK_OUT] = "NVLink out", [PKI_LOAD_PCIE_IN] = "PCIe in",
    [PKI_LOAD_PCIE_OUT] = "PCIe out"};

static const char *load_kind(const char *kind)
{
    bool run = strncmp(kind, PKI_ENERGY_RUN, sizeof PKI_ENERGY_RUN - 1) == 0;
    kind += run ? sizeof PKI_ENERGY_RUN - 1 : 0;
    return *kind ? kind : run ? "the run" : "steps";
}

static size_t load_kinds(const pki_load_summary *load, uint32_t device,
                         const char *kinds[LOAD_COLUMNS])
{
    size_t count = 0;
    for (size_t i = 0; i < load->row_count; i++) {
        const pki_load_row *row = &load->rows[i];
        size_t k = 0;
        while (k < count && strcmp(kinds[k], row->step_kind) != 0)
            k++;
        if (row->device == device && k == count && count < LOAD_COLUMNS)
            kinds[count++] = row->step_kind;
    }
    return count;
}

static void put_load_metric(const pki_load_summary *load, uint32_t device, int m,
                            const char *const *kinds, size_t kind_count, FILE *file)
{
    const pki_load_row *of[LOAD_COLUMNS] = {NULL};
    for (size_t i = 0; i < load->row_count; i++)
        for (size_t k = 0; k < kind_count; k++)
            if (load->rows[i].device == device && strcmp(load->rows[i].step_kind, kinds[k]) == 0 &&
                strcmp(load->rows[i].metric, pki_load_names[m]) == 0)
                of[k] = &load->rows[i];
    if (!of[0] || (m > PKI_LOAD_DRAM && !(of[0]->most > 0)))
        return;
    fputs("  ", file);
    pki_put_left(file, load_labels[m], LABEL);
    for (size_t k = 0; k < kind_count; k++)
        pki_report_cell(file,
                        !of[k]                ? "-"
                        : m < PKI_LOAD_SHARES ? pki_figure_percent(of[k]->mean / 100).text
                                              : pki_figure_scaled(of[k]->mean, "B/s").text,
                        9);
    fputc('\n', file);
}

static void put_load_device(const pki_load_summary *load, uint32_t device, FILE *file)
{
    const char *kinds[LOAD_COLUMNS];
    size_t count = load_kinds(load, device, kinds);
    pki_report_title(file, "GPU %" PRIu32 ": what it was busy with, by its counters (GPM)", device);
    fputs("  ", file);
    pki_put_left(file, "means over time", LABEL);
    for (size_t k = 0; k < count; k++) {
        char text[10];
        snprintf(text, sizeof text, "%.8s", load_kind(kinds[k]));
        pki_report_cell(file, text, 9);
    }
    fputc('\n', file);
    for (int m = 0; m < PKI_LOADS; m++)
        put_load_metric(load, device, m, kinds, count, file);
}

static void put_loads(const pki_load_summary *load, FILE *file)
{
    for (size_t i = 0; i < load->row_count; i++)
        if (i == 0 || load->rows[i].device != load->rows[i - 1].device)
            put_load_device(load, load->rows[i].device, file);
    if (load->mixed)
        pki_report_print(file, "%s of %s intervals lie in steps of several kinds, or in none.",
                         COUNT(load->mixed), COUNT(load->intervals));
}

static void put_gpu_events(const pki_gpu_event_summary *events, FILE *file)
{
    if (!events->count)
        return;
    pki_report_title(file, "WHAT GPUS SAID OF THEMSELVES");
    for (size_t i = 0; i < events->row_count; i++) {
        const pki_gpu_event_row *row = &events->rows[i];
        pki_report_print(file, "GPU %" PRIu32 ": %s, %s time%s, first after %s%s%s", row->device,
                         row->text, COUNT(row->count), row->count == 1 ? "" : "s",
                         TIME((double)row->first), row->time ? ", together " : "",
                         row->time ? TIME((double)row->time) : "");
    }
    if (events->beyond)
        pki_report_print(file, "and %s more", COUNT(events->beyond));
}

void pki_report_gpus(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    for (size_t i = 0; i < summary->gpu_count; i++)
        put_gpu(&summary->gpus[i], file);
    put_loads(&summary->gpu_load, file);
    put_gpu_events(&summary->gpu_events, file);
    put_kernels(summary, options, file);
    gpu_put_regions(summary, options, file);
}
