#include "job/forms/forms.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "comm/model/communicator.h"
#include "job/figures/figures.h"
#include "job/verdicts/verdicts.h"
#include "measure/figure.h"
#include "out/columns.h"

/* ---- a job for people ---- */

/* The same, cut so that it differs from its neighbours. */
static inline void job_text_apart(FILE *to, const char *text, size_t width, const pki_column *names)
{
    fputs("  ", to);
    pki_put_apart(to, text, width, names);
}

/* Counts are sums of doubles here: files may say anything. */
static inline uint64_t job_text_whole(double n)
{
    return n >= 0x1p64 ? UINT64_MAX : n > 0 ? (uint64_t)n : 0;
}

#define TIME(ns) (pki_figure_time_tight(ns).text)
#define SHARE(x) (pki_figure_percent(x).text)
#define COUNT(n) (pki_figure_count(job_text_whole((double)(n))).text)

#define REGIONS 12
#define LOOPS 4
#define OPERATIONS 10
#define ARRIVALS 5
#define NOTES 20
#define NAME 26

static void title(FILE *to, const char *text)
{
    fprintf(to, "\n%s\n", text);
}

static void put_head(const pki_job *j, const pki_job_findings *f, FILE *to)
{
    const pki_job_rank *first = &j->ranks[0];
    const pki_job_loop *usual = pki_job_usual(j);
    pki_put_text(to, first->run.program);
    fprintf(to, ", %zu of %d ranks on %u host%s, from %zu file%s\n", j->rank_count, j->world,
            j->hosts.count, j->hosts.count == 1 ? "" : "s", j->file_count,
            j->file_count == 1 ? "" : "s");
    if (usual)
        fprintf(to, "%s steps in %zu blocks, %s each\n", COUNT(f->frontier.steps),
                usual->block_count,
                pki_figure_time(f->frontier.exposed / PKI_MAX(f->frontier.steps, 1)).text);
}

#define NAMED 4

/* Below there is why. */
static void put_files_left(const pki_job *j, FILE *to)
{
    if (!j->notes.count)
        return;
    fprintf(to, "Not in it, or not all of it: ");
    for (size_t i = 0; i < PKI_MIN(j->notes.count, NAMED); i++) {
        const char *text = j->notes.texts[i], *end = strstr(text, ": ");
        fputs(i ? ", " : "", to);
        for (; *text && text != end; text++)
            fputc((unsigned char)*text < ' ' ? '?' : *text, to);
    }
    if (j->notes.count > NAMED)
        fprintf(to, " and %zu more", (size_t)j->notes.count - NAMED);
    fputs(" (see the end)\n", to);
}

static bool put_verdicts(const pki_job_findings *f, FILE *to)
{
    static const char *const marks[] = {[PKI_GOOD] = "+", [PKI_NOTE] = "-", [PKI_WARN] = "!"};
    pki_job_verdicts said;
    bool ok = pki_job_group_verdicts(&said, f);
    fputc('\n', to);
    for (size_t i = 0; i < said.count; i++) {
        fprintf(to, "  %s ", marks[said.all[i].severity]);
        pki_put_paragraph(to, said.all[i].text, 4, 4);
    }
    pki_job_verdicts_finish(&said);
    return ok;
}

/* ---- efficiency ---- */

static void put_efficiency_row(FILE *to, const char *name, double value, const char *formula)
{
    pki_job_text_left(to, name, 28);
    pki_put_cell(to, SHARE(value), 8);
    fprintf(to, "  %s\n", formula);
}

static void put_pop(const pki_job_pop *p, FILE *to)
{
    if (!p->known)
        return;
    title(to, "Efficiency (POP, co-design.pop-coe.eu/metrics; 80 % and more is acceptable)");
    put_efficiency_row(to, "parallel efficiency", p->parallel, "load balance x communication");
    put_efficiency_row(to, "  load balance", p->load_balance, "mean(useful) / max(useful)");
    put_efficiency_row(to, "  communication", p->communication, "max(useful) / runtime");
    if (p->why_no_transfer) {
        fprintf(to, "    serialisation and transfer are not known: %s\n", p->why_no_transfer);
        return;
    }
    put_efficiency_row(to, "    serialisation", p->serialisation, "max(useful) / ideal runtime");
    put_efficiency_row(to, "    transfer", p->transfer_efficiency, "ideal runtime / runtime");
    pki_put_paragraph(to,
                      "    useful: time of steps outside stages of the kinds comm and wait. The"
                      " ideal runtime is without what the rank that waits least waits: exact where"
                      " a step has one collective over all ranks, a bound where it has several.",
                      0, 4);
}

/* ---- the frontier ---- */

static const char *stage_name(const void *row)
{
    return ((const pki_job_stage *)row)->name;
}

static pki_column stages_beside(const pki_job *j, size_t at)
{
    return pki_column_near(j->stages, j->stage_count, sizeof *j->stages, at, stage_name);
}

static void put_cause(const pki_job *j, const pki_job_cause *c, const char *before, FILE *to)
{
    fputs(before, to);
    pki_put_text(to, j->stages[c->stage].name);
    fprintf(to, " (%s)", pki_kind_names[j->stages[c->stage].kind]);
    if (*j->loops[c->loop].name) {
        fputs(", in steps of ", to);
        pki_put_text(to, j->loops[c->loop].name);
    }
}

/* Of a stage in which ranks wait: whom for; else who has most of it. */
static void put_who(const pki_job_findings *f, size_t k, FILE *to)
{
    pki_job_increment i = f->frontier.stages[k];
    const pki_job_blame *b = f->blames.stages ? &f->blames.stages[k] : NULL;
    const pki_job_cause *c = b ? pki_job_main_cause(b) : NULL;
    char rank[16];
    if (c)
        i = (pki_job_increment){b->waited + b->transfer, c->rank, c->ns};
    if (b && !c && f->of->stages[k].waits && b->transfer > 0) {
        fputs("      -         transfer\n", to);
        return;
    }
    pki_put_cell(to, pki_job_text_rank(rank, f->of->ranks[i.rank].rank), 6);
    pki_put_cell(to, SHARE(i.of_rank / i.time), 7);
    if (c)
        put_cause(f->of, c, "  for ", to);
    fputc('\n', to);
}

static void put_increment(const pki_job_findings *f, size_t k, FILE *to)
{
    const pki_job_increment *i = &f->frontier.stages[k];
    double steps = PKI_MAX(f->frontier.steps, 1);
    if (i->time <= 0)
        return;
    pki_column names = stages_beside(f->of, k);
    job_text_apart(to, f->of->stages[k].name, NAME, &names);
    pki_put_cell(to, pki_kind_names[f->of->stages[k].kind], 9);
    pki_put_cell(to, TIME(i->time / steps), 8);
    pki_put_cell(to, SHARE(i->time / f->frontier.exposed), 7);
    put_who(f, k, to);
}

static void put_frontier(const pki_job_findings *f, FILE *to)
{
    if (!f->frontier.stages || f->frontier.exposed <= 0)
        return;
    title(to, "What the job's steps wait for, stage by stage: F(k) - F(k-1), where F(k) is the\n"
              "maximum over ranks of the time up to stage k; all of them add up to the step.\n"
              "Where ranks wait, whom for, and in which stage that is behind");
    fputs("  stage                            kind  of step    share  rank   of it\n", to);
    for (size_t k = 0; k < f->of->stage_count; k++)
        put_increment(f, k, to);
}

/* ---- who caused the waiting, and what if ---- */

#define CAUSES 6

static void put_causes(const pki_job_findings *f, FILE *to)
{
    const pki_job_blame *b = &f->blames.all;
    char rank[16];
    if (!b->count || b->causes[0].ns < PKI_JOB_IF_LEAST * f->frontier.exposed)
        return;
    title(to, "Who caused the waiting of others (also what was passed on by ranks between)");
    fputs("  rank  of waiting  per step  passed on  in\n", to);
    for (size_t i = 0; i < PKI_MIN(b->count, CAUSES); i++) {
        const pki_job_cause *c = &b->causes[i];
        pki_put_cell(to, pki_job_text_rank(rank, f->of->ranks[c->rank].rank), 5);
        pki_put_cell(to, SHARE(c->ns / b->waited), 11);
        pki_put_cell(to, TIME(c->ns / PKI_MAX(f->frontier.steps, 1)), 9);
        pki_put_cell(to, SHARE(1 - c->direct / c->ns), 10);
        put_cause(f->of, c, "  ", to);
        fputc('\n', to);
    }
}

static void put_what_ifs(const pki_job_findings *f, FILE *to)
{
    bool any = false;
    char text[200];
    for (size_t i = 0; i < f->what_if_count; i++) {
        const pki_job_what_if *w = &f->what_ifs[i];
        if (w->share < PKI_JOB_IF_LEAST)
            continue;
        if (!any)
            title(to, "What if: the steps replayed");
        any = true;
        pki_job_describe_what_if(f->of, w, text, sizeof text);
        fprintf(to, "  a step takes %s less (", SHARE(w->share));
        fprintf(to, "%s) ", TIME(w->saved));
        pki_put_text(to, text);
        fputc('\n', to);
    }
}

/* ---- stages and regions over the ranks ---- */

static void put_spread_head(FILE *to, const char *what)
{
    pki_job_text_left(to, what, NAME);
    fputs("   ranks      min     mean  ...all      max  rank  imbal.\n", to);
}

static void put_spread(const char *name, const pki_column *names, const pki_job_spread *s, FILE *to)
{
    char ranks[32], rank[16];
    snprintf(ranks, sizeof ranks, "%zu", s->have);
    job_text_apart(to, name, NAME, names);
    pki_put_cell(to, ranks, 6);
    pki_put_cell(to, TIME(s->min), 7);
    pki_put_cell(to, TIME(s->mean), 7);
    pki_put_cell(to, TIME(s->mean_all), 6);
    pki_put_cell(to, TIME(s->max), 7);
    pki_put_cell(to, pki_job_text_rank(rank, s->max_rank), 4);
    pki_put_cell(to, SHARE(s->imbalance), 6);
    fputc('\n', to);
}

static void put_loop(const pki_job *j, const pki_job_loop *loop, FILE *to)
{
    if (!loop->block_count)
        return;
    if (*loop->name) {
        fputs("\nStages of ", to);
        pki_put_text(to, loop->name);
        fputs(", self time per step over the ranks\n", to);
    } else {
        title(to,
              "Stages, self time per step over the ranks (mean: of those that have it; imbalance:\n"
              "max / mean over all - 1)");
    }
    put_spread_head(to, "stage");
    for (size_t k = 0; k < j->stage_count; k++) {
        pki_job_spread s = pki_job_spread_of_stage(j, loop, k);
        pki_column names = stages_beside(j, k);
        if (s.have && s.max > 0)
            put_spread(j->stages[k].name, &names, &s, to);
    }
}

static const char *region_name(const void *row)
{
    return ((const pki_job_region *)row)->name;
}

static pki_column regions_beside(const pki_job *j, size_t at)
{
    return pki_column_near(j->regions, j->region_count, sizeof *j->regions, at, region_name);
}

static void put_regions(const pki_job *j, FILE *to)
{
    size_t shown = PKI_MIN(j->region_count, REGIONS);
    if (!shown)
        return;
    title(to, "Regions of all ranks");
    fputs("  region                        calls      p50      p95      p99      max\n", to);
    for (size_t i = 0; i < shown; i++) {
        const pki_job_region *r = &j->regions[i];
        pki_column names = regions_beside(j, i);
        job_text_apart(to, r->name, NAME, &names);
        pki_put_cell(to, COUNT(r->time.count), 7);
        pki_put_cell(to, TIME(r->time.p50), 7);
        pki_put_cell(to, TIME(r->time.p95), 7);
        pki_put_cell(to, TIME(r->time.p99), 7);
        pki_put_cell(to, TIME(r->time.max), 7);
        fputc('\n', to);
    }
    if (shown < j->region_count)
        fprintf(to, "  ... and %zu more (--json has all)\n", j->region_count - shown);
    fputc('\n', to);
    put_spread_head(to, "self time over the ranks");
    for (size_t i = 0; i < shown; i++) {
        pki_column names = regions_beside(j, i);
        put_spread(j->regions[i].name, &names, &j->regions[i].spread, to);
    }
}

/* ---- communication ---- */

static void put_comms(const pki_job_links *l, FILE *to)
{
    char rank[16];
    if (!l->comm_count)
        return;
    title(to, "Communicators: how long ranks waited for them");
    fputs("  communicator                ranks    calls      min     mean      max  rank\n", to);
    for (size_t i = 0; i < PKI_MIN(l->comm_count, OPERATIONS); i++) {
        const pki_job_comm *c = &l->comms[i];
        pki_job_text_left(to, c->name, NAME);
        pki_put_cell(to, COUNT(c->ranks), 5);
        pki_put_cell(to, COUNT(c->calls), 7);
        pki_put_cell(to, TIME(c->waited.min), 7);
        pki_put_cell(to, TIME(c->waited.mean), 7);
        pki_put_cell(to, TIME(c->waited.max), 7);
        pki_put_cell(to, pki_job_text_rank(rank, c->waited.max_rank), 4);
        fputc('\n', to);
    }
}

static void put_operation(const pki_job_operation *o, FILE *to)
{
    char rank[16];
    pki_job_text_left(to, pki_comm_op_name(o->op), 18);
    pki_put_cell(to, pki_figure_scaled((double)o->size, "B").text, 9);
    pki_put_cell(to, COUNT(o->calls), 7);
    pki_put_cell(to, TIME(o->time.mean), 8);
    if (o->busbw.have) {
        pki_put_cell(to, pki_figure_scaled(o->busbw.mean * 1e9, "B/s").text, 10);
        pki_put_cell(to, pki_figure_scaled(o->busbw.min * 1e9, "B/s").text, 10);
        pki_put_cell(to, pki_job_text_rank(rank, o->slowest), 5);
    }
    fputc('\n', to);
}

static void put_operations(const pki_job_links *l, FILE *to)
{
    if (!l->operation_count)
        return;
    title(to,
          "Operations by size: mean time of a call; bus bandwidth, mean and of the slowest rank");
    fputs("  operation                size    calls      time        mean      lowest   rank\n",
          to);
    for (size_t i = 0; i < PKI_MIN(l->operation_count, OPERATIONS); i++)
        put_operation(&l->operations[i], to);
}

static void put_arrivals(const pki_job_links *l, FILE *to)
{
    if (!l->arrival_count)
        return;
    title(to, "Who comes last (who is shortest in an operation that ends for all at once)");
    for (size_t i = 0; i < PKI_MIN(l->arrival_count, ARRIVALS); i++) {
        const pki_job_arrival *a = &l->arrivals[i];
        fprintf(to, "  %s #%llu: rank %d, %s after the first of %zu\n", pki_comm_op_name(a->op),
                (unsigned long long)a->sequence, a->last,
                pki_figure_time((double)(a->longest - a->shortest)).text, a->ranks);
    }
}

/* ---- MPI, messages and waits of a job, for people ---- */

#define BYTES(n) (pki_figure_scaled((double)(n), "B").text)

#define CALLS 10
#define SITES 8
#define MATRIX 12 /* ranks: more do not fit into a line */
#define PAIRS 8

/* ---- MPI ---- */

static void put_call(const pki_job *j, const pki_job_exchange *e, const pki_job_region *r, FILE *to)
{
    char rank[16];
    pki_job_text_left(to, r->name, NAME);
    pki_put_cell(to, COUNT(r->time.count), 7);
    pki_put_cell(to, TIME(r->self), 8);
    pki_put_cell(to, SHARE(e->mpi_time > 0 ? r->self / e->mpi_time : 0), 7);
    pki_put_cell(to, SHARE(e->run_time > 0 ? r->self / e->run_time : 0), 7);
    pki_put_cell(to, TIME(r->spread.max), 8);
    pki_put_cell(to, pki_job_text_rank(rank, r->spread.max_rank), 5);
    fputc('\n', to);
    (void)j;
}

static void put_mpi(const pki_job *j, const pki_job_exchange *e, FILE *to)
{
    if (!e->mpi_ranks)
        return;
    fprintf(to, "\nMPI: %s of the ranks' time",
            SHARE(e->run_time > 0 ? e->mpi_time / e->run_time : 0));
    fprintf(to, " (least %s", SHARE(e->share.min));
    fprintf(to, ", most %s of rank %d)\n", SHARE(e->share.max), e->share.max_rank);
    fputs("  call                          calls     time  of MPI  of all     most   rank\n", to);
    for (size_t i = 0; i < PKI_MIN(e->call_count, CALLS); i++)
        put_call(j, e, &j->regions[e->calls[i]], to);
}

static void put_sites(const pki_job_exchange *e, FILE *to)
{
    if (!e->site_count)
        return;
    fputs("\nWhere in the program (the region around the call, all ranks)\n"
          "  region                     operation         calls    bytes     time\n",
          to);
    for (size_t i = 0; i < PKI_MIN(e->site_count, SITES); i++) {
        const pki_job_site *s = &e->sites[i];
        pki_job_text_left(to, *s->region ? s->region : PKI_JOB_OUTSIDE, NAME);
        fputc(' ', to);
        pki_put_left(to, pki_comm_op_name(s->op), 14);
        pki_put_cell(to, COUNT(s->calls), 8);
        pki_put_cell(to, BYTES(s->bytes), 8);
        pki_put_cell(to, TIME(s->time), 8);
        fputc('\n', to);
    }
}

/* ---- who talks to whom ---- */

static const pki_job_pair *pair_of(const pki_job_exchange *e, size_t from, size_t to)
{
    for (size_t i = 0; i < e->pair_count; i++)
        if (e->pairs[i].from == from && e->pairs[i].to == to)
            return &e->pairs[i];
    return NULL;
}

static void put_matrix(const pki_job *j, const pki_job_exchange *e, FILE *to)
{
    char rank[16];
    fputs("  from \\ to", to);
    for (size_t t = 0; t < j->rank_count; t++)
        pki_put_cell(to, pki_job_text_rank(rank, j->ranks[t].rank), 5);
    fputc('\n', to);
    for (size_t f = 0; f < j->rank_count; f++) {
        fputs("  ", to);
        pki_put_right(to, pki_job_text_rank(rank, j->ranks[f].rank), 9);
        for (size_t t = 0; t < j->rank_count; t++) {
            const pki_job_pair *p = pair_of(e, f, t);
            pki_put_cell(to, p ? pki_figure_count((uint64_t)(p->bytes / 1024 + 0.5)).text : ".", 5);
        }
        fputc('\n', to);
    }
}

/* The place of the one with most bytes among those with fewer than the last one. */
static size_t next_most(const pki_job_exchange *e, size_t last)
{
    size_t found = e->pair_count;
    for (size_t i = 0; i < e->pair_count; i++) {
        double b = e->pairs[i].bytes;
        bool behind = last == e->pair_count || b < e->pairs[last].bytes ||
                      (b == e->pairs[last].bytes && i > last);
        if (behind && (found == e->pair_count || b > e->pairs[found].bytes))
            found = i;
    }
    return found;
}

static void put_most(const pki_job *j, const pki_job_exchange *e, FILE *to)
{
    size_t at = e->pair_count;
    for (size_t n = 0; n < PAIRS && (at = next_most(e, at)) < e->pair_count; n++) {
        const pki_job_pair *p = &e->pairs[at];
        fprintf(to, "  rank %d to %d: %s messages", j->ranks[p->from].rank, j->ranks[p->to].rank,
                COUNT(p->messages));
        fprintf(to, ", %s\n", BYTES(p->bytes));
    }
}

static void put_pairs(const pki_job *j, const pki_job_exchange *e, FILE *to)
{
    if (!e->pair_count)
        return;
    fprintf(to, "\nWho talks to whom: %zu pairs of ranks", e->pair_count);
    fprintf(to, ", %s messages", COUNT(e->messages));
    fprintf(to, ", %s%s\n", BYTES(e->bytes),
            j->rank_count <= MATRIX ? "; KiB from each to each" : "; most bytes");
    if (j->rank_count <= MATRIX)
        put_matrix(j, e, to);
    else
        put_most(j, e, to);
    if (e->other_messages > 0) {
        fprintf(to, "  and %s messages", COUNT(e->other_messages));
        fprintf(to, ", %s, to ranks that are not told one by one\n", BYTES(e->other_bytes));
    }
}

/* ---- waits ---- */

static void put_wait(const pki_job *j, const char *name, const double *by_rank, double error,
                     FILE *to)
{
    char rank[16];
    int32_t most;
    double sum = pki_job_wait_sum(j, by_rank, &most), largest = 0;
    if (sum <= 0)
        return;
    for (size_t r = 0; r < j->rank_count; r++)
        largest = PKI_MAX(largest, by_rank[r]);
    pki_job_text_left(to, name, NAME);
    pki_put_cell(to, TIME(sum), 8);
    pki_put_cell(to, error > 0 ? TIME(error) : "", 8);
    pki_put_cell(to, TIME(largest), 8);
    pki_put_cell(to, pki_job_text_rank(rank, most), 5);
    fputc('\n', to);
}

static void put_waits(const pki_job *j, const pki_job_waits *w, FILE *to)
{
    if (w->why_not)
        return;
    fprintf(to, "\nWaiting for others, from %zu messages and %zu collectives side by side;",
            w->messages, w->collectives);
    fprintf(to, " waits\nof %s and less are not told from clocks\n",
            pki_figure_time((double)w->doubt).text);
    fputs("                                 all    error     most   rank\n", to);
    for (int i = 0; i < PKI_JOB_WAITS; i++)
        put_wait(j, pki_job_wait_names[i], w->by[i], w->error[i], to);
    put_wait(j, "for a rank, by all others", w->caused, 0, to);
}

static void put_place(const pki_job *j, const char *region, uint32_t op, size_t most, FILE *to)
{
    char rank[16];
    fputs("  ", to);
    pki_job_text_left(to, *region ? region : "(outside)", 14);
    fputc(' ', to);
    pki_put_left(to, pki_comm_op_name(op), 10);
    pki_put_cell(to, pki_job_text_rank(rank, j->ranks[most].rank), 4);
}

static void put_wait_sites(const pki_job *j, const pki_job_waits *w, FILE *to)
{
    if (!w->site_count)
        return;
    fputs(
        "\nWhere in the program: region and call of who waits, and of whom for\n"
        "  state              all  in             call       rank  for            call       rank\n",
        to);
    for (size_t i = 0; i < PKI_MIN(w->site_count, SITES); i++) {
        const pki_job_wait_site *s = &w->sites[i];
        pki_job_text_left(to, pki_job_wait_names[s->sort], 14);
        pki_put_cell(to, TIME(s->time), 5);
        put_place(j, s->region, s->op, s->most, to);
        put_place(j, s->of_other, s->op_of_other, s->other, to);
        fputc('\n', to);
    }
}

static void put_exchange(const pki_job_findings *f, FILE *to)
{
    put_mpi(f->of, &f->exchange, to);
    put_sites(&f->exchange, to);
    put_pairs(f->of, &f->exchange, to);
    put_waits(f->of, &f->waits, to);
    put_wait_sites(f->of, &f->waits, to);
}

/* ---- devices ---- */

static void put_share(const char *name, const pki_job *j, double *values, FILE *to)
{
    char rank[16], ranks[32];
    pki_job_spread s = pki_job_spread_of(j, values);
    if (!s.have)
        return;
    snprintf(ranks, sizeof ranks, "%zu", s.have);
    pki_job_text_left(to, name, NAME);
    pki_put_cell(to, ranks, 6);
    pki_put_cell(to, SHARE(s.min), 7);
    pki_put_cell(to, SHARE(s.mean), 7);
    pki_put_cell(to, SHARE(s.max), 7);
    pki_put_cell(to, pki_job_text_rank(rank, s.max_rank), 4);
    fputc('\n', to);
}

static bool put_devices(const pki_job *j, FILE *to)
{
    static const char *const names[PKI_JOB_DEVICE_PARTS] = {
        "compute",  "communication alone",        "copies alone",
        "idle ...", "... the host waited for it", "... gaps of 50 us or less"};
    double *values = pki_array_zeroed(j->rank_count, sizeof *values);
    size_t devices = 0;
    if (!values)
        return false;
    for (size_t r = 0; r < j->rank_count; r++)
        devices += j->ranks[r].device_count;
    if (devices) {
        title(to, "Devices: where a step's time went, and how much of communication was hidden");
        pki_job_text_left(to, "of the step", NAME);
        fputs("   ranks      min     mean      max  rank\n", to);
    }
    for (unsigned part = 0; part < PKI_JOB_DEVICE_PARTS && devices; part++) {
        for (size_t r = 0; r < j->rank_count; r++)
            values[r] = pki_job_devices_share(&j->ranks[r], part);
        put_share(names[part], j, values, to);
    }
    for (size_t r = 0; r < j->rank_count; r++)
        values[r] = pki_job_devices_overlap(j->ranks[r].devices, j->ranks[r].device_count);
    put_share("hidden, of communication", j, values, to);
    free(values);
    return true;
}

/* ---- files ---- */

static void put_notes(const pki_job *j, FILE *to)
{
    if (!j->notes.count)
        return;
    title(to, "Files that are not in it");
    for (size_t i = 0; i < PKI_MIN(j->notes.count, NOTES); i++) {
        fputs("  ", to);
        pki_put_paragraph(to, j->notes.texts[i], 2, 4);
    }
    if (j->notes.count > NOTES)
        fprintf(to, "  ... and %u more\n", j->notes.count - NOTES);
}

bool pki_job_print_text(const pki_job_findings *f, FILE *to)
{
    const pki_job *j = f->of;
    put_head(j, f, to);
    put_files_left(j, to);
    bool ok = put_verdicts(f, to);
    put_pop(&f->pop, to);
    put_frontier(f, to);
    put_causes(f, to);
    put_what_ifs(f, to);
    for (size_t i = 0; i < PKI_MIN(j->loop_count, LOOPS); i++)
        put_loop(j, &j->loops[i], to);
    put_regions(j, to);
    put_exchange(f, to);
    put_comms(&f->links, to);
    put_operations(&f->links, to);
    put_arrivals(&f->links, to);
    pki_job_lives_text(j, to);
    ok &= put_devices(j, to);
    ok &= pki_job_costs_text(j, to);
    ok &= pki_job_counted_text(j, to);
    put_notes(j, to);
    return ok;
}
