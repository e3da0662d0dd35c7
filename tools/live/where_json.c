#include "comm/model/operation.h"
#include "live/where.h"
#include "measure/figure.h"
#include "out/json_write.h"

static double seconds(const view *l, uint64_t since_ns)
{
    return l->s.now_ns > since_ns ? (double)(l->s.now_ns - since_ns) / 1e9 : 0;
}

static void put_region(pki_json *j, const view *l, const live_region *r)
{
    const live_name *name = live_name_of(&l->s.names, r->id);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", name->text);
    pki_json_uint(j, "kind", name->kind);
    pki_json_real(j, "seconds", seconds(l, r->since_ns));
    if (r->operation) {
        pki_json_text(j, "operation", pki_comm_op_name(r->operation - 1));
        pki_json_text(j, "communicator", live_name_of(&l->s.names, r->comm)->text);
        pki_json_uint(j, "sequence", r->sequence);
    }
    pki_json_close(j, '}');
}

static void put_thread(pki_json *j, const view *l, const live_thread *t)
{
    char state[2] = {t->system_state, 0};
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_uint(j, "index", t->index);
    pki_json_uint(j, "tid", t->tid);
    pki_json_text(j, "name", t->name);
    pki_json_bool(j, "main", t == snapshot_main(&l->s));
    pki_json_text(j, "state", state);
    pki_json_text(j, "waits_in", t->waits_in);
    pki_json_bool(j, "moving", t->moving);
    pki_json_open(j, "open", '[');
    for (unsigned d = 0; d < t->depth; d++)
        put_region(j, l, &t->open[d]);
    pki_json_close(j, ']');
    pki_json_close(j, '}');
}

static void put_comm(pki_json *j, const view *l, const live_comm *c)
{
    const live_name *name = live_name_of(&l->s.names, c->name);
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", name->text);
    pki_json_text(j, "library", name->key);
    pki_json_int(j, "rank", (int32_t)((uint64_t)name->value & 0xFFFFFFFF));
    pki_json_int(j, "size", (int32_t)((uint64_t)name->value >> 32));
    pki_json_uint(j, "enqueued", c->enqueued);
    pki_json_uint(j, "started", c->started);
    pki_json_uint(j, "completed", c->completed);
    pki_json_uint(j, "under_way", c->under_way);
    pki_json_bool(j, "messages", c->messages);
    pki_json_close(j, '}');
}

static void put_hang(pki_json *j, const view *l)
{
    const pki_hang *hang = &l->t->header->hang;
    pki_json_open(j, "watchdog", '{');
    pki_json_uint(j, "alarms", hang->count);
    pki_json_bool(j, "hangs", hang->raised != 0);
    pki_json_real(j, "since", (double)hang->raised_unix / 1e9);
    pki_json_text(j, "words", hang->words);
    pki_json_close(j, '}');
}

static void put_stragglers(pki_json *j, const view *l)
{
    const pki_stragglers *late = &l->t->header->stragglers;
    pki_json_open(j, "stragglers", '{');
    pki_json_uint(j, "count", late->count);
    pki_json_uint(j, "first", late->first);
    pki_json_uint(j, "last", late->last);
    pki_json_text(j, "words", late->words);
    pki_json_close(j, '}');
}

static void put_target(pki_json *j, const view *l)
{
    const pki_arena_header *h = l->t->header;
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "arena", l->t->path);
    pki_json_int(j, "rank", h->world_size > 0 ? h->rank : -1);
    pki_json_int(j, "world_size", h->world_size);
    pki_json_uint(j, "pid", l->t->process.pid ? (unsigned)l->t->process.pid : h->pid);
    pki_json_text(j, "host", h->host);
    pki_json_text(j, "program", h->program);
    pki_json_text(j, "state", target_state_text(l->t->state));
    pki_json_uint(j, "steps", l->s.steps);
    pki_json_real(j, "step_seconds", l->s.steps ? seconds(l, l->s.step_since_ns) : 0);
    put_hang(j, l);
    put_stragglers(j, l);
    pki_json_open(j, "threads", '[');
    for (size_t i = 0; i < l->s.thread_count; i++)
        put_thread(j, l, &l->s.threads[i]);
    pki_json_close(j, ']');
    pki_json_open(j, "communicators", '[');
    for (size_t i = 0; i < l->s.comm_count; i++)
        put_comm(j, l, &l->s.comms[i]);
    pki_json_close(j, ']');
    pki_json_close(j, '}');
}

static void put_row(pki_json *j, const where *w, const behind_row *row)
{
    const pki_arena_header *h = w->views[row->of].t->header;
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_int(j, "rank", h->world_size > 0 ? h->rank : -1);
    pki_json_uint(j, "pid", h->pid);
    pki_json_text(j, "why", behind_why_text(row->why));
    pki_json_text(j, "evidence", row->words);
    pki_json_close(j, '}');
}

static void put_rows(pki_json *j, const char *key, const where *w, size_t from, size_t count)
{
    pki_json_open(j, key, '[');
    for (size_t i = from; i < from + count; i++)
        put_row(j, w, &w->behind.rows[i]);
    pki_json_close(j, ']');
}

void where_json(const where *w, FILE *to)
{
    pki_plain plain;
    pki_json j = {.file = to, .rows = true};
    bool entered = pki_plain_enter(&plain);
    pki_json_open(&j, NULL, '{');
    pki_json_open(&j, "targets", '[');
    for (size_t i = 0; i < w->count; i++)
        put_target(&j, &w->views[i]);
    pki_json_close(&j, ']');
    put_rows(&j, "behind", w, 0, w->behind.count);
    put_rows(&j, "perhaps", w, w->behind.count, w->behind.perhaps);
    pki_json_text(&j, "verdict", w->behind.verdict);
    pki_json_close(&j, '}');
    fputc('\n', to);
    if (entered)
        pki_plain_leave(&plain);
}
