/* lib/out/report/gpu.c - devices, their steps, kernels, and regions on streams. */
#include "out/columns.h"
#include "out/report/sections.h"

#include <inttypes.h>

#define LABEL 26  /* columns of a figure's name */
#define KERNEL 29 /* of a kernel's */
#define LAUNCHER 14
#define REGION 24
#define KERNELS_SHOWN 15

#define PLAIN(n) (pki_figure_scaled(n, "").text)
#define BYTES(n) (pki_figure_scaled(n, "B").text)

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

static void put_value(FILE *file, unit as, double value)
{
    pki_report_cell(file,
                    as == AS_TIME    ? TIME(value)
                    : as == AS_BYTES ? BYTES(value)
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
    put_value(file, row->unit, dist->mean);
    pki_report_cell(file, row->share && all > 0 ? pki_figure_percent(dist->sum / all).text : "", 8);
    put_value(file, row->unit, dist->p50);
    put_value(file, row->unit, dist->p99);
    put_value(file, row->unit, dist->max);
    fputc('\n', file);
}

/* ---- over the run ---- */

static void put_copies(const pki_gpu_copies *copies, const char *direction, FILE *file)
{
    if (copies->count)
        pki_report_print(
            file, "%s: %s in %s cop%s, %s", direction, BYTES((double)copies->bytes),
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

static void put_regions(const pki_summary *summary, const pki_report_options *options, FILE *file)
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

void pki_report_gpus(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    for (size_t i = 0; i < summary->gpu_count; i++)
        put_gpu(&summary->gpus[i], file);
    put_kernels(summary, options, file);
    put_regions(summary, options, file);
}

void pki_report_activities(const pki_activity_summary *a, FILE *file)
{
    if (a->count == 0)
        return;
    pki_report_print(file, "%s activit%s of devices and libraries%s", COUNT(a->count),
                     a->count == 1 ? "y" : "ies",
                     a->unwritten + a->late + a->unmeasured == 0 ? ""
                                                                 : ", not all in every figure");
    if (a->unwritten + a->late + a->unmeasured)
        pki_report_print(
            file,
            "%s of them not in the trace, %s reported too late for their step, %s without"
            " memory for all figures",
            COUNT(a->unwritten), COUNT(a->late), COUNT(a->unmeasured));
    if (a->overhead_count)
        pki_report_print(file, "CUPTI's overhead, by its own account: %s in %s pieces",
                         TIME((double)a->overhead), COUNT(a->overhead_count));
}
