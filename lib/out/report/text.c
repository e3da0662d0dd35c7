#include "measure/overhead.h"
#include "out/json_write.h"
#include "out/report/sections.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

static const char *or_unknown(const char *text, const char *unknown)
{
    return text && text[0] ? text : unknown;
}

/* "2026-11-20 11:22:33 UTC"; "" if unknown. */
static void date_of(char *out, size_t size, uint64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm parts;
    out[0] = '\0';
    if (unix_ns && gmtime_r(&seconds, &parts))
        strftime(out, size, "%Y-%m-%d %H:%M:%S UTC", &parts);
}

static void put_head(const pki_summary *summary, FILE *file)
{
    const pki_run *run = &summary->run;
    bool live = !run->source || !run->source[0] || strcmp(run->source, "session") == 0;
    char date[40], rank[48] = "", pid[24] = "";
    date_of(date, sizeof date, run->start_unix);
    if (run->pid)
        snprintf(pid, sizeof pid, ", pid %" PRIu32, run->pid);
    if (run->world_size > 0)
        snprintf(rank, sizeof rank, ", rank %" PRId32 " of %" PRId32, run->rank, run->world_size);
    pki_report_heading(file, "perfkit %s report", or_unknown(run->version, ""));
    pki_report_print(file, "%s%s%s%s%s%s%s", or_unknown(run->program, "a program"), pid,
                     or_unknown(run->host, "")[0] ? " on " : "", or_unknown(run->host, ""), rank,
                     date[0] ? "; " : "", date);
    pki_report_print(file, "ran %s%s%s%s%s%s", TIME((double)run->wall), run->cpu ? " with " : "",
                     run->cpu ? TIME((double)run->cpu) : "", run->cpu ? " of CPU time" : "",
                     live ? "" : "; made from its ", live ? "" : run->source);
}

static void put_verdicts(const pki_summary *summary, FILE *file)
{
    static const char marks[] = {[PKI_GOOD] = '+', [PKI_NOTE] = '-', [PKI_WARN] = '!'};
    if (summary->verdict_count == 0)
        return;
    pki_report_title(file, "VERDICTS");
    for (size_t i = 0; i < summary->verdict_count; i++) {
        const pki_verdict *verdict = &summary->verdicts[i];
        pki_report_item(file, marks[verdict->severity], "%s: %s", verdict->name, verdict->text);
    }
}

static void put_clock(const pki_run *run, FILE *file)
{
    if (!run->clock || !run->clock[0])
        return;
    pki_report_print(file, "clock: %s at %s, in steps of %s; uncertain by %s, rate off by %s ppm",
                     run->clock, pki_figure_scaled(run->clock_hz, "Hz").text,
                     TIME(run->clock_step_ns), TIME(run->clock_uncertainty_ns),
                     pki_figure_scaled(run->clock_ppm, "").text);
    if (or_unknown(run->clock_reason, "")[0])
        pki_report_print(file,
                         strcmp(run->clock, "monotonic") == 0
                             ? "clock: the processor's counter, which is faster, is not used: %s "
                               "(PK_CLOCK can insist)"
                             : "clock: used as requested, although %s",
                         run->clock_reason);
}

static void put_counts(const pk_counts *c, FILE *file)
{
    pki_report_print(file, "%s regions begun on %s thread%s under %s name%s, %s", COUNT(c->begun),
                     COUNT(c->threads), c->threads == 1 ? "" : "s", COUNT(c->regions),
                     c->regions == 1 ? "" : "s", c->dropped ? "not all recorded" : "none dropped");
    if (c->dropped || c->points_dropped || c->unwritten)
        pki_report_print(
            file, "lost: %s regions (%s nested too deep), %s points, %s unwritten events",
            COUNT(c->dropped), COUNT(c->too_deep), COUNT(c->points_dropped), COUNT(c->unwritten));
    if (c->not_finite)
        pki_report_print(file, "not finite: %s counter values, in no figure", COUNT(c->not_finite));
    if (c->unbalanced || c->stray_ends)
        pki_report_print(file, "unbalanced: %s closed by another's end, %s ends without a begin",
                         COUNT(c->unbalanced), COUNT(c->stray_ends));
}

static void put_overhead(const pki_summary *s, FILE *file)
{
    const pki_overhead *o = &s->overhead;
    if (!(o->total > 0))
        return;
    pki_report_print(file, "perfkit's own time: %s of the %s, %s in all: %s",
                     pki_figure_percent(o->share).text, s->run.cpu ? "process's CPU time" : "run",
                     TIME(o->total), pki_overhead_parts(o).text);
}

static void put_thinned(const pki_summary *s, FILE *file)
{
    const pki_thinned *t = &s->thinned;
    if (t->regions)
        pki_report_print(file,
                         "overhead_max %s: of %s region%s %s calls were counted and not timed (%s "
                         "each), %s timed ones are not in the trace",
                         pki_figure_percent(t->overhead_max).text, COUNT(t->regions),
                         t->regions == 1 ? "" : "s", COUNT(t->untimed),
                         TIME(s->overhead.counted_ns), COUNT(t->untraced));
    if (t->beyond)
        pki_report_print(file,
                         "overhead_max was not held: counting calls alone costs more than that");
}

static void put_recording(const pki_summary *summary, FILE *file)
{
    pki_report_title(file, "RECORDING");
    put_counts(&summary->counts, file);
    pki_report_activities(&summary->activities, file);
    put_overhead(summary, file);
    put_thinned(summary, file);
    put_clock(&summary->run, file);
    if (summary->run.trace_path && summary->run.trace_path[0])
        pki_report_print(file, "trace: %s (%s of events)", summary->run.trace_path,
                         pki_figure_scaled((double)summary->counts.trace_bytes, "B").text);
}

static void put_known(const char *what, const char *a, const char *between, const char *b,
                      FILE *file)
{
    bool first = a && a[0], second = b && b[0];
    if (first || second)
        pki_report_print(file, "%s: %s%s%s", what, first ? a : "", first && second ? between : "",
                         second ? b : "");
}

static void put_revision(const pki_environment *e, FILE *file)
{
    if (e->commit[0])
        pki_report_print(file, "working directory: commit %.12s%s%s", e->commit,
                         e->branch[0] ? " on " : "", e->branch);
}

static void put_environment(const pki_environment *e, FILE *file)
{
    if (!e->memory)
        return;
    pki_report_title(file, "MACHINE AND BUILD");
    pki_report_print(file, "%s%s%s processors, %s of memory; %s on %s",
                     or_unknown(e->cpu, "processor unknown"), ", ", COUNT(e->processors),
                     pki_figure_scaled((double)e->memory, "B").text, e->kernel, e->architecture);
    put_known("GPU", e->gpu, ", driver ", e->driver, file);
    put_known("command", e->command, "", NULL, file);
    put_known("program", e->program_compiler, ", build ID ", e->build_id, file);
    put_known("perfkit", e->compiler, "", NULL, file);
    put_revision(e, file);
}

static void put_backends(const pki_summary *summary, FILE *file)
{
    if (summary->backend_count == 0)
        return;
    pki_report_title(file, "BACKENDS");
    for (size_t i = 0; i < summary->backend_count; i++) {
        const pki_backend_row *backend = &summary->backends[i];
        const char *version = backend->version ? backend->version : "";
        const char *reason = backend->reason ? backend->reason : "";
        pki_report_print(file, "%s: %s%s%s%s%s", backend->name, backend->live ? "on" : "off",
                         version[0] ? " " : "", version, reason[0] ? ", " : "", reason);
    }
}

static void put_sections(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    put_head(summary, file);
    put_verdicts(summary, file);
    pki_report_steps(summary, file);
    pki_report_gpus(summary, options, file);
    pki_report_regions(summary, options, file);
    pki_report_roofline(summary, options, file);
    pki_report_costs(summary, file);
    pki_report_events(summary, file);
    pki_report_requests(summary, file);
    pki_report_spans(summary, options, file);
    pki_report_comm(summary, file);
    pki_report_memory(summary, options, file);
    pki_report_gpu_memory(summary, options, file);
    pki_report_counters(summary, file);
    pki_report_threads(summary, options, file);
    put_recording(summary, file);
    put_environment(&summary->environment, file);
    put_backends(summary, file);
}

int pki_report_text_with(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    pki_plain plain;
    if (!pki_plain_enter(&plain))
        return -ENOMEM;
    pki_report_options how = *options;
    how.top = how.top ? how.top : PKI_REPORT_TOP;
    errno = 0;
    pki_report_begin();
    put_sections(summary, &how, file);
    bool written = fflush(file) == 0 && !ferror(file);
    int error = errno ? errno : EIO;
    pki_plain_leave(&plain);
    return !written ? -error : !pki_report_is_whole() ? -ENOMEM : 0;
}

int pki_report_text(const pki_summary *summary, FILE *file)
{
    return pki_report_text_with(summary, &(pki_report_options){0}, file);
}
