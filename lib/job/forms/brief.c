/* lib/job/forms/brief.c - what stands in a brief form (docs/internals/report-format.md), and a
 * job's */
#include "job/forms/forms.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "out/columns.h"

/* ---- lines of fields ---- */

void pki_brief_open(FILE *to, const char *key)
{
    fprintf(to, "%s:", key);
}

void pki_brief_close(FILE *to)
{
    fputc('\n', to);
}

/* A quote or backslash has one in front of it. */
static void put_quoted(FILE *to, const char *text)
{
    char piece[256];
    size_t n = 0;
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            piece[n++] = '\\';
        piece[n++] = *text;
        bool whole = ((unsigned char)text[1] & 0xC0) != 0x80; /* what follows begins a character */
        if ((n >= sizeof piece - 8 && whole) || n >= sizeof piece - 2) {
            piece[n] = '\0';
            pki_put_text(to, piece);
            n = 0;
        }
    }
    piece[n] = '\0';
    pki_put_text(to, piece);
    fputc('"', to);
}

void pki_brief_text(FILE *to, const char *field, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(to, " %s=", field);
    put_quoted(to, text);
}

void pki_brief_word(FILE *to, const char *field, const char *word)
{
    if (word && *word)
        fprintf(to, " %s=%s", field, word);
}

void pki_brief_int(FILE *to, const char *field, double n)
{
    if (isfinite(n))
        fprintf(to, " %s=%.0f", field, n);
}

void pki_brief_real(FILE *to, const char *field, double value)
{
    if (isfinite(value))
        fprintf(to, " %s=%.4g", field, value);
}

const char *pki_brief_severity(pki_severity severity)
{
    return severity == PKI_WARN ? "warning" : severity == PKI_GOOD ? "good" : "note";
}

/* As a shell reads it. */
static void put_path(FILE *to, const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
    if (*path && path[strspn(path, plain)] == '\0') {
        fputs(path, to);
        return;
    }
    fputc('\'', to);
    for (const char *end; (end = strchr(path, '\'')); path = end + 1)
        fprintf(to, "%.*s'\\''", (int)(end - path), path);
    fprintf(to, "%s'", path);
}

void pki_brief_next(FILE *to, const char *command, char *const *paths, size_t count)
{
    fprintf(to, "next: %s", command);
    for (size_t i = 0; i < count; i++) {
        fputc(' ', to);
        put_path(to, paths[i]);
    }
    fputc('\n', to);
}

/* ---- a job ---- */

#define VERDICTS 16
#define STAGES 10
#define REGIONS 10
#define ROWS 8
#define NOTES 4
#define COMMANDS 4
_Static_assert(3 + VERDICTS + STAGES + REGIONS + ROWS + NOTES + COMMANDS < 60, "it is brief");

static void put_head(const pki_job_findings *f, FILE *to)
{
    const pki_job *j = f->of;
    const pki_job_loop *usual = pki_job_usual(j);
    pki_brief_open(to, "job");
    pki_brief_int(to, "schema", PKI_BRIEF_SCHEMA);
    pki_brief_text(to, "program", j->ranks[0].run.program);
    pki_brief_int(to, "ranks", (double)j->rank_count);
    pki_brief_int(to, "of", j->world);
    pki_brief_int(to, "hosts", j->hosts.count);
    pki_brief_close(to);
    if (!usual)
        return;
    pki_brief_open(to, "step");
    pki_brief_int(to, "count", f->frontier.steps);
    pki_brief_int(to, "mean_ns", f->frontier.exposed / PKI_MAX(f->frontier.steps, 1));
    pki_brief_close(to);
}

static void put_late(const pki_job *j, const pki_job_late *late, FILE *to)
{
    if (!late->host)
        pki_brief_int(to, "rank", j->ranks[late->rank].rank);
    pki_brief_text(to, "host", j->hosts.texts[late->host_at]);
    pki_brief_real(to, "by", late->by);
    pki_brief_real(to, "low", late->low);
    pki_brief_real(to, "high", late->high);
    if (late->stage < j->stage_count)
        pki_brief_text(to, "stage", j->stages[late->stage].name);
    pki_brief_int(to, "cost_ns", late->cost);
}

static void put_verdicts(const pki_job *j, const pki_job_verdicts *said, FILE *to)
{
    for (size_t i = 0; i < said->count && i < VERDICTS; i++) {
        const pki_job_verdict *v = &said->all[i];
        pki_brief_open(to, "verdict");
        pki_brief_word(to, "severity", pki_brief_severity(v->severity));
        pki_brief_word(to, "name", v->name);
        if (v->late)
            put_late(j, v->late, to);
        pki_brief_text(to, "text", v->text);
        pki_brief_close(to);
    }
}

static void put_stages(const pki_job_findings *f, FILE *to)
{
    const pki_job_frontier *all = &f->frontier;
    for (size_t k = 0, put = 0; all->stages && k < f->of->stage_count && put < STAGES; k++) {
        const pki_job_increment *i = &all->stages[k];
        if (!(i->time > 0.005 * all->exposed))
            continue;
        put++;
        pki_brief_open(to, "stage");
        pki_brief_real(to, "share", i->time / all->exposed);
        pki_brief_int(to, "of_step_ns", i->time / PKI_MAX(all->steps, 1));
        const pki_job_cause *c = f->blames.stages ? pki_job_main_cause(&f->blames.stages[k]) : NULL;
        pki_brief_int(to, c ? "for_rank" : "rank", f->of->ranks[c ? c->rank : i->rank].rank);
        if (c)
            pki_brief_text(to, "for", f->of->stages[c->stage].name);
        else
            pki_brief_real(to, "of_rank", i->of_rank / i->time);
        pki_brief_word(to, "kind", pki_kind_names[f->of->stages[k].kind]);
        pki_brief_text(to, "name", f->of->stages[k].name);
        pki_brief_close(to);
    }
}

static void put_regions(const pki_job *j, FILE *to)
{
    for (size_t i = 0; i < j->region_count && i < REGIONS; i++) {
        const pki_job_region *r = &j->regions[i];
        pki_brief_open(to, "region");
        pki_brief_int(to, "mean_ns", r->spread.mean);
        pki_brief_int(to, "max_ns", r->spread.max);
        pki_brief_int(to, "max_rank", r->spread.max_rank);
        pki_brief_real(to, "imbalance", r->spread.imbalance);
        pki_brief_word(to, "kind", pki_kind_names[r->kind]);
        pki_brief_text(to, "name", r->name);
        pki_brief_close(to);
    }
}

static void put_against(const pki_against *a, FILE *to)
{
    static const char *const sorts[] = {"step", "stage", "rank"};
    for (size_t i = 0, put = 0; i < a->count && put < ROWS; i++) {
        const pki_against_row *r = &a->rows[i];
        if (i && r->decision.change < PKI_FASTER)
            continue;
        put++;
        pki_brief_open(to, "against");
        pki_brief_text(to, "change", pki_change_name(r->decision.change));
        pki_brief_word(to, "of", sorts[r->sort]);
        if (r->sort == PKI_AGAINST_RANK)
            pki_brief_int(to, "rank", r->rank);
        pki_brief_int(to, "before_ns", r->before);
        pki_brief_int(to, "now_ns", r->now);
        pki_brief_real(to, "low", r->decision.interval.low);
        pki_brief_real(to, "high", r->decision.interval.high);
        pki_brief_text(to, "name", r->name);
        pki_brief_close(to);
    }
}

static void put_next(const pki_job *j, const pki_job_verdicts *said, char *const *paths,
                     size_t count, FILE *to)
{
    size_t put = 0;
    for (size_t i = 0; i < said->count && put < COMMANDS - 2; i++) {
        const pki_job_late *late = said->all[i].late;
        if (!late || late->host)
            continue;
        put++;
        pki_brief_next(to, "pk report --brief", &j->ranks[late->rank].path, 1);
    }
    pki_brief_next(to, "pk job", paths, count);
    pki_brief_next(to, "pk job --html job.html", paths, count);
}

bool pki_job_print_brief(const pki_job_findings *f, const pki_against *a, char *const *paths,
                         size_t count, FILE *to)
{
    pki_job_verdicts said;
    bool whole = pki_job_group_verdicts(&said, f);
    put_head(f, to);
    put_verdicts(f->of, &said, to);
    if (a)
        put_against(a, to);
    put_stages(f, to);
    put_regions(f->of, to);
    for (uint32_t i = 0; i < f->of->notes.count && i < NOTES; i++) {
        pki_brief_open(to, "file");
        pki_brief_text(to, "note", f->of->notes.texts[i]);
        pki_brief_close(to);
    }
    put_next(f->of, &said, paths, PKI_MIN(count, 3u), to);
    pki_job_verdicts_finish(&said);
    return whole;
}
