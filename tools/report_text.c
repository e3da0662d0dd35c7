#include "report_text.h"

#include "memory.h"
#include "out/report/sections.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME 21 /* columns of a region's name */

/* ---- threads ---- */

static pki_thread_row *thread_of(pki_summary *summary, uint32_t tid)
{
    for (size_t i = 0; i < summary->thread_count; i++)
        if (summary->threads[i].tid == tid && !summary->threads[i].region_count)
            return &summary->threads[i];
    return NULL;
}

void report_move_thread_regions(pki_summary *summary, pki_summary *events)
{
    for (size_t i = 0; i < events->thread_count; i++) {
        pki_thread_row *from = &events->threads[i], *to = thread_of(summary, from->tid);
        if (!to || !from->region_count)
            continue;
        to->regions = from->regions;
        to->region_count = from->region_count;
        from->regions = NULL;
        from->region_count = 0;
    }
}

void report_move_tree(pki_summary *summary, pki_summary *events)
{
    summary->tree = events->tree;
    summary->tree_count = events->tree_count;
    events->tree = NULL;
    events->tree_count = 0;
}

/* ---- another run ---- */

typedef struct pair {
    const pki_region_row *mine, *other; /* one of them may be NULL */
    double now, then;                   /* ns of self time, of each step or of the run */
} pair;

static const char *name_of(const void *row)
{
    const pair *p = row;
    return (p->mine ? p->mine : p->other)->name;
}

/* Self time in a step, where both runs have steps; of what other threads than the stepping one do,
 * their share of a step. */
static double own_of(const pki_summary *run, const pki_region_row *r, bool steps)
{
    if (!r || !steps)
        return r ? (double)r->self : 0;
    return r->step_self.count ? r->step_self.mean : (double)r->self / (double)run->steps.count;
}

static const pki_region_row *find(const pki_summary *in, const pki_region_row *like)
{
    for (size_t i = 0; i < in->region_count; i++)
        if (in->regions[i].kind == like->kind && strcmp(in->regions[i].name, like->name) == 0)
            return &in->regions[i];
    return NULL;
}

static int by_moved(const void *a, const void *b)
{
    const pair *p = a, *q = b;
    double x = fabs(p->now - p->then), y = fabs(q->now - q->then);
    return (x < y) - (x > y);
}

/* What moved most comes first. */
static size_t pair_regions(const pki_summary *mine, const pki_summary *other,
                           const pki_report_options *o, bool steps, pair *pairs)
{
    size_t count = 0;
    for (size_t i = 0; i < mine->region_count; i++)
        if (pki_report_shows(o, mine->regions[i].name))
            pairs[count++] = (pair){&mine->regions[i], find(other, &mine->regions[i]), 0, 0};
    for (size_t i = 0; i < other->region_count; i++)
        if (pki_report_shows(o, other->regions[i].name) && !find(mine, &other->regions[i]))
            pairs[count++] = (pair){NULL, &other->regions[i], 0, 0};
    for (size_t i = 0; i < count; i++) {
        pairs[i].now = own_of(mine, pairs[i].mine, steps);
        pairs[i].then = own_of(other, pairs[i].other, steps);
    }
    qsort(pairs, count, sizeof *pairs, by_moved);
    return count;
}

static void put_time(FILE *file, bool known, double ns)
{
    pki_report_cell(file, known ? TIME(ns) : "-", 8);
}

static void put_change(FILE *file, double now, double then)
{
    char text[32] = "-";
    double percent = then > 0 && now > 0 ? 100 * (now / then - 1) : NAN;
    if (isfinite(percent))
        snprintf(text, sizeof text, "%+.1f %%", fmin(percent, 9999));
    pki_report_cell(file, text, 8);
}

/* NULL: of its steps nothing is known. */
static const against_row *row_of(const against *a, against_sort sort, const pki_region_row *region)
{
    for (size_t i = 0; a && i < a->count; i++) {
        const against_row *r = &a->rows[i];
        if (r->sort == sort && !*r->step_kind &&
            (!region || (strcmp(r->name, region->name) == 0 &&
                         strcmp(r->kind, pki_kind_names[region->kind]) == 0)))
            return r;
    }
    return NULL;
}

/* The interval, and what that says. */
static void put_verdict(const against_row *row, FILE *file)
{
    char interval[100] = "-";
    if (row)
        against_interval_text(row, interval);
    pki_report_cell(file, interval, 17);
    fprintf(file, "  %s\n", pki_change_name(row ? row->decision.change : PKI_UNSURE));
}

static void put_pair(const pair *p, size_t name, const pki_column *names, const against *a,
                     FILE *file)
{
    fputs("  ", file);
    pki_put_apart(file, name_of(p), name, names);
    put_time(file, p->mine, p->now);
    put_time(file, p->other, p->then);
    put_change(file, p->now, p->then);
    put_verdict(row_of(a, AGAINST_STAGE, p->mine ? p->mine : p->other), file);
}

static void put_regions(const pki_report_options *options, bool steps, const pair *pairs,
                        size_t count, const against *a, FILE *file)
{
    uint32_t top = options->top ? options->top : PKI_REPORT_TOP;
    size_t shown = PKI_MIN(count, (size_t)top), longest = 0;
    for (size_t i = 0; i < shown; i++)
        longest = PKI_MAX(longest, pki_width(name_of(&pairs[i])));
    size_t name = pki_report_name_room(options, NAME, longest);
    fprintf(file, "\nREGIONS by how much their self time %s differs\n",
            steps ? "in a step" : "in the run");
    fprintf(file, "  %-*s     self    other   change          interval\n", (int)name, "region");
    for (size_t i = 0; i < shown; i++) {
        pki_column names = pki_column_near(pairs, count, sizeof *pairs, i, name_of);
        put_pair(&pairs[i], name, &names, a, file);
    }
    if (count > shown)
        fprintf(file, "  ... and %zu more\n", count - shown);
}

/* With a verdict where there is one for it. */
static void put_figure(const char *what, double now, double then, const against_row *row,
                       FILE *file)
{
    if (!(now > 0) || !(then > 0))
        return;
    fputs("  ", file);
    pki_put_left(file, what, NAME);
    put_time(file, true, now);
    put_time(file, true, then);
    put_change(file, now, then);
    if (row)
        put_verdict(row, file);
    else
        fputc('\n', file);
}

/* What is called slower; first, that processors were short. */
static void put_rules(const against *a, FILE *file)
{
    if (a && a->count)
        against_put_rules(a, file);
    else
        pki_report_print(file, "Nothing is called slower: too few steps of these runs can be put"
                               " beside each other to tell a change from chance.");
    fputc('\n', file);
}

static void put_figures(const pki_summary *mine, const pki_summary *other, const against *a,
                        FILE *file)
{
    const against_row *step = row_of(a, AGAINST_STEP, NULL);
    put_rules(a, file);
    fprintf(file, "  %-*s  this run    other   change          interval\n", NAME, "figure");
    if (step)
        put_figure("step, mean", step->now, step->before, step, file);
    put_figure("step, median", mine->steps.steady.p50, other->steps.steady.p50, NULL, file);
    put_figure("step, p95", mine->steps.steady.p95, other->steps.steady.p95, NULL, file);
    put_figure("step, p99", mine->steps.steady.p99, other->steps.steady.p99, NULL, file);
    put_figure("run", (double)mine->run.wall, (double)other->run.wall, NULL, file);
    put_figure("CPU time", (double)mine->run.cpu, (double)other->run.cpu, NULL, file);
}

static void put_difference(const char *what, const char *mine, const char *other, FILE *file)
{
    if (strcmp(mine ? mine : "", other ? other : "") == 0)
        return;
    pki_report_print(file, "%s: %s; the other: %s", what, mine && mine[0] ? mine : "unknown",
                     other && other[0] ? other : "unknown");
}

/* What could explain a difference: only what is not the same. */
static void put_environments(const pki_environment *a, const pki_environment *b, FILE *file)
{
    if (!a->memory || !b->memory)
        return;
    fputs("\nMACHINE AND BUILD: what differs\n", file);
    put_difference("processor", a->cpu, b->cpu, file);
    put_difference("processors", COUNT(a->processors), COUNT(b->processors), file);
    put_difference("memory", pki_figure_scaled((double)a->memory, "B").text,
                   pki_figure_scaled((double)b->memory, "B").text, file);
    put_difference("kernel", a->kernel, b->kernel, file);
    put_difference("GPU", a->gpu, b->gpu, file);
    put_difference("driver", a->driver, b->driver, file);
    put_difference("command", a->command, b->command, file);
    put_difference("program's compiler", a->program_compiler, b->program_compiler, file);
    put_difference("program's build ID", a->build_id, b->build_id, file);
    put_difference("perfkit's compiler", a->compiler, b->compiler, file);
    put_difference("commit", a->commit, b->commit, file);
}

int report_beside(const pki_summary *mine, const pki_summary *other, const char *path,
                  const against *a, const pki_report_options *options, FILE *file)
{
    size_t most = mine->region_count + other->region_count;
    pair *pairs = memory_zeroed(most, sizeof *pairs);
    bool steps = mine->steps.count && other->steps.count;
    fputs("BESIDE ", file);
    pki_put_left(file, path, pki_width(path));
    fputc('\n', file);
    put_figures(mine, other, a, file);
    put_regions(options, steps, pairs, pair_regions(mine, other, options, steps, pairs), a, file);
    free(pairs);
    report_events_beside(mine, other, options, file);
    put_environments(&mine->environment, &other->environment, file);
    errno = 0;
    return fflush(file) == 0 && !ferror(file) ? 0 : -(errno ? errno : EIO);
}
