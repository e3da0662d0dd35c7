/* tools/job/forms/json_exchange.c - MPI, messages and waits of a job, as members of its JSON. */
#include "job/forms/json.h"

#include "base/compiler.h"
#include "comm/model/operation.h"

static void put_calls(pki_json *j, const job *of, const job_exchange *e, size_t most)
{
    pki_json_open(j, "calls", '[');
    for (size_t i = 0; i < PKI_MIN(e->call_count, most); i++) {
        const job_region *r = &of->regions[e->calls[i]];
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", r->name);
        pki_json_uint(j, "calls", r->time.count);
        job_json_spread(j, "time", &r->spread);
        pki_json_real(j, "of_mpi", e->mpi_time > 0 ? r->self / e->mpi_time : 0);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_sites(pki_json *j, const job_exchange *e, size_t most)
{
    pki_json_open(j, "sites", '[');
    for (size_t i = 0; i < PKI_MIN(e->site_count, most); i++) {
        const job_site *s = &e->sites[i];
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "region", s->region);
        pki_json_text(j, "operation", pki_comm_op_name(s->op));
        pki_json_real(j, "calls", s->calls);
        pki_json_real(j, "bytes", s->bytes);
        pki_json_real(j, "time", s->time);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_mpi(pki_json *j, const job *of, const job_exchange *e, size_t most)
{
    if (!e->mpi_ranks)
        return;
    pki_json_row(j);
    pki_json_open(j, "mpi", '{');
    pki_json_real(j, "time", e->mpi_time);
    pki_json_real(j, "of_run", e->run_time > 0 ? e->mpi_time / e->run_time : 0);
    job_json_spread(j, "share", &e->share);
    put_calls(j, of, e, most);
    put_sites(j, e, most);
    pki_json_close(j, '}');
}

/* As arrays, since there may be hundreds of thousands. */
static void put_pairs(pki_json *j, const job *of, const job_exchange *e, size_t most)
{
    pki_json_row(j);
    pki_json_open(j, "messages", '{');
    pki_json_uint(j, "pairs", e->pair_count);
    pki_json_real(j, "messages", e->messages);
    pki_json_real(j, "bytes", e->bytes);
    pki_json_real(j, "other_messages", e->other_messages);
    pki_json_real(j, "other_bytes", e->other_bytes);
    pki_json_open(j, "matrix", '[');
    for (size_t i = 0; i < e->pair_count && most == SIZE_MAX; i++) {
        const job_pair *p = &e->pairs[i];
        pki_json_open(j, NULL, '[');
        pki_json_int(j, NULL, of->ranks[p->from].rank);
        pki_json_int(j, NULL, of->ranks[p->to].rank);
        pki_json_real(j, NULL, p->messages);
        pki_json_real(j, NULL, p->bytes);
        pki_json_real(j, NULL, p->time);
        pki_json_close(j, ']');
    }
    pki_json_close(j, ']');
    pki_json_close(j, '}');
}

static void put_links(pki_json *j, const job *of, const job_waits *w, size_t most)
{
    pki_json_open(j, "links", '[');
    for (size_t i = 0; i < PKI_MIN(w->link_count, most); i++) {
        const job_link *l = &w->links[i];
        pki_json_open(j, NULL, '{');
        pki_json_int(j, "from", of->ranks[l->from].rank);
        pki_json_int(j, "to", of->ranks[l->to].rank);
        pki_json_uint(j, "looked_at", l->looked_at);
        pki_json_uint(j, "size", l->size);
        pki_json_real(j, "transfer", l->transfer);
        pki_json_real(j, "usual", l->usual);
        pki_json_bool(j, "slow", l->slow);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_wait(pki_json *j, const job *of, const char *key, const double *by_rank)
{
    int32_t most;
    pki_json_open(j, key, '{');
    pki_json_real(j, "time", job_wait_sum(of, by_rank, &most));
    if (most != JOB_NO_RANK)
        pki_json_int(j, "most_rank", most);
    pki_json_close(j, '}');
}

static void put_waits(pki_json *j, const job *of, const job_waits *w, size_t most)
{
    pki_json_row(j);
    pki_json_open(j, "waits", '{');
    if (w->why_not) {
        pki_json_text(j, "not_known", w->why_not);
    } else {
        pki_json_uint(j, "messages", w->messages);
        pki_json_uint(j, "collectives", w->collectives);
        pki_json_uint(j, "alone", w->alone);
        pki_json_int(j, "doubt", w->doubt);
        for (int i = 0; i < JOB_WAITS; i++)
            put_wait(j, of, job_wait_keys[i], w->by[i]);
        put_wait(j, of, "caused", w->caused);
        put_links(j, of, w, most);
    }
    pki_json_close(j, '}');
}

void job_json_exchange(pki_json *j, const job_findings *f, size_t most)
{
    put_mpi(j, f->of, &f->exchange, most);
    put_pairs(j, f->of, &f->exchange, most);
    put_waits(j, f->of, &f->waits, most);
}

void job_json_rank_waits(pki_json *j, const job_findings *f, size_t rank)
{
    double share = job_mpi_share(f->of, rank);
    if (share >= 0)
        pki_json_real(j, "mpi", share);
    if (f->waits.why_not)
        return;
    pki_json_open(j, "waits", '{');
    for (int i = 0; i < JOB_WAITS; i++)
        if (f->waits.by[i][rank] > 0)
            pki_json_real(j, job_wait_keys[i], f->waits.by[i][rank]);
    if (f->waits.caused[rank] > 0)
        pki_json_real(j, "caused", f->waits.caused[rank]);
    pki_json_close(j, '}');
}
