/* tools/job/forms/text_exchange.c - MPI, messages and waits of a job, for people. */
#include "job/verdicts/findings.h"
#include "job/forms/text.h"

#include "base/compiler.h"
#include "comm/model/operation.h"
#include "measure/figure.h"
#include "out/columns.h"

#define TIME(ns) (pki_figure_time_tight(ns).text)
#define SHARE(x) (pki_figure_percent(x).text)
#define COUNT(n) (pki_figure_count(job_text_whole((double)(n))).text)
#define BYTES(n) (pki_figure_scaled((double)(n), "B").text)

#define CALLS 10
#define SITES 8
#define MATRIX 12 /* ranks: more do not fit into a line */
#define PAIRS 8
#define NAME 26

/* ---- MPI ---- */

static void put_call(const job *j, const job_exchange *e, const job_region *r, FILE *to)
{
    char rank[16];
    job_text_left(to, r->name, NAME);
    pki_put_cell(to, COUNT(r->time.count), 7);
    pki_put_cell(to, TIME(r->self), 8);
    pki_put_cell(to, SHARE(e->mpi_time > 0 ? r->self / e->mpi_time : 0), 7);
    pki_put_cell(to, SHARE(e->run_time > 0 ? r->self / e->run_time : 0), 7);
    pki_put_cell(to, TIME(r->spread.max), 8);
    pki_put_cell(to, job_text_rank(rank, r->spread.max_rank), 5);
    fputc('\n', to);
    (void)j;
}

static void put_mpi(const job *j, const job_exchange *e, FILE *to)
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

static void put_sites(const job_exchange *e, FILE *to)
{
    if (!e->site_count)
        return;
    fputs("\nWhere in the program (the region around the call, all ranks)\n"
          "  region                     operation         calls    bytes     time\n",
          to);
    for (size_t i = 0; i < PKI_MIN(e->site_count, SITES); i++) {
        const job_site *s = &e->sites[i];
        job_text_left(to, *s->region ? s->region : JOB_OUTSIDE, NAME);
        fputc(' ', to);
        pki_put_left(to, pki_comm_op_name(s->op), 14);
        pki_put_cell(to, COUNT(s->calls), 8);
        pki_put_cell(to, BYTES(s->bytes), 8);
        pki_put_cell(to, TIME(s->time), 8);
        fputc('\n', to);
    }
}

/* ---- who talks to whom ---- */

static const job_pair *pair_of(const job_exchange *e, size_t from, size_t to)
{
    for (size_t i = 0; i < e->pair_count; i++)
        if (e->pairs[i].from == from && e->pairs[i].to == to)
            return &e->pairs[i];
    return NULL;
}

static void put_matrix(const job *j, const job_exchange *e, FILE *to)
{
    char rank[16];
    fputs("  from \\ to", to);
    for (size_t t = 0; t < j->rank_count; t++)
        pki_put_cell(to, job_text_rank(rank, j->ranks[t].rank), 5);
    fputc('\n', to);
    for (size_t f = 0; f < j->rank_count; f++) {
        fputs("  ", to);
        pki_put_right(to, job_text_rank(rank, j->ranks[f].rank), 9);
        for (size_t t = 0; t < j->rank_count; t++) {
            const job_pair *p = pair_of(e, f, t);
            pki_put_cell(to, p ? pki_figure_count((uint64_t)(p->bytes / 1024 + 0.5)).text : ".", 5);
        }
        fputc('\n', to);
    }
}

/* The place of the one with most bytes among those with fewer than the last one. */
static size_t next_most(const job_exchange *e, size_t last)
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

static void put_most(const job *j, const job_exchange *e, FILE *to)
{
    size_t at = e->pair_count;
    for (size_t n = 0; n < PAIRS && (at = next_most(e, at)) < e->pair_count; n++) {
        const job_pair *p = &e->pairs[at];
        fprintf(to, "  rank %d to %d: %s messages", j->ranks[p->from].rank, j->ranks[p->to].rank,
                COUNT(p->messages));
        fprintf(to, ", %s\n", BYTES(p->bytes));
    }
}

static void put_pairs(const job *j, const job_exchange *e, FILE *to)
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

static void put_wait(const job *j, const char *name, const double *by_rank, FILE *to)
{
    char rank[16];
    int32_t most;
    double sum = job_wait_sum(j, by_rank, &most), largest = 0;
    if (sum <= 0)
        return;
    for (size_t r = 0; r < j->rank_count; r++)
        largest = PKI_MAX(largest, by_rank[r]);
    job_text_left(to, name, NAME);
    pki_put_cell(to, TIME(sum), 8);
    pki_put_cell(to, TIME(largest), 8);
    pki_put_cell(to, job_text_rank(rank, most), 5);
    fputc('\n', to);
}

static void put_waits(const job *j, const job_waits *w, FILE *to)
{
    if (w->why_not)
        return;
    fprintf(to, "\nWaiting for others, from %zu messages and %zu collectives side by side;",
            w->messages, w->collectives);
    fprintf(to, " waits\nof %s and less are not told from clocks\n",
            pki_figure_time((double)w->doubt).text);
    fputs("                                 all     most   rank\n", to);
    for (int i = 0; i < JOB_WAITS; i++)
        put_wait(j, job_wait_names[i], w->by[i], to);
    put_wait(j, "for a rank, by all others", w->caused, to);
}

void job_put_exchange(const job_findings *f, FILE *to)
{
    put_mpi(f->of, &f->exchange, to);
    put_sites(&f->exchange, to);
    put_pairs(f->of, &f->exchange, to);
    put_waits(f->of, &f->waits, to);
}
