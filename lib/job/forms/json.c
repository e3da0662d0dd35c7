#include "job/forms/forms.h"

#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "comm/model/communicator.h"
#include "job/figures/figures.h"
#include "job/verdicts/verdicts.h"
#include "out/json_write.h"

/* ---- a job for machines: docs/job.md ---- */

static void put_rank_number(pki_json *j, const char *key, int32_t rank)
{
    if (rank != PKI_JOB_NO_RANK)
        pki_json_int(j, key, rank);
}

void pki_job_json_spread(pki_json *j, const char *key, const pki_job_spread *s)
{
    pki_json_open(j, key, '{');
    pki_json_uint(j, "ranks", s->have);
    pki_json_real(j, "min", s->min);
    pki_json_real(j, "mean", s->mean);
    pki_json_real(j, "mean_all", s->mean_all);
    pki_json_real(j, "max", s->max);
    put_rank_number(j, "max_rank", s->max_rank);
    pki_json_real(j, "imbalance", s->imbalance);
    pki_json_close(j, '}');
}

static void put_numbers(pki_json *j, const char *key, const int32_t *numbers, size_t count)
{
    pki_json_open(j, key, '[');
    for (size_t i = 0; i < count; i++)
        pki_json_int(j, NULL, numbers[i]);
    pki_json_close(j, ']');
}

#define MISSING_MOST 4096 /* one by one: a file may say 2,000,000,000 */

static void put_missing(pki_json *j, const pki_job_findings *f, const pki_job_json_most *most)
{
    size_t left = PKI_MIN(most->numbers, (size_t)MISSING_MOST);
    pki_json_uint(j, "missing_count", f->missing_count);
    pki_json_open(j, "missing", '[');
    for (size_t i = 0; i < f->gap_count; i++)
        for (int64_t r = f->gaps[i].first; r <= f->gaps[i].last && left > 0; r++, left--)
            pki_json_int(j, NULL, r);
    pki_json_close(j, ']');
    pki_json_open(j, "gaps", '[');
    for (size_t i = 0; i < PKI_MIN(f->gap_count, most->numbers); i++) {
        pki_json_open(j, NULL, '[');
        pki_json_int(j, NULL, f->gaps[i].first);
        pki_json_int(j, NULL, f->gaps[i].last);
        pki_json_close(j, ']');
    }
    pki_json_close(j, ']');
}

static void put_job(pki_json *j, const pki_job_findings *f, const pki_job_json_most *most)
{
    const pki_job *of = f->of;
    pki_json_row(j);
    pki_json_open(j, "job", '{');
    pki_json_text(j, "program", of->ranks[0].run.program);
    pki_json_int(j, "world_size", of->world);
    pki_json_uint(j, "ranks", of->rank_count);
    pki_json_uint(j, "hosts", of->hosts.count);
    pki_json_uint(j, "files", of->file_count);
    pki_json_real(j, "warmup", of->warmup);
    put_missing(j, f, most);
    put_numbers(j, "cut_off", f->cut, PKI_MIN(f->cut_count, most->numbers));
    pki_json_open(j, "notes", '[');
    for (size_t i = 0; i < PKI_MIN(of->notes.count, most->rows); i++)
        pki_json_text(j, NULL, of->notes.texts[i]);
    pki_json_close(j, ']');
    pki_json_close(j, '}');
}

/* ---- verdicts ---- */

static void put_late(pki_json *j, const pki_job_findings *f, const pki_job_late *l)
{
    if (!l->host)
        pki_json_int(j, "rank", f->of->ranks[l->rank].rank);
    pki_json_text(j, "host", f->of->hosts.texts[l->host_at]);
    pki_json_uint(j, "ranks", l->ranks);
    pki_json_text(j, "stage", f->of->stages[l->stage].name);
    pki_json_real(j, "stage_share", l->stage_share);
    pki_json_real(j, "late", l->by);
    pki_json_real(j, "late_low", l->low);
    pki_json_real(j, "late_high", l->high);
    pki_json_real(j, "excess", l->excess);
    pki_json_real(j, "cost", l->cost);
    if (l->processor != PKI_SEAT_UNKNOWN)
        pki_json_uint(j, "processor", l->processor);
    pki_json_text(j, "when", pki_job_when_name(l->when));
    pki_json_uint(j, "first_step", l->first);
    pki_json_uint(j, "last_step", l->last);
    pki_json_real(j, "extra", l->extra);
    pki_json_real(j, "lost", l->lost);
    if (l->when == PKI_JOB_NOW_AND_THEN) {
        pki_json_real(j, "share", l->share);
        pki_json_real(j, "worst", l->worst);
    }
    if (l->every)
        pki_json_uint(j, "every", l->every);
    if (l->off >= 0) {
        pki_json_real(j, "without_processor", l->ready);
        pki_json_real(j, "off_processor", l->off);
    }
}

static void put_unsure(pki_json *j, const pki_job_findings *f, const pki_job_undecided *of)
{
    pki_json_int(j, "rank", f->of->ranks[of->rank].rank);
    pki_json_text(j, "host", f->of->hosts.texts[f->of->ranks[of->rank].host]);
    pki_json_uint(j, "ranks", of->ranks);
    pki_json_real(j, "late", of->by);
    if (of->low > -1 && isfinite(of->high)) {
        pki_json_real(j, "late_low", of->low);
        pki_json_real(j, "late_high", of->high);
    }
}

static void put_slow(pki_json *j, const pki_job_findings *f, const pki_job_slow_processor *s)
{
    pki_json_text(j, "host", f->of->hosts.texts[s->host]);
    pki_json_uint(j, "processor", s->number);
    pki_json_real(j, "slower", s->by);
    pki_json_uint(j, "first_step", s->first);
    pki_json_uint(j, "last_step", s->last);
    pki_json_uint(j, "ranks", s->ranks);
}

static void put_verdicts_of(pki_json *j, const char *key, const pki_job_findings *f,
                            const pki_job_verdicts *v, size_t most)
{
    static const char *const severities[] = {
        [PKI_GOOD] = "good", [PKI_NOTE] = "note", [PKI_WARN] = "warning"};
    pki_json_row(j);
    pki_json_open(j, key, '[');
    for (size_t i = 0; i < PKI_MIN(v->count, most); i++) {
        const pki_job_verdict *one = &v->all[i];
        pki_json_row(j);
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", one->name);
        pki_json_text(j, "severity", severities[one->severity]);
        pki_json_text(j, "text", one->text);
        if (one->late)
            put_late(j, f, one->late);
        if (one->unsure)
            put_unsure(j, f, one->unsure);
        if (one->slow)
            put_slow(j, f, one->slow);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static bool put_verdicts(pki_json *j, const pki_job_findings *f, size_t most)
{
    pki_job_verdicts all;
    bool ok = pki_job_find_verdicts(&all, f);
    put_verdicts_of(j, "verdicts", f, &all, most);
    pki_job_verdicts_finish(&all);
    return ok;
}

bool pki_job_json_grouped_verdicts(pki_json *j, const pki_job_findings *f)
{
    pki_job_verdicts said;
    bool ok = pki_job_group_verdicts(&said, f);
    put_verdicts_of(j, "said", f, &said, SIZE_MAX);
    pki_job_verdicts_finish(&said);
    return ok;
}

/* ---- efficiency ---- */

static void put_pop(pki_json *j, const pki_job_pop *p)
{
    if (!p->known)
        return;
    pki_json_row(j);
    pki_json_open(j, "efficiency", '{');
    pki_json_real(j, "runtime", p->runtime);
    pki_json_real(j, "useful_mean", p->useful_mean);
    pki_json_real(j, "useful_max", p->useful_max);
    pki_json_int(j, "useful_max_rank", p->useful_max_rank);
    pki_json_real(j, "parallel", p->parallel);
    pki_json_real(j, "load_balance", p->load_balance);
    pki_json_real(j, "communication", p->communication);
    if (p->why_no_transfer) {
        pki_json_text(j, "no_transfer", p->why_no_transfer);
    } else {
        pki_json_real(j, "least_waits", p->transfer);
        pki_json_real(j, "serialisation", p->serialisation);
        pki_json_real(j, "transfer", p->transfer_efficiency);
    }
    pki_json_close(j, '}');
}

/* ---- stages and the frontier ---- */

static void put_cause(pki_json *j, const char *key, const pki_job *of, const pki_job_cause *c)
{
    pki_json_open(j, key, '{');
    pki_json_int(j, "rank", of->ranks[c->rank].rank);
    pki_json_text(j, "stage", of->stages[c->stage].name);
    pki_json_text(j, "kind", pki_kind_names[of->stages[c->stage].kind]);
    pki_json_text(j, "step_kind", of->loops[c->loop].name);
    pki_json_real(j, "time", c->ns);
    pki_json_real(j, "direct", c->direct);
    pki_json_close(j, '}');
}

static void put_increment(pki_json *j, const pki_job_findings *f, size_t k)
{
    const pki_job_increment *i = &f->frontier.stages[k];
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "stage", f->of->stages[k].name);
    pki_json_text(j, "kind", pki_kind_names[f->of->stages[k].kind]);
    pki_json_real(j, "time", i->time);
    pki_json_int(j, "rank", f->of->ranks[i->rank].rank);
    pki_json_real(j, "of_rank", i->of_rank);
    const pki_job_cause *c = f->blames.stages ? pki_job_main_cause(&f->blames.stages[k]) : NULL;
    if (c)
        put_cause(j, "cause", f->of, c);
    if (f->blames.stages && f->blames.stages[k].passed_on > 0)
        pki_json_real(j, "passed_on", f->blames.stages[k].passed_on);
    pki_json_close(j, '}');
}

static void put_causes(pki_json *j, const pki_job_findings *f)
{
    const pki_job_blame *b = &f->blames.all;
    pki_json_row(j);
    pki_json_open(j, "causes", '{');
    if (f->blames.why_not)
        pki_json_text(j, "not_known", f->blames.why_not);
    pki_json_real(j, "waited", b->waited);
    pki_json_open(j, "causes", '[');
    for (size_t i = 0; i < b->count; i++)
        put_cause(j, NULL, f->of, &b->causes[i]);
    pki_json_close(j, ']');
    pki_json_close(j, '}');
}

static void put_what_ifs(pki_json *j, const pki_job_findings *f)
{
    static const char *const sorts[] = {"rank", "host", "link", "stage"};
    char text[200];
    pki_json_row(j);
    pki_json_open(j, "what_if", '[');
    for (size_t i = 0; i < f->what_if_count; i++) {
        const pki_job_what_if *w = &f->what_ifs[i];
        pki_job_describe_what_if(f->of, w, text, sizeof text);
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "of", sorts[w->sort]);
        pki_json_text(j, "text", text);
        if (w->sort == PKI_JOB_IF_RANK)
            pki_json_int(j, "rank", f->of->ranks[w->late->rank].rank);
        if (w->sort == PKI_JOB_IF_HOST)
            pki_json_text(j, "host", f->of->hosts.texts[w->late->host_at]);
        if (w->sort == PKI_JOB_IF_LINK) {
            pki_json_int(j, "from", f->of->ranks[w->link->from].rank);
            pki_json_int(j, "to", f->of->ranks[w->link->to].rank);
        }
        if (w->sort == PKI_JOB_IF_STAGE)
            pki_json_text(j, "stage", f->of->stages[w->stage].name);
        pki_json_real(j, "share", w->share);
        pki_json_real(j, "saved", w->saved);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_frontier(pki_json *j, const pki_job_findings *f)
{
    if (!f->frontier.stages)
        return;
    pki_json_row(j);
    pki_json_open(j, "frontier", '{');
    pki_json_real(j, "steps", f->frontier.steps);
    pki_json_real(j, "exposed", f->frontier.exposed);
    pki_json_open(j, "increments", '[');
    for (size_t k = 0; k < f->of->stage_count; k++)
        put_increment(j, f, k);
    pki_json_close(j, ']');
    pki_json_close(j, '}');
}

static void put_stages_of(pki_json *j, const pki_job *of, const pki_job_loop *loop)
{
    for (size_t k = 0; k < of->stage_count; k++) {
        pki_job_spread s = pki_job_spread_of_stage(of, loop, k);
        pki_json_row(j);
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "step_kind", loop->name);
        pki_json_text(j, "stage", of->stages[k].name);
        pki_json_text(j, "kind", pki_kind_names[of->stages[k].kind]);
        pki_job_json_spread(j, "per_step", &s);
        pki_json_close(j, '}');
    }
}

static void put_stages(pki_json *j, const pki_job *of, size_t most)
{
    pki_json_row(j);
    pki_json_open(j, "stages", '[');
    for (size_t i = 0; i < PKI_MIN(of->loop_count, most); i++)
        if (of->loops[i].block_count)
            put_stages_of(j, of, &of->loops[i]);
    pki_json_close(j, ']');
}

/* ---- regions, communication ---- */

static void put_regions(pki_json *j, const pki_job *of, size_t most)
{
    pki_json_row(j);
    pki_json_open(j, "regions", '[');
    for (size_t i = 0; i < PKI_MIN(of->region_count, most); i++) {
        const pki_job_region *r = &of->regions[i];
        pki_json_row(j);
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", r->name);
        pki_json_text(j, "kind", pki_kind_names[r->kind < PKI_SHARES ? r->kind : PK_OTHER]);
        pki_json_object(j, "time", &pki_dist_shape, &r->time);
        pki_job_json_spread(j, "self", &r->spread);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_comms(pki_json *j, const pki_job_links *l, size_t most)
{
    pki_json_row(j);
    pki_json_open(j, "communicators", '[');
    for (size_t i = 0; i < PKI_MIN(l->comm_count, most); i++) {
        const pki_job_comm *c = &l->comms[i];
        pki_json_row(j);
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "library", c->library);
        pki_json_text(j, "name", c->name);
        pki_json_int(j, "size", c->size);
        pki_json_uint(j, "ranks", c->ranks);
        pki_json_real(j, "calls", c->calls);
        pki_json_real(j, "bytes", c->bytes);
        pki_job_json_spread(j, "waited", &c->waited);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_operations(pki_json *j, const pki_job_links *l, size_t most)
{
    pki_json_row(j);
    pki_json_open(j, "operations", '[');
    for (size_t i = 0; i < PKI_MIN(l->operation_count, most); i++) {
        const pki_job_operation *o = &l->operations[i];
        pki_json_row(j);
        pki_json_open(j, NULL, '{');
        pki_json_uint(j, "communicator", o->comm);
        pki_json_text(j, "operation", pki_comm_op_name(o->op));
        pki_json_uint(j, "size", o->size);
        pki_json_real(j, "calls", o->calls);
        pki_json_real(j, "bytes", o->bytes);
        pki_job_json_spread(j, "time", &o->time);
        if (o->busbw.have) {
            pki_job_json_spread(j, "busbw", &o->busbw);
            put_rank_number(j, "slowest_rank", o->slowest);
        }
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_arrivals(pki_json *j, const pki_job_links *l, size_t most)
{
    pki_json_row(j);
    pki_json_open(j, "arrivals", '[');
    for (size_t i = 0; i < PKI_MIN(l->arrival_count, most); i++) {
        const pki_job_arrival *a = &l->arrivals[i];
        pki_json_row(j);
        pki_json_open(j, NULL, '{');
        pki_json_uint(j, "communicator", a->comm);
        pki_json_text(j, "operation", pki_comm_op_name(a->op));
        pki_json_uint(j, "sequence", a->sequence);
        pki_json_uint(j, "bytes", a->bytes);
        pki_json_uint(j, "ranks", a->ranks);
        pki_json_uint(j, "spread", a->longest - a->shortest);
        pki_json_int(j, "last_rank", a->last);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

/* ---- devices ---- */

static void put_known(pki_json *j, const char *key, double value)
{
    pki_json_real(j, key, value < 0 ? NAN : value);
}

static void put_device(pki_json *j, int32_t rank, const pki_job_device *d)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_int(j, "rank", rank);
    pki_json_uint(j, "device", d->number);
    pki_json_bool(j, "measured", d->measured);
    pki_json_uint(j, "steps", d->steps);
    put_known(j, "step", d->step);
    for (unsigned i = 0; i < PKI_JOB_DEVICE_PARTS; i++)
        put_known(j, pki_job_device_parts[i], d->parts[i]);
    put_known(j, "overlap", pki_job_devices_overlap(d, 1));
    pki_json_close(j, '}');
}

static void put_devices(pki_json *j, const pki_job *of, size_t most)
{
    pki_json_row(j);
    pki_json_open(j, "devices", '[');
    for (size_t r = 0; r < of->rank_count; r++)
        for (size_t i = 0; i < of->ranks[r].device_count && most; i++, most--)
            put_device(j, of->ranks[r].rank, &of->ranks[r].devices[i]);
    pki_json_close(j, ']');
}

/* ---- MPI, messages and waits of a job, as members of its JSON ---- */

static void put_calls(pki_json *j, const pki_job *of, const pki_job_exchange *e, size_t most)
{
    pki_json_open(j, "calls", '[');
    for (size_t i = 0; i < PKI_MIN(e->call_count, most); i++) {
        const pki_job_region *r = &of->regions[e->calls[i]];
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", r->name);
        pki_json_uint(j, "calls", r->time.count);
        pki_job_json_spread(j, "time", &r->spread);
        pki_json_real(j, "of_mpi", e->mpi_time > 0 ? r->self / e->mpi_time : 0);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_sites(pki_json *j, const pki_job_exchange *e, size_t most)
{
    pki_json_open(j, "sites", '[');
    for (size_t i = 0; i < PKI_MIN(e->site_count, most); i++) {
        const pki_job_site *s = &e->sites[i];
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

static void put_mpi(pki_json *j, const pki_job *of, const pki_job_exchange *e, size_t most)
{
    if (!e->mpi_ranks)
        return;
    pki_json_row(j);
    pki_json_open(j, "mpi", '{');
    pki_json_real(j, "time", e->mpi_time);
    pki_json_real(j, "of_run", e->run_time > 0 ? e->mpi_time / e->run_time : 0);
    pki_job_json_spread(j, "share", &e->share);
    put_calls(j, of, e, most);
    put_sites(j, e, most);
    pki_json_close(j, '}');
}

/* As arrays, since there may be hundreds of thousands. */
static void put_pairs(pki_json *j, const pki_job *of, const pki_job_exchange *e, size_t most)
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
        const pki_job_pair *p = &e->pairs[i];
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

static void put_links(pki_json *j, const pki_job *of, const pki_job_waits *w, size_t most)
{
    pki_json_open(j, "links", '[');
    for (size_t i = 0; i < PKI_MIN(w->link_count, most); i++) {
        const pki_job_link *l = &w->links[i];
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

static void put_wait(pki_json *j, const pki_job *of, const char *key, const double *by_rank,
                     const double *error)
{
    int32_t most;
    pki_json_open(j, key, '{');
    pki_json_real(j, "time", pki_job_wait_sum(of, by_rank, &most));
    if (most != PKI_JOB_NO_RANK)
        pki_json_int(j, "most_rank", most);
    if (error)
        pki_json_real(j, "error", *error);
    pki_json_close(j, '}');
}

static void put_wait_side(pki_json *j, const pki_job *of, const char *key, const char *region,
                          uint32_t op, size_t rank, double time)
{
    pki_json_open(j, key, '{');
    pki_json_text(j, "region", region);
    pki_json_text(j, "operation", pki_comm_op_name(op));
    pki_json_int(j, "most_rank", of->ranks[rank].rank);
    pki_json_real(j, "of_rank", time);
    pki_json_close(j, '}');
}

static void put_wait_sites(pki_json *j, const pki_job *of, const pki_job_waits *w)
{
    pki_json_open(j, "sites", '[');
    for (size_t i = 0; i < w->site_count; i++) {
        const pki_job_wait_site *s = &w->sites[i];
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "state", pki_job_wait_keys[s->sort]);
        pki_json_real(j, "time", s->time);
        put_wait_side(j, of, "in", s->region, s->op, s->most, s->of_most);
        put_wait_side(j, of, "for", s->of_other, s->op_of_other, s->other, s->of_other_rank);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_waits(pki_json *j, const pki_job *of, const pki_job_waits *w, size_t most)
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
        for (int i = 0; i < PKI_JOB_WAITS; i++)
            put_wait(j, of, pki_job_wait_keys[i], w->by[i], &w->error[i]);
        put_wait(j, of, "caused", w->caused, NULL);
        put_links(j, of, w, most);
        put_wait_sites(j, of, w);
    }
    pki_json_close(j, '}');
}

static void put_exchange(pki_json *j, const pki_job_findings *f, size_t most)
{
    put_mpi(j, f->of, &f->exchange, most);
    put_pairs(j, f->of, &f->exchange, most);
    put_waits(j, f->of, &f->waits, most);
}

static void put_rank_waits(pki_json *j, const pki_job_findings *f, size_t rank)
{
    double share = pki_job_mpi_share(f->of, rank);
    if (share >= 0)
        pki_json_real(j, "mpi", share);
    if (f->waits.why_not)
        return;
    pki_json_open(j, "waits", '{');
    for (int i = 0; i < PKI_JOB_WAITS; i++)
        if (f->waits.by[i][rank] > 0)
            pki_json_real(j, pki_job_wait_keys[i], f->waits.by[i][rank]);
    if (f->waits.caused[rank] > 0)
        pki_json_real(j, "caused", f->waits.caused[rank]);
    pki_json_close(j, '}');
}

/* ---- ranks ---- */

static void put_rank(pki_json *j, const pki_job_findings *f, size_t r)
{
    const pki_job_rank *rank = &f->of->ranks[r];
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_int(j, "rank", rank->rank);
    pki_json_text(j, "host", f->of->hosts.texts[rank->host]);
    if (rank->run.local_size)
        pki_json_int(j, "local_rank", rank->run.local_rank);
    pki_json_bool(j, "complete", rank->run.complete);
    pki_json_text(j, "file", rank->path);
    pki_json_real(j, "late", f->lateness.by[r]);
    put_rank_waits(j, f, r);
    pki_job_costs_rank_json(rank, j);
    pki_json_close(j, '}');
}

static void put_ranks(pki_json *j, const pki_job_findings *f, const pki_job_json_most *most)
{
    size_t count = most->ranks ? most->rank_count : f->of->rank_count;
    pki_json_row(j);
    pki_json_open(j, "ranks", '[');
    for (size_t i = 0; i < count; i++)
        put_rank(j, f, most->ranks ? most->ranks[i] : i);
    pki_json_close(j, ']');
}

bool pki_job_json_members(pki_json *j, const pki_job_findings *f, const pki_job_json_most *most)
{
    put_job(j, f, most);
    bool ok = put_verdicts(j, f, most->rows);
    put_pop(j, &f->pop);
    put_frontier(j, f);
    put_causes(j, f);
    put_what_ifs(j, f);
    put_stages(j, f->of, most->loops);
    put_regions(j, f->of, most->rows);
    put_comms(j, &f->links, most->rows);
    put_operations(j, &f->links, most->rows);
    put_arrivals(j, &f->links, most->rows);
    pki_job_lives_json(f->of, j);
    put_devices(j, f->of, most->rows);
    ok &= pki_job_costs_json(f->of, j);
    ok &= pki_job_counted_json(f->of, most->rows, j);
    put_exchange(j, f, most->rows);
    put_ranks(j, f, most);
    return ok;
}

bool pki_job_print_json(const pki_job_findings *f, const pki_against *a, const char *other,
                        FILE *to)
{
    static const pki_job_json_most all = {SIZE_MAX, SIZE_MAX, SIZE_MAX, NULL, 0};
    pki_json j = {.file = to, .rows = true};
    pki_json_open(&j, NULL, '{');
    pki_json_text(&j, "format", PKI_JOB_FORMAT);
    pki_json_uint(&j, "schema", PKI_JOB_SCHEMA);
    bool ok = pki_job_json_members(&j, f, &all);
    if (a)
        pki_against_json(a, other, SIZE_MAX, &j);
    pki_json_close(&j, '}');
    fputc('\n', to);
    return ok;
}
