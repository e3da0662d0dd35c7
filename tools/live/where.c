/* tools/live/where.c - `pk where`: what it prints, as text and as JSON */
#include <stdlib.h>
#include <string.h>

#include "comm/model/communicator.h"
#include "command.h"
#include "live/live.h"
#include "measure/figure.h"
#include "out/columns.h"
#include "out/json_write.h"

/* ---- where text ---- */

static double age(const view *l, uint64_t since_ns)
{
    return l->s.now_ns > since_ns ? (double)(l->s.now_ns - since_ns) : 0;
}

static void put_region(FILE *to, const view *l, const live_region *r, unsigned depth)
{
    char text[400];
    const live_name *name = live_name_of(&l->s.names, r->id);
    int n = snprintf(text, sizeof text, "%*s%s", (int)depth, "", name->text);
    if (r->operation && n > 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ": %s %llu on %s",
                 pki_comm_op_name(r->operation - 1), (unsigned long long)r->sequence,
                 live_name_of(&l->s.names, r->comm)->text);
    fputs("    ", to);
    pki_put_left(to, text, 58);
    if (age(l, r->since_ns) > 0) /* of one that is gone the last moments are not known */
        pki_put_cell(to, pki_figure_time(age(l, r->since_ns)).text, 14);
    fputc('\n', to);
}

static void put_thread(FILE *to, const view *l, const live_thread *t)
{
    fprintf(to, "  thread %u ", t->index);
    pki_put_left(to, t->name, pki_width(t->name));
    fprintf(to, " (%u)", t->tid);
    if (t->waits_in[0])
        fprintf(to, ", asleep in %s", t->waits_in);
    else if (t->system_state)
        fprintf(to, ", %s",
                t->system_state == 'R'   ? "on a processor"
                : t->system_state == 'D' ? "asleep, not to be interrupted"
                : t->system_state == 'S' ? "asleep"
                                         : "stopped");
    fputc('\n', to);
    for (unsigned d = 0; d < t->depth; d++)
        put_region(to, l, &t->open[d], d);
    if (t->moving)
        fputs("    ... regions begin and end too fast to be seen\n", to);
}

static void put_threads(FILE *to, const view *l)
{
    size_t idle = 0;
    for (size_t i = 0; i < l->s.thread_count; i++) {
        const live_thread *t = &l->s.threads[i];
        if (t->depth || t->moving || t == snapshot_main(&l->s))
            put_thread(to, l, t);
        else
            idle++;
    }
    if (idle)
        fprintf(to, "  %zu more thread%s with nothing open\n", idle, idle == 1 ? "" : "s");
}

static void put_comm(FILE *to, const view *l, const live_comm *c)
{
    const live_name *name = live_name_of(&l->s.names, c->name);
    fputs("  communicator ", to);
    pki_put_left(to, name->text, pki_width(name->text));
    if (name->key[0]) {
        fputs(" of ", to);
        pki_put_left(to, name->key, pki_width(name->key));
    }
    fprintf(to, ": enqueued %llu, started %llu, completed %llu, under way %u\n",
            (unsigned long long)c->enqueued, (unsigned long long)c->started,
            (unsigned long long)c->completed, c->under_way);
}

static void put_lines(FILE *to, const char *line)
{
    while (*line) {
        char text[sizeof((const pki_hang *)0)->words];
        int n = (int)strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", n, line);
        fputs("    ", to);
        pki_put_paragraph(to, text, 4, 6);
        line += n + (line[n] != 0);
    }
}

/* What the process's own watchdog says. */
static void put_hang(FILE *to, const view *l)
{
    const pki_hang *hang = &l->t->header->hang;
    if (!hang->raised)
        return;
    fputs("  its watchdog:\n", to);
    put_lines(to, hang->words);
}

/* The same on all ranks: once is enough. */
static void put_stragglers(FILE *to, const where *w)
{
    const pki_arena_header *h = w->count ? w->views[0].t->header : NULL;
    if (!h || !h->stragglers.count)
        return;
    fprintf(to, "late, in steps %llu to %llu:\n", (unsigned long long)h->stragglers.first,
            (unsigned long long)h->stragglers.last);
    put_lines(to, h->stragglers.words);
}

static void put_target(FILE *to, const view *l)
{
    char text[TARGET_TEXT];
    target_describe(l->t, text);
    pki_put_left(to, text, pki_width(text));
    fprintf(to, ": %s", target_state_text(l->t->state));
    if (l->s.steps)
        fprintf(to, ", in step %llu", (unsigned long long)l->s.steps);
    if (l->s.steps && age(l, l->s.step_since_ns) > 0)
        fprintf(to, " for %s", pki_figure_time(age(l, l->s.step_since_ns)).text);
    fputc('\n', to);
    put_threads(to, l);
    put_hang(to, l);
    for (size_t i = 0; i < l->s.comm_count; i++)
        put_comm(to, l, &l->s.comms[i]);
}

static void put_behind(FILE *to, const where *w)
{
    char name[VIEW_NAME], text[BEHIND_WORDS + VIEW_NAME + 8];
    for (size_t i = 0; i < w->behind.count + w->behind.perhaps; i++) {
        const behind_row *row = &w->behind.rows[i];
        view_name(&w->views[row->of], name);
        snprintf(text, sizeof text, "%s %s.", name, row->words);
        pki_put_paragraph(to, text, 0, 2);
    }
    if (w->behind.verdict[0])
        pki_put_paragraph(to, w->behind.verdict, 0, 2);
}

/* Of many that are alike the first ones. */
static void put_ras(FILE *to, const ras *r)
{
    char text[BEHIND_WORDS + 160];
    pki_put_paragraph(to, r->about, 0, 2);
    for (size_t i = 0, alike = 0; i < r->count; i++) {
        const ras_row *row = &r->rows[i];
        bool last = i + 1 == r->count || r->rows[i + 1].why != row->why;
        if (alike++ < 8) {
            if (row->pid >= 0)
                snprintf(text, sizeof text, "%s (pid %lld on %s, GPU %lld) %s.", row->name,
                         (long long)row->pid, row->host, (long long)row->device, row->words);
            else
                snprintf(text, sizeof text, "%s %s.", row->name, row->words);
            pki_put_paragraph(to, text, 0, 2);
        } else if (last) {
            fprintf(to, "... and %zu more: %s\n", alike - 8, ras_why_text(row->why));
        }
        alike = last ? 0 : alike;
    }
    pki_put_paragraph(to, r->verdict, 0, 2);
}

void where_text(const where *w, FILE *to)
{
    for (size_t i = 0; i < w->count; i++) {
        put_target(to, &w->views[i]);
        fputc('\n', to);
    }
    put_stragglers(to, w);
    if (w->count > 1 || w->behind.count)
        put_behind(to, w);
    if (w->ras)
        put_ras(to, w->ras);
}

/* ---- where json ---- */

static double seconds(const view *l, uint64_t since_ns)
{
    return l->s.now_ns > since_ns ? (double)(l->s.now_ns - since_ns) / 1e9 : 0;
}

static void where_json_put_region(pki_json *j, const view *l, const live_region *r)
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

static void where_json_put_thread(pki_json *j, const view *l, const live_thread *t)
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
        where_json_put_region(j, l, &t->open[d]);
    pki_json_close(j, ']');
    pki_json_close(j, '}');
}

static void where_json_put_comm(pki_json *j, const view *l, const live_comm *c)
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

static void where_json_put_hang(pki_json *j, const view *l)
{
    const pki_hang *hang = &l->t->header->hang;
    pki_json_open(j, "watchdog", '{');
    pki_json_uint(j, "alarms", hang->count);
    pki_json_bool(j, "hangs", hang->raised != 0);
    pki_json_real(j, "since", (double)hang->raised_unix / 1e9);
    pki_json_text(j, "words", hang->words);
    pki_json_close(j, '}');
}

static void where_json_put_stragglers(pki_json *j, const view *l)
{
    const pki_stragglers *late = &l->t->header->stragglers;
    pki_json_open(j, "stragglers", '{');
    pki_json_uint(j, "count", late->count);
    pki_json_uint(j, "first", late->first);
    pki_json_uint(j, "last", late->last);
    pki_json_text(j, "words", late->words);
    pki_json_close(j, '}');
}

static void where_json_put_target(pki_json *j, const view *l)
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
    where_json_put_hang(j, l);
    where_json_put_stragglers(j, l);
    pki_json_open(j, "threads", '[');
    for (size_t i = 0; i < l->s.thread_count; i++)
        where_json_put_thread(j, l, &l->s.threads[i]);
    pki_json_close(j, ']');
    pki_json_open(j, "communicators", '[');
    for (size_t i = 0; i < l->s.comm_count; i++)
        where_json_put_comm(j, l, &l->s.comms[i]);
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

static void put_ras_rows(pki_json *j, const char *key, const ras *r, size_t from, size_t to)
{
    pki_json_open(j, key, '[');
    for (size_t i = from; i < to; i++) {
        const ras_row *row = &r->rows[i];
        pki_json_row(j);
        pki_json_open(j, NULL, '{');
        pki_json_int(j, "rank", row->rank);
        pki_json_text(j, "communicator", row->communicator);
        pki_json_int(j, "pid", row->pid);
        pki_json_text(j, "host", row->host);
        pki_json_int(j, "device", row->device);
        pki_json_text(j, "why", ras_why_text(row->why));
        pki_json_text(j, "evidence", row->words);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void where_json_put_ras(pki_json *j, const ras *r)
{
    pki_json_open(j, "ras", '{');
    pki_json_text(j, "about", r->about);
    put_ras_rows(j, "behind", r, 0, r->first);
    put_ras_rows(j, "perhaps", r, r->first, r->count);
    pki_json_text(j, "verdict", r->verdict);
    pki_json_close(j, '}');
}

void where_json(const where *w, FILE *to)
{
    pki_plain plain;
    pki_json j = {.file = to, .rows = true};
    bool entered = pki_plain_enter(&plain);
    pki_json_open(&j, NULL, '{');
    pki_json_open(&j, "targets", '[');
    for (size_t i = 0; i < w->count; i++)
        where_json_put_target(&j, &w->views[i]);
    pki_json_close(&j, ']');
    put_rows(&j, "behind", w, 0, w->behind.count);
    put_rows(&j, "perhaps", w, w->behind.count, w->behind.perhaps);
    pki_json_text(&j, "verdict", w->behind.verdict);
    if (w->ras)
        where_json_put_ras(&j, w->ras);
    pki_json_close(&j, '}');
    fputc('\n', to);
    if (entered)
        pki_plain_leave(&plain);
}

/* ---- pk where: where each thread stands, and who waits for whom ---- */

typedef struct wish {
    bool json;
    const char *ras;
    operands targets;
} wish;

static const option all_options[] = {
    {"--json", NULL, "all of it as one JSON document", .at = offsetof(wish, json)},
    {"--ras", "FILE",
     "what `ncclras -f json` has printed, of the whole NCCL job: who has not launched which operation;"
     " \"-\" is the standard input",
     PKI_OPTION_FILE, option_text, offsetof(wish, ras), .needs = "a file"},
};

static const option_table command_options = {
    .command = "where",
    .usage = "TARGET... [--json] [--ras FILE]",
    .about =
        "What processes are in: the open regions of each thread and since when, the current step,\n"
        "the last operations of each communicator; and, for several ranks, which one the others\n"
        "wait for and how that is known. TARGET is\n"
        "  a pid         of a process that has called pk_start\n"
        "  an arena      the file that a run keeps beside its trace, also of one that was killed\n"
        "  a folder      all arenas in it: the ranks of a job\n"
        "The processes are neither stopped nor touched, and need not cooperate.",
    .notes = "Exit status: 0; 2 if a TARGET cannot be read.",
    .options = {all_options, PKI_COUNT_OF(all_options)},
    .files = "arena",
    .who = "where: ",
    .operands = offsetof(wish, targets),
};

/* Those that can still be read: one may have ended since. */
static size_t take_snapshots(where *w, targets *t)
{
    for (size_t i = 0; i < t->count; i++) {
        view *l = &w->views[w->count];
        l->t = &t->all[i];
        if (snapshot_take(&l->s, l->t)) {
            snapshot_read_kernel(&l->s, l->t);
            w->count++;
        } else {
            snapshot_finish(&l->s);
        }
    }
    return w->count;
}

static int show_all(where *w, const wish *wanted)
{
    ras r = {.rows = NULL};
    complaint why = {""};
    if (wanted->ras && !ras_find(&r, wanted->ras, w->views, w->count, &why))
        return complain("where: %s: %s", wanted->ras, why.text);
    w->ras = wanted->ras ? &r : NULL;
    if (wanted->json)
        where_json(w, stdout);
    else
        where_text(w, stdout);
    ras_finish(&r);
    return EXIT_OK;
}

/* Without targets there is what RAS says. */
static int show(targets *t, const wish *wanted)
{
    where w = {.views = calloc(t->count + 1, sizeof *w.views)};
    int status = EXIT_OK;
    if (!w.views || (!take_snapshots(&w, t) && t->count) ||
        (t->count && !behind_find(&w.behind, w.views, w.count)))
        status = complain("where: %s", w.views ? "the arena can no longer be read" : "no memory");
    else
        status = show_all(&w, wanted);
    behind_finish(&w.behind);
    for (size_t i = 0; i < w.count; i++)
        snapshot_finish(&w.views[i].s);
    free(w.views);
    return status;
}

int command_where(int argc, char **argv)
{
    wish w = {0};
    targets t = {.count = 0};
    complaint why = {""};
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (!w.targets.count && !w.ras)
        return complain("where needs a TARGET (pk where --help)");
    bool open = !w.targets.count || targets_open(&t, w.targets.all, w.targets.count, &why);
    status = open ? show(&t, &w) : complain("where: %s", why.text);
    for (size_t i = 0; i < t.skipped_count && open; i++)
        fprintf(stderr, "pk: where: left out: %s\n", t.skipped[i].text);
    targets_close(&t);
    return status;
}
