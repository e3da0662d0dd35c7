/* tools/report/brief.c - `pk report --brief`: what was found, in few lines
 * (docs/internals/report-format.md) */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"
#include "out/chrome/events.h"
#include "report/report.h"

#define VERDICTS 14
#define REGIONS 12
#define SLOWEST 3
#define OUTSIDE 4
#define CAUSES 8
#define PATHS 8
#define COMMANDS 5
_Static_assert(4 + VERDICTS + REGIONS + 2 * SLOWEST + OUTSIDE + CAUSES + PATHS + COMMANDS <= 61,
               "it is brief: no file has slow steps and is a capture");

/* ---- the run ---- */

static void put_run(const pki_summary *s, FILE *to)
{
    const pki_run *run = &s->run;
    pki_brief_open(to, s->capture.captured ? "capture" : "report");
    pki_brief_int(to, "schema", PKI_BRIEF_SCHEMA);
    pki_brief_text(to, "program", run->program);
    pki_brief_text(to, "host", run->host);
    if (run->world_size) {
        pki_brief_int(to, "rank", run->rank);
        pki_brief_int(to, "ranks", run->world_size);
    }
    pki_brief_int(to, "wall_ns", (double)run->wall);
    if (!s->capture.captured) /* which is made of events */
        pki_brief_int(to, "cpu_ns", (double)run->cpu);
    pki_brief_int(to, "threads", (double)s->thread_count);
    pki_brief_int(to, "dropped", (double)s->counts.dropped);
    pki_brief_word(to, "complete", run->complete ? "yes" : "no");
    pki_brief_text(to, "commit", s->environment.commit);
    pki_brief_close(to);
}

static void put_kinds(const uint64_t kinds[PKI_SHARES], FILE *to)
{
    double all = 0;
    for (size_t k = 0; k < PKI_SHARES; k++)
        all += (double)kinds[k];
    for (size_t k = 0; all > 0 && k < PKI_SHARES; k++)
        if (kinds[k])
            pki_brief_real(to, pki_kind_names[k], (double)kinds[k] / all);
}

static void put_steps(const pki_summary *s, FILE *to)
{
    const pki_dist *steady = &s->steps.steady;
    if (s->whole_run.time) {
        pki_brief_open(to, "shares");
        put_kinds(s->whole_run.kinds, to);
        pki_brief_close(to);
    }
    if (!steady->count)
        return;
    pki_brief_open(to, "step");
    pki_brief_int(to, "count", (double)s->steps.count);
    pki_brief_int(to, "warmup", (double)s->steps.warmup);
    pki_brief_int(to, "p50_ns", steady->p50);
    pki_brief_int(to, "p99_ns", steady->p99);
    pki_brief_int(to, "max_ns", steady->max);
    pki_brief_real(to, "drift", s->steps.drift);
    pki_brief_close(to);
    pki_brief_open(to, "shares");
    put_kinds(s->steps.kinds, to);
    pki_brief_close(to);
}

static void put_verdicts(const pki_summary *s, FILE *to)
{
    for (size_t i = 0; i < s->verdict_count && i < VERDICTS; i++) {
        const pki_verdict *v = &s->verdicts[i];
        pki_brief_open(to, "verdict");
        pki_brief_word(to, "severity", pki_brief_severity(v->severity));
        pki_brief_word(to, "name", v->name);
        pki_brief_real(to, "value", v->value);
        pki_brief_real(to, "threshold", v->threshold);
        pki_brief_text(to, "text", v->text);
        pki_brief_close(to);
    }
}

static void put_regions(const pki_summary *s, FILE *to)
{
    double all = 0;
    for (size_t i = 0; i < s->region_count; i++)
        all += (double)s->regions[i].self;
    for (size_t i = 0; i < s->region_count && i < REGIONS; i++) {
        const pki_region_row *r = &s->regions[i];
        pki_brief_open(to, "region");
        pki_brief_real(to, "self", all > 0 ? (double)r->self / all : 0);
        if (s->steps.steady.count)
            pki_brief_real(to, "of_step", r->step_share);
        pki_brief_int(to, "calls", (double)r->time.count);
        pki_brief_int(to, "p50_ns", r->time.p50);
        pki_brief_int(to, "p99_ns", r->time.p99);
        pki_brief_int(to, "max_ns", r->time.max);
        pki_brief_word(to, "kind", pki_kind_names[r->kind]);
        pki_brief_text(to, "name", r->name);
        pki_brief_close(to);
    }
}

/* ---- what stands out ---- */

static void put_slowest(const pki_summary *s, FILE *to)
{
    for (size_t i = 0; i < s->steps.slowest_count && i < SLOWEST; i++) {
        const pki_step_row *row = &s->steps.slowest[i];
        pki_brief_open(to, "slow");
        pki_brief_int(to, "step", (double)row->index);
        pki_brief_int(to, "took_ns", (double)row->duration);
        if (row->part_count) {
            pki_brief_int(to, "more_ns", (double)row->parts->self - row->parts->usual);
            pki_brief_text(to, "in", row->parts->name);
        }
        pki_brief_close(to);
    }
    for (size_t i = 0; i < s->slow_steps.cause_count && i < SLOWEST; i++) {
        const pki_slow_cause *c = &s->slow_steps.causes[i];
        pki_brief_open(to, "slow-cause");
        pki_brief_int(to, "steps", (double)c->steps);
        pki_brief_int(to, "more_ns", c->ns);
        pki_brief_word(to, "cause", c->cause);
        pki_brief_text(to, "by", c->by);
        pki_brief_close(to);
    }
}

static void put_outside(const pki_summary *s, FILE *to)
{
    for (size_t i = 0; i < s->outside.count && i < OUTSIDE; i++) {
        const pki_outside_row *r = &s->outside.rows[i];
        pki_brief_open(to, "outside");
        pki_brief_real(to, "of_cpu", (double)r->ns / (double)PKI_MAX(s->outside.sampled, 1u));
        pki_brief_text(to, "function", r->function);
        pki_brief_text(to, "place", r->place);
        pki_brief_text(to, "caller", r->caller);
        pki_brief_close(to);
    }
}

/* ---- why a captured step took longer ---- */

static void put_step_beside(const pki_summary *s, FILE *to)
{
    const pki_beside *b = &s->beside;
    pki_brief_open(to, "why");
    pki_brief_text(to, "reason", s->capture.reason);
    pki_brief_int(to, "step", (double)b->step);
    pki_brief_int(to, "took_ns", (double)b->took);
    pki_brief_int(to, "usual_ns", b->usual);
    pki_brief_int(to, "unexplained_ns", b->unexplained);
    pki_brief_close(to);
}

/* What is counted; of work the cause has it itself. */
static const char *counted(const pki_cause *c)
{
    static const struct {
        const char *cause, *of;
    } all[] = {{PKI_PAGE_FAULTS, "page faults"},
               {PKI_WAITS_MEMORY, "pages read back"},
               {PKI_NUMA, "pages moved"},
               {PKI_COMPACTED, "pages compacted or split"}};
    for (size_t i = 0; i < PKI_COUNT_OF(all); i++)
        if (strcmp(c->cause, all[i].cause) == 0)
            return all[i].of;
    return c->object;
}

static void put_cause(const pki_cause *c, FILE *to)
{
    const char *of = c->now > 0 ? counted(c) : "";
    pki_brief_open(to, "cause");
    pki_brief_int(to, "more_ns", c->ns);
    pki_brief_word(to, "cause", c->cause);
    pki_brief_word(to, "outside_program", c->outside ? "yes" : "no");
    if (c->now > 0) {
        pki_brief_real(to, "now", c->now);
        pki_brief_real(to, "usual", c->usual);
        pki_brief_text(to, "of", of);
    }
    pki_brief_text(to, "region", c->region);
    pki_brief_text(to, "function", c->function);
    pki_brief_text(to, "caller", c->caller);
    pki_brief_text(to, "call", c->call);
    if (of != c->object)
        pki_brief_text(to, "object", c->object);
    pki_brief_text(to, "by", c->by);
    pki_brief_text(to, "by_region", c->by_region);
    pki_brief_close(to);
}

static void put_path(const pki_path_row *r, FILE *to)
{
    pki_brief_open(to, "path");
    pki_brief_int(to, "more_ns", (double)r->self - r->usual);
    pki_brief_int(to, "self_ns", (double)r->self);
    pki_brief_int(to, "usual_ns", r->usual);
    pki_brief_int(to, "blocked_ns", (double)r->blocked);
    pki_brief_int(to, "calls", (double)r->calls);
    pki_brief_text(to, "where", r->where);
    pki_brief_text(to, "name", *r->path ? r->path : "(outside regions)");
    pki_brief_close(to);
}

static void put_why(const pki_summary *s, FILE *to)
{
    const pki_beside *b = &s->beside;
    if (!b->took)
        return;
    put_step_beside(s, to);
    for (size_t i = 0; i < b->cause_count && i < CAUSES; i++)
        put_cause(&b->causes[i], to);
    for (size_t i = 0, put = 0; i < b->path_count && put < PATHS; i++) {
        const pki_path_row *r = &b->paths[i];
        bool idle = r->where[0] && r->kind == PK_WAIT; /* since this step was late */
        if (idle || fabs((double)r->self - r->usual) < 0.02 * fabs((double)b->took - b->usual))
            continue;
        put++;
        put_path(r, to);
    }
}

/* ---- what to look at next ---- */

static bool has_verdict(const pki_summary *s, const char *name)
{
    for (size_t i = 0; i < s->verdict_count; i++)
        if (s->verdicts[i].name && strcmp(s->verdicts[i].name, name) == 0)
            return true;
    return false;
}

/* Is a trace, or was written beside one. */
static char *trace_of(const pki_summary *s, const char *path)
{
    const char *source = s->run.source ? s->run.source : "session";
    if (s->capture.captured || strcmp(source, "session") != 0)
        return (char *)(uintptr_t)path;
    return s->run.trace_path && s->run.trace_path[0] ? s->run.trace_path : NULL;
}

/* The run once more, with these variables; PROGRAM where its command line is not known. */
static void put_again(const pki_summary *s, const char *variables, const char *then, FILE *to)
{
    const char *command = s->environment.command;
    fprintf(to, "next: %s ", variables);
    pki_put_text(to, command && command[0] && !strstr(command, "***") ? command : "PROGRAM");
    fprintf(to, " && pk report --brief %s\n", then);
}

static void put_next(const pki_summary *s, const char *path, FILE *to)
{
    char *file = (char *)(uintptr_t)path, *trace = trace_of(s, path);
    char folder[1024];
    snprintf(folder, sizeof folder, "%.*s", (int)(pki_base_name(path) - path), path);
    char *where = folder[0] ? folder : (char *)(uintptr_t) ".";
    bool slow = has_verdict(s, "unsteady") || has_verdict(s, "slow-steps");
    if (slow && !s->capture.captured)
        put_again(s, "PK_OVERRIDE=1 PK_CAPTURE='slow=1.2' PK_CAPTURE_PATH='slow-%s.json'",
                  "slow-*.json", to);
    if (has_verdict(s, "untracked") && !s->outside.count && !s->capture.captured)
        put_again(s, "PK_OVERRIDE=1 PK_SAMPLES=99 PK_REPORT_PATH=next.json", "next.json", to);
    if (s->run.world_size > 1)
        pki_brief_next(to, "pk job --brief", &where, 1);
    if (trace)
        pki_brief_next(to, "pk report --tree", &trace, 1);
    pki_brief_next(to, "pk report", &file, 1);
}

/* Errors stick to the stream. */
void report_brief(const pki_summary *s, const char *path, FILE *to)
{
    put_run(s, to);
    put_steps(s, to);
    put_verdicts(s, to);
    put_why(s, to);
    put_regions(s, to);
    if (!s->beside.took)
        put_slowest(s, to);
    put_outside(s, to);
    put_next(s, path, to);
}
