#include <stdlib.h>

#include "live/top.h"
#include "out/json_write.h"

static const char *const kinds[] = {"other", "compute", "data", "comm", "io", "wait"};

static void put_comms(pki_json *j, const top_process *p)
{
    pki_json_open(j, "communicators", '[');
    for (size_t i = 0; i < p->view.s.comm_count; i++) {
        const live_comm *c = &p->view.s.comms[i];
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", live_name_of(&p->view.s.names, c->name)->text);
        pki_json_uint(j, "enqueued", c->enqueued);
        pki_json_uint(j, "completed", c->completed);
        pki_json_uint(j, "under_way", c->under_way);
        pki_json_real(j, "per_second", p->comm_rates[i]);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_devices(pki_json *j, const top_process *p)
{
    const snapshot *s = &p->view.s;
    pki_json_open(j, "counters", '[');
    for (size_t i = 0; i < s->call_count; i++) {
        const live_name *n = live_name_of(&s->names, s->calls[i].id);
        if (s->calls[i].kind != PKI_KIND_COUNTER)
            continue;
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", n->text);
        pki_json_text(j, "unit", n->key);
        pki_json_real(j, "last", s->calls[i].last);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_steps(pki_json *j, const top_process *p)
{
    pki_json_uint(j, "steps", p->steps);
    pki_json_uint(j, "steps_since", p->steps_made);
    pki_json_real(j, "steps_per_second", p->steps_per_second);
    pki_json_real(j, "p50_seconds", p->p50 / 1e9);
    pki_json_real(j, "p90_seconds", p->p90 / 1e9);
    pki_json_real(j, "p99_seconds", p->p99 / 1e9);
    pki_json_open(j, "shares", '{');
    for (size_t k = 0; k < TOP_KINDS; k++)
        pki_json_real(j, kinds[k], p->shares[k]);
    pki_json_close(j, '}');
}

static void put_process(pki_json *j, const top_process *p)
{
    const pki_arena_header *h = p->view.t->header;
    const live_region *in = view_innermost(&p->view);
    pki_json_open(j, NULL, '{');
    pki_json_int(j, "rank", h->world_size > 0 ? h->rank : -1);
    pki_json_uint(j, "pid", p->view.t->process.pid ? (unsigned)p->view.t->process.pid : h->pid);
    pki_json_text(j, "host", h->host);
    pki_json_text(j, "program", h->program);
    pki_json_text(j, "state", target_state_text(p->state));
    pki_json_bool(j, "hangs", h->hang.raised != 0);
    pki_json_uint(j, "stragglers", h->stragglers.count);
    pki_json_real(j, "seconds", (double)p->ns / 1e9);
    put_steps(j, p);
    pki_json_text(j, "in", in ? live_name_of(&p->view.s.names, in->id)->text : "");
    put_comms(j, p);
    put_devices(j, p);
    pki_json_close(j, '}');
}

static void put_regions(pki_json *j, const top *t, bool streams)
{
    size_t count;
    top_region *all = top_regions(t, streams, &count);
    pki_json_open(j, streams ? "streams" : "regions", '[');
    for (size_t i = 0; i < count; i++) {
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", all[i].name->text);
        pki_json_text(j, "kind", all[i].name->kind < TOP_KINDS ? kinds[all[i].name->kind] : "");
        pki_json_uint(j, "calls", all[i].calls);
        pki_json_real(j, "self_seconds", (double)all[i].self / 1e9);
        pki_json_real(j, "seconds", (double)all[i].sum / 1e9);
        pki_json_uint(j, "processes", all[i].processes);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
    free(all);
}

void top_json(const top *t, FILE *to)
{
    pki_plain plain;
    pki_json j = {.file = to};
    bool entered = pki_plain_enter(&plain);
    pki_json_open(&j, NULL, '{');
    pki_json_open(&j, "processes", '[');
    for (size_t i = 0; i < t->count; i++)
        put_process(&j, &t->all[i]);
    pki_json_close(&j, ']');
    put_regions(&j, t, false);
    put_regions(&j, t, true);
    pki_json_close(&j, '}');
    fputc('\n', to);
    if (entered)
        pki_plain_leave(&plain);
}
