/* lib/out/report/communication.c - of the text report: communicators, files and energy */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "comm/model/communicator.h"
#include "out/columns.h"
#include "out/report/sections.h"

/* ---- What the run cost beside time: files, energy ---- */

#define NAME 28

static double rate(uint64_t bytes, uint64_t ns)
{
    return ns ? (double)bytes * 1e9 / (double)ns : 0;
}

static void put_bytes(const char *what, uint64_t chars, uint64_t calls, uint64_t device,
                      double best, uint64_t steps, FILE *file)
{
    char per_step[192] = "", at_best[96] = "";
    if (steps)
        snprintf(per_step, sizeof per_step, ", %s in %s calls a step",
                 pki_figure_scaled((double)chars / (double)steps, "B").text,
                 pki_figure_scaled((double)calls / (double)steps, "").text);
    if (best > 0)
        snprintf(at_best, sizeof at_best, ", at best %s", pki_figure_scaled(best, "B/s").text);
    pki_report_print(file, "%s %s in %s calls%s; %s of it %s a device%s", what,
                     pki_figure_scaled((double)chars, "B").text, COUNT(calls), per_step,
                     pki_figure_scaled((double)device, "B").text, *what == 'r' ? "from" : "for",
                     at_best);
}

static void put_regions(const pki_summary *s, FILE *file)
{
    for (size_t i = 0; i < s->region_count; i++) {
        const pki_region_row *r = &s->regions[i];
        if (!r->bytes || (r->kind != PK_IO && r->kind != PK_DATA) || !r->time.count)
            continue;
        fputs("  ", file);
        pki_put_left(file, r->name, NAME);
        pki_report_cell(file, pki_kind_names[r->kind], 5);
        pki_report_cell(file, COUNT(r->time.count), 9);
        pki_report_cell(file, pki_figure_scaled((double)r->bytes, "B").text, 10);
        pki_report_cell(file, pki_figure_scaled(rate(r->bytes, (uint64_t)r->time.sum), "B/s").text,
                        11);
        fputc('\n', file);
    }
}

static void put_exposed(const pki_summary *s, const pki_io_summary *io, FILE *file)
{
    if (io->exposed + io->hidden)
        pki_report_print(
            file,
            "regions of kind io: %s exposed, on the thread that makes steps; %s hidden, "
            "on others",
            TIME((double)io->exposed), TIME((double)io->hidden));
    if (io->blocked_known)
        pki_report_print(file, "that thread waited %s for devices", TIME((double)io->blocked));
    if (io->saves)
        pki_report_print(
            file, "%s checkpoints: %s and %s each, one every %s; %s of the run", COUNT(io->saves),
            TIME((double)io->save_time / (double)io->saves),
            pki_figure_scaled((double)io->save_bytes / (double)io->saves, "B").text,
            TIME((double)s->run.wall / (double)io->saves),
            pki_figure_percent(s->run.wall ? (double)io->save_time / (double)s->run.wall : 0).text);
}

static void put_step_figure(const char *what, const pki_io_step_figure *f, const char *unit,
                            FILE *file)
{
    const double shown[] = {f->each.mean, f->each.p50, f->each.p99, f->each.max};
    if (!(f->each.max > 0))
        return;
    fprintf(file, "  %-16s", what);
    for (size_t i = 0; i < PKI_COUNT_OF(shown); i++)
        pki_report_cell(file, pki_figure_scaled(shown[i], unit).text, 10);
    pki_report_cell(file, COUNT(f->most_step), 10);
    fputc('\n', file);
}

static void put_steps(const pki_io_steps *s, FILE *file)
{
    static const char *const heads[] = {"mean", "p50", "p99", "most", "in step"};
    char shared[128] = "";
    if (!s->steps)
        return;
    fprintf(file, "\n  %-16s", "a step");
    for (size_t i = 0; i < PKI_COUNT_OF(heads); i++)
        pki_report_cell(file, heads[i], 10);
    fputc('\n', file);
    put_step_figure("read", &s->read, "B", file);
    put_step_figure("written", &s->written, "B", file);
    put_step_figure("from devices", &s->device_read, "B", file);
    put_step_figure("for devices", &s->device_written, "B", file);
    put_step_figure("calls", &s->operations, "", file);
    if (s->alone < s->steps)
        snprintf(shared, sizeof shared,
                 "; %s of them share readings, and have the mean of theirs each",
                 COUNT(s->steps - s->alone));
    pki_report_print(file, "%s of %s steps read from a device or wrote for one (%s)%s",
                     COUNT(s->device), COUNT(s->steps),
                     pki_figure_percent((double)s->device / (double)s->steps).text, shared);
}

static void put_files(const pki_summary *s, FILE *file)
{
    const pki_io_summary *io = &s->io;
    if (!io->asked)
        return;
    pki_report_title(file, "FILES");
    if (io->why_not && *io->why_not) {
        pki_report_print(file, "bytes and calls are unknown: %s", io->why_not);
    } else {
        put_bytes("read", io->read_chars, io->read_calls, io->read_device, io->best_read,
                  s->steps.all.count, file);
        put_bytes("written", io->write_chars, io->write_calls, io->write_device, io->best_write,
                  s->steps.all.count, file);
    }
    put_regions(s, file);
    put_exposed(s, io, file);
    put_steps(&io->steps, file);
}

/* ---- energy ---- */

static const char *kind_shown(const char *kind)
{
    bool run = strncmp(kind, PKI_ENERGY_RUN, sizeof PKI_ENERGY_RUN - 1) == 0;
    kind += run ? sizeof PKI_ENERGY_RUN - 1 : 0;
    return *kind ? kind : run ? "the run" : "steps";
}

static void put_energy_row(const pki_energy_row *r, FILE *file)
{
    fputs("  ", file);
    pki_put_left(file, r->counter, 18);
    pki_put_left(file, kind_shown(r->step_kind), 14);
    if (r->refused) {
        fprintf(file, "  shorter than 10 periods of %s\n", TIME((double)r->period));
        return;
    }
    pki_report_cell(file, pki_figure_scaled(r->joules, "J").text, 8);
    pki_report_cell(file, pki_figure_scaled(r->error, "J").text, 8);
    pki_report_cell(file, pki_figure_scaled(r->watts, "W").text, 8);
    pki_report_cell(file, r->steps ? pki_figure_scaled(r->per_step, "J").text : "-", 8);
    pki_report_cell(file, r->items ? pki_figure_scaled(r->per_item, "J").text : "-", 8);
    fputc('\n', file);
}

static void put_energy(const pki_energy_summary *e, FILE *file)
{
    if (!e->asked)
        return;
    pki_report_title(file, "ENERGY");
    if (e->why_not && *e->why_not)
        pki_report_print(file, "%s", e->why_not);
    if (e->row_count)
        fputs("  counter           of              energy       +-    power   a step  an item\n",
              file);
    for (size_t i = 0; i < e->row_count; i++)
        put_energy_row(&e->rows[i], file);
}

/* ---- goodput ---- */

static void put_goodput(const pki_goodput_summary *g, FILE *file)
{
    if (!g->up)
        return;
    pki_report_title(file, "GOODPUT");
    pki_report_print(file, "%s since the process's start; over restarts: pk job, of the state file",
                     TIME((double)g->up));
    for (size_t i = 0; i < PKI_PARTS; i++) {
        if (!g->parts[i])
            continue;
        fprintf(file, "  %-12s", pki_part_names[i]);
        pki_report_cell(file, TIME((double)g->parts[i]), 10);
        pki_report_cell(file, pki_figure_percent((double)g->parts[i] / (double)g->up).text, 8);
        fputc('\n', file);
    }
    if (g->recomputed)
        pki_report_print(file, "%s of %s steps repeated work that an earlier run had lost",
                         COUNT(g->recomputed), COUNT(g->steps));
}

void pki_report_costs(const pki_summary *s, FILE *file)
{
    put_files(s, file);
    put_energy(&s->energy, file);
    put_goodput(&s->goodput, file);
}

/* ---- communicators and what was done on them ---- */

#define OPERATION 15 /* columns of its name */
#define REGION 22
#define LIBRARY 8
#define ROWS_MOST 24
#define REGIONS_MOST 8
#define SLOWEST_MOST 5

static void put_cell(FILE *file, const char *text, size_t width)
{
    fputc(' ', file);
    pki_put_right(file, text, width);
}

/* "16 KiB": the classes are powers of two. */
static pki_figure size_text(uint64_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned unit = 0;
    pki_figure f;
    while (size >= 1024 && unit + 1 < PKI_COUNT_OF(units)) {
        size /= 1024;
        unit++;
    }
    snprintf(f.text, sizeof f.text, "%" PRIu64 " %s", size, units[unit]);
    return f;
}

static pki_figure share_text(uint64_t part, uint64_t whole)
{
    return pki_figure_percent(whole ? (double)part / (double)whole : 0);
}

/* ---- one communicator ---- */

/* The one place where a run that hangs differs from one that is slow. */
static void put_progress(const pki_comm_row *c, FILE *file)
{
    if (c->completed == c->enqueued && !c->under_way)
        return;
    pki_report_print(
        file,
        "not all has completed: operation %" PRIu64 " was the last one enqueued, %" PRIu64
        " started, %" PRIu64 " completed; %s under way",
        c->enqueued, c->started, c->completed, c->under_way ? COUNT(c->under_way) : "none");
}

/* Of what a stream did the program waits elsewhere, if at all: the GPU's figures have what computed
 * meanwhile. */
static void put_amount(const pki_comm_row *c, FILE *file)
{
    uint64_t busy = c->busy ? c->busy : c->time; /* in reports of older versions */
    uint64_t waited = c->busy ? c->waited : c->exposed, hidden = busy > waited ? busy - waited : 0;
    if (c->on_stream)
        pki_report_print(file, "  %s in %s, timed on their streams; at most %" PRIu32 " at once",
                         pki_figure_scaled((double)c->bytes, "B").text,
                         pki_figure_time((double)c->time).text, c->in_flight);
    else
        pki_report_print(
            file, "  %s in %s, of which %s waited for, %s hidden; at most %" PRIu32 " at once",
            pki_figure_scaled((double)c->bytes, "B").text, pki_figure_time((double)busy).text,
            pki_figure_time((double)waited).text, share_text(hidden, busy).text, c->in_flight);
}

static void put_comm(const pki_comm_row *c, FILE *file)
{
    fputs("  ", file);
    pki_put_left(file, c->name, REGION);
    fputc(' ', file);
    pki_put_left(file, c->library, LIBRARY);
    fprintf(file, " rank %" PRId32 " of %" PRId32 ": %s operations\n", c->rank, c->size,
            COUNT(c->calls));
    put_amount(c, file);
    put_progress(c, file);
}

/* GB/s in six columns: what MPI moves over a slow wire is a few thousandths, 8 bytes that wait for
 * others a few millionths. */
static pki_figure bandwidth_text(double value)
{
    pki_figure f = {"-"};
    long milli = value < 1e6 ? lround(value * 1000) : 0, micro = lround(value * 1e6);
    int power = value > 0 ? (int)floor(log10(value)) : 0;
    long tenths = value > 0 ? lround(value / pow(10, power - 1)) : 0;
    if (tenths == 100) { /* rounded up */
        tenths = 10;
        power++;
    }
    if (value >= 100 && value < 1e6)
        snprintf(f.text, sizeof f.text, "%ld", lround(value));
    else if (value >= 10 && value < 100)
        snprintf(f.text, sizeof f.text, "%ld.%ld", lround(value * 10) / 10,
                 lround(value * 10) % 10);
    else if (value >= 0.1 && value < 10)
        snprintf(f.text, sizeof f.text, "%ld.%03ld", milli / 1000, milli % 1000);
    else if (value >= 0.001 && value < 0.1)
        snprintf(f.text, sizeof f.text, ".%05ld", micro / 10);
    else if (value >= 1e-9 && value < 0.001)
        snprintf(f.text, sizeof f.text, "%ld.%lde%d", tenths / 10, tenths % 10, power);
    else if (value >= 0 && value < 1e-9)
        snprintf(f.text, sizeof f.text, "0");
    return f;
}

static void put_bandwidth(const pki_dist *d, double value, FILE *file)
{
    put_cell(file, d->count ? bandwidth_text(value).text : "-", 6);
}

static void put_row(const pki_operation_row *r, FILE *file)
{
    fputs("    ", file);
    pki_put_left(file, pki_comm_op_name(r->op), OPERATION - 2);
    put_cell(file, size_text(r->size).text, 8);
    put_cell(file, COUNT(r->time.count), 6);
    put_cell(file, TIGHT(r->time.p50), 7);
    put_cell(file, TIGHT(r->time.p99), 7);
    put_bandwidth(&r->busbw, r->busbw.min, file);
    put_bandwidth(&r->busbw, r->busbw.p50, file);
    put_bandwidth(&r->busbw, r->busbw.p95, file);
    put_bandwidth(&r->busbw, r->busbw.p99, file);
    fputc('\n', file);
}

static bool is_same_way(const pki_comm_way *a, const pki_comm_way *b)
{
    return strcmp(a->algorithm, b->algorithm) == 0 && strcmp(a->protocol, b->protocol) == 0;
}

PKI_PRINTF(4, 5)
static void put(char *text, size_t size, size_t *n, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text + *n, size - *n, format, list);
    va_end(list);
    *n = PKI_MIN(*n + (size_t)PKI_MAX(length, 0), size - 1);
}

/* Said where it changes: "RING LL128 88.0 % on 8 channels, TREE LL 12.0 % on 2". */
static void put_ways(const pki_operation_row *r, const pki_operation_row *before, FILE *file)
{
    char text[512] = "";
    size_t n = 0;
    bool more = r->way_count > 1 || (before && before->way_count > 1);
    if (!r->way_count || (before && before->op == r->op && before->way_count && !more &&
                          is_same_way(&r->ways[0], &before->ways[0])))
        return;
    for (size_t i = 0; i < r->way_count; i++) {
        const pki_comm_way *way = &r->ways[i];
        put(text, sizeof text, &n, "%s%.24s%s%.24s %s", i ? ", " : "", way->algorithm,
            *way->protocol ? " " : "", way->protocol, share_text(way->calls, r->time.count).text);
        if (way->channels >= 1 && way->channels < 1e6)
            put(text, sizeof text, &n, " on %ld channels", lround(way->channels));
    }
    fputs("      by ", file);
    pki_put_left(file, text, PKI_MIN(pki_width(text), (size_t)PKI_PAGE_WIDTH - 9));
    fputc('\n', file);
}

/* How each operation scales: size against time and bus bandwidth. */
static void put_rows(const pki_comm_summary *s, size_t comm, FILE *file)
{
    size_t shown = 0, all = 0;
    const pki_operation_row *before = NULL;
    fprintf(file, "    %-*s     from  calls     p50     p99  busbw: min  p50    p95    p99\n",
            OPERATION - 2, "operation");
    for (size_t i = 0; i < s->collective_count; i++) {
        if (s->collectives[i].comm != comm)
            continue;
        if (all++ < ROWS_MOST) {
            put_row(&s->collectives[i], file);
            put_ways(&s->collectives[i], before, file);
            before = &s->collectives[i];
            shown++;
        }
    }
    if (all > shown)
        fprintf(file, "    ... and %zu more\n", all - shown);
}

/* ---- over all ---- */

static void communication_put_regions(const pki_comm_summary *s, FILE *file)
{
    fprintf(file, "\n  %-*s %-*s  calls   total waited%%     p50     p99\n", REGION, "in region",
            OPERATION, "operation");
    for (size_t i = 0; i < s->region_count && i < REGIONS_MOST; i++) {
        const pki_comm_region_row *r = &s->regions[i];
        double share = r->time.sum > 0 ? (double)r->exposed / r->time.sum : 0;
        fputs("  ", file);
        pki_put_left(file, *r->region ? r->region : "(none)", REGION);
        fputc(' ', file);
        pki_put_left(file, pki_comm_op_name(r->op), OPERATION);
        put_cell(file, COUNT(r->time.count), 6);
        put_cell(file, TIGHT(r->time.sum), 7);
        put_cell(file, s->comms[r->comm].on_stream ? "-" : pki_figure_percent(share).text, 7);
        put_cell(file, TIGHT(r->time.p50), 7);
        put_cell(file, TIGHT(r->time.p99), 7);
        fputc('\n', file);
    }
    if (s->region_count > REGIONS_MOST)
        fprintf(file, "  ... and %zu more\n", s->region_count - REGIONS_MOST);
}

static void put_slowest(const pki_comm_summary *s, FILE *file)
{
    fputs("\n  slowest:\n", file);
    for (size_t i = 0; i < s->slowest_count && i < SLOWEST_MOST; i++) {
        const pki_comm_call_row *r = &s->slowest[i];
        char place[128] = "";
        size_t n = 0;
        if (*r->region)
            n = (size_t)snprintf(place, sizeof place, " in %.60s", r->region);
        if (r->in_step)
            snprintf(place + n, sizeof place - n, ", step %s", COUNT(r->step));
        else
            snprintf(place + n, sizeof place - n, " at %s", pki_figure_time((double)r->start).text);
        pki_report_print(file, "  %s %s of %s%s (#%" PRIu64 " on %.40s)",
                         TIGHT((double)r->duration), pki_comm_op_name(r->op),
                         pki_figure_scaled((double)r->bytes, "B").text, place, r->sequence,
                         s->comms[r->comm].name);
    }
}

/* For a rank with devices the two are not the same. */
static bool has_devices(const pki_summary *s)
{
    for (size_t i = 0; i < s->gpu_count; i++)
        if (s->gpus[i].per_step[PKI_GPU_COMM].count)
            return true;
    return false;
}

void pki_report_comm(const pki_summary *summary, FILE *file)
{
    const pki_comm_summary *s = &summary->comm;
    if (s->comm_count == 0)
        return;
    pki_report_title(file, "COMMUNICATION by size, bandwidth in GB/s as nccl-tests count it");
    for (size_t i = 0; i < s->comm_count; i++) {
        put_comm(&s->comms[i], file);
        put_rows(s, i, file);
    }
    if (has_devices(summary))
        pki_report_print(file, "waited for: by the program's threads. What was hidden behind"
                               " computation on a GPU stands above, under that GPU.");
    communication_put_regions(s, file);
    put_slowest(s, file);
    if (s->dropped_events)
        pki_report_print(file,
                         "%s events of NCCL's found no room, %s of them operations that are missing"
                         " here; others miss details",
                         COUNT(s->dropped_events), COUNT(s->dropped_operations));
    if (s->unmeasured)
        pki_report_print(file,
                         "%s operations are missing here: no memory, or too many sorts of them",
                         COUNT(s->unmeasured));
}
