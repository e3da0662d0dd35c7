/* What the run cost beside time: files, energy. */
#include "out/report/sections.h"

#include <string.h>

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
