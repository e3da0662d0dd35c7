/* tools/live/ras.c - what NCCL's RAS says of a job: who has not launched which operation.
 *
 * `ncclras -f json` (NCCL 2.28.7) asks the processes of a job, each of which counts the collectives
 * that it has launched on each communicator, by kind. It counts neither messages nor what is in
 * CUDA graphs, and tells when something was launched, not when it was done. A file may hold the
 * output of several times: the last one counts, and the one before says who has gone on since.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "live/live.h"
#include "memory.h"
#include "read/json.h"
#include "read/source.h"

enum { KINDS = 16, LISTED = 8, NCCL_IN_PROGRESS = 7 };

#define FILE_MOST ((size_t)512 << 20)

/* A rank of a communicator. */
typedef struct rank {
    const char *host; /* the document's; an address */
    int64_t rank, pid, device;
    size_t of, worker; /* its communicator; who it is on all of them */
    bool told;         /* else RAS has heard nothing of it there: */
    bool dead, silent;
    bool aborted;
    int64_t error;
    uint64_t counts[KINDS], launched;
    bool behind, other; /* has launched less than the one that has most; something else than it */
    bool gone_on;       /* since the output before */
} rank;

typedef struct communicator {
    char name[24]; /* as perfkit calls one without a name */
    const char *second;
    int64_t size;
    const char *kinds[KINDS]; /* of operations */
    size_t kind_count, first, count;
    size_t told, lost; /* of its ranks; that RAS knows of and could not ask */
    size_t furthest;   /* has launched most */
    bool awaited;      /* somebody is missing in it, so the others are not to blame */
} communicator;

/* One output of ncclras. */
typedef struct look {
    json_t *document;
    const char *version, *time;
    int64_t timeouts;
    communicator *comms;
    size_t comm_count, comm_room;
    rank *ranks; /* by communicator, and by rank in each */
    size_t count, room;
} look;

/* A process and its device, which is a rank of several communicators. */
typedef struct worker {
    const rank *best; /* on the largest one */
    const rank *why;  /* what speaks most against it */
    bool waits, gone_on;
} worker;

typedef struct inquiry {
    look now, before;
    worker *workers;
    size_t worker_count, largest;
    bool also_waiting;
    const view *views;
    size_t view_count;
    ras *to;
    size_t room;
} inquiry;

/* ---- the file ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* NCCL 2.28 leaves one out in each of the missing ranks: a key follows a value. */
static void put_commas(char *text, size_t length)
{
    char last = '{';
    bool inside = false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (inside) {
            i += c == '\\';
            inside = c != '"';
        } else if (!is_blank(c)) {
            if (c == '"' && i && is_blank(text[i - 1]) && !memchr("{[,:", last, 4))
                text[i - 1] = ',';
            inside = c == '"';
            last = c;
        }
    }
}

static char *read_text(const char *path, size_t *length, complaint *why)
{
    source *from = source_open(path, why);
    char *text = NULL;
    size_t room = 0;
    long n = from ? 1 : -1;
    for (*length = 0; n > 0; *length += (size_t)PKI_MAX(n, 0)) {
        memory_fit(&text, &room, *length + 65536, 1);
        n = source_read(from, text + *length, 65536, why);
        if (*length > FILE_MOST)
            n = complaint_set(why, "is too large for ncclras") - 1;
    }
    if (from)
        source_close(from);
    if (n == 0)
        return text;
    free(text);
    return NULL;
}

/* The last two whole ones; a server that runs RCCL puts a line of its own in front. */
static bool read_documents(const char *path, json_t **before, json_t **last, complaint *why)
{
    size_t length;
    char *text = read_text(path, &length, why), *at = text;
    json_error_t error = {.text = "there is no object"};
    *before = *last = NULL;
    if (!text)
        return false;
    put_commas(text, length);
    while ((at = memchr(at, '{', length - (size_t)(at - text))) != NULL) {
        json_t *next = json_loadb(at, length - (size_t)(at - text), JSON_DISABLE_EOF_CHECK, &error);
        if (!next)
            break;
        json_decref(*before);
        *before = *last;
        *last = next;
        at += error.position;
    }
    free(text);
    return *last || complaint_set(why, "is no output of ncclras -f json: line %d: %s", error.line,
                                  error.text);
}

/* ---- an output ---- */

static int64_t number(json_t *object, const char *key, int64_t otherwise)
{
    json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static const char *word(json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static bool flag(json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static int64_t error_in(json_t *status)
{
    int64_t error = number(status, "async_error", 0), init = number(status, "init_state", 0);
    return error && error != NCCL_IN_PROGRESS ? error : init == NCCL_IN_PROGRESS ? 0 : init;
}

static void read_counts(communicator *c, rank *r, json_t *counts)
{
    const char *kind;
    json_t *value;
    json_object_foreach(counts, kind, value)
    {
        size_t k = 0;
        while (k < c->kind_count && strcmp(c->kinds[k], kind) != 0)
            k++;
        if (k == KINDS || !json_is_integer(value) || json_integer_value(value) < 0)
            continue;
        c->kinds[k] = kind;
        c->kind_count = PKI_MAX(c->kind_count, k + 1);
        r->counts[k] = (uint64_t)json_integer_value(value);
        r->launched += r->counts[k];
    }
}

static void read_rank(look *l, communicator *c, json_t *from, bool told)
{
    json_t *status = json_object_get(from, "status");
    memory_fit(&l->ranks, &l->room, l->count + 1, sizeof *l->ranks);
    rank *r = &l->ranks[l->count++];
    *r = (rank){.host = word(from, "host"),
                .rank = number(from, "rank", -1),
                .pid = number(from, "pid", -1),
                .device = number(from, "cuda_dev", -1),
                .of = (size_t)(c - l->comms),
                .told = told,
                .dead = flag(status, "considered_dead"),
                .silent = flag(status, "unresponsive"),
                .aborted = flag(status, "abort_flag"),
                .error = told ? error_in(status) : 0};
    read_counts(c, r, json_object_get(from, "collective_counts"));
    c->told += told;
    c->lost += r->dead || r->silent;
    c->count++;
}

static int by_rank(const void *x, const void *y)
{
    const rank *a = x, *b = y;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static void read_communicator(look *l, json_t *from)
{
    size_t i;
    json_t *of;
    memory_fit(&l->comms, &l->comm_room, l->comm_count + 1, sizeof *l->comms);
    communicator *c = &l->comms[l->comm_count++];
    *c = (communicator){
        .second = word(from, "secondary_hash"), .size = number(from, "size", 0), .first = l->count};
    snprintf(c->name, sizeof c->name, "nccl %016llx", strtoull(word(from, "hash"), NULL, 16));
    json_array_foreach(json_object_get(from, "ranks"), i, of) read_rank(l, c, of, true);
    json_array_foreach(json_object_get(from, "missing_ranks"), i, of) read_rank(l, c, of, false);
    if (c->count)
        qsort(l->ranks + c->first, c->count, sizeof *l->ranks, by_rank);
}

static bool read_look(look *l, json_t *document)
{
    size_t i;
    json_t *of, *comms = json_object_get(document, "communicators");
    *l = (look){.document = document,
                .version = word(document, "nccl_version"),
                .time = word(document, "timestamp"),
                .timeouts = number(json_object_get(document, "ras"), "timeouts_count", 0)};
    json_array_foreach(comms, i, of) read_communicator(l, of);
    return json_is_array(comms);
}

static void finish_look(look *l)
{
    json_decref(l->document);
    free(l->comms);
    free(l->ranks);
}

/* ---- who has launched what ---- */

static void compare_ranks(look *l, communicator *c)
{
    c->awaited = c->lost || c->count < (size_t)PKI_MAX(c->size, 0);
    if (!c->count)
        return;
    rank *ranks = l->ranks + c->first;
    for (size_t i = 0; i < c->count; i++)
        if (ranks[i].told &&
            (!ranks[c->furthest].told || ranks[i].launched > ranks[c->furthest].launched))
            c->furthest = i;
    const rank *most = &ranks[c->furthest];
    for (size_t i = 0; i < c->count; i++) {
        rank *r = &ranks[i];
        for (size_t k = 0; k < c->kind_count && r->told; k++)
            r->other |= r->counts[k] > most->counts[k];
        r->behind = r->told && !r->other && r->launched < most->launched;
        c->awaited |= r->behind;
    }
}

/* Has it launched anything since the output before? Of a communicator that was not there it has;
 * who was not heard then may have done so before. */
static void note_going_on(look *now, const look *before)
{
    for (size_t i = 0; i < now->count; i++) {
        rank *r = &now->ranks[i];
        const communicator *c = &now->comms[r->of];
        const rank *was = NULL;
        for (size_t k = 0; k < before->comm_count && !was; k++) {
            const communicator *of = &before->comms[k];
            if (!strcmp(of->name, c->name) && !strcmp(of->second, c->second) && of->count)
                was = bsearch(r, before->ranks + of->first, of->count, sizeof *r, by_rank);
        }
        r->gone_on =
            r->told && before->document && (!was || (was->told && r->launched != was->launched));
    }
}

/* Of whom nobody knows the process it is one for itself. */
static int by_worker(const void *x, const void *y)
{
    const rank *a = *(rank *const *)x, *b = *(rank *const *)y;
    int order = strcmp(a->host, b->host);
    if (!order)
        order = (a->pid > b->pid) - (a->pid < b->pid);
    if (!order)
        order = (a->device > b->device) - (a->device < b->device);
    if (!order && a->pid < 0)
        order = a < b ? -1 : a > b;
    return order;
}

static void find_workers(inquiry *q)
{
    look *l = &q->now;
    rank **sorted = memory_zeroed(l->count, sizeof *sorted);
    q->workers = memory_zeroed(l->count, sizeof *q->workers);
    for (size_t i = 0; i < l->count; i++)
        sorted[i] = &l->ranks[i];
    if (l->count)
        qsort(sorted, l->count, sizeof *sorted, by_worker);
    for (size_t i = 0; i < l->count; i++) {
        rank *r = sorted[i];
        q->worker_count += !i || by_worker(&sorted[i - 1], &sorted[i]) != 0;
        worker *w = &q->workers[r->worker = q->worker_count - 1];
        const communicator *c = &l->comms[r->of];
        if (!w->best || c->size > l->comms[w->best->of].size)
            w->best = r;
        w->waits |= r->told && c->awaited && !r->behind && !r->other;
        w->gone_on |= r->gone_on;
    }
    for (size_t i = 0; i < l->comm_count; i++)
        if (l->comms[i].size > l->comms[q->largest].size)
            q->largest = i;
    free(sorted);
}

/* Who waits himself is left out, unless everybody does; so is who goes on. */
static ras_why why_of(const inquiry *q, const rank *r)
{
    const worker *w = &q->workers[r->worker];
    if (r->dead || r->silent)
        return RAS_SILENT;
    if (r->aborted || r->error)
        return RAS_ERROR;
    if (r->other)
        return RAS_OTHER;
    if (r->behind && !w->gone_on && (q->also_waiting || !w->waits))
        return RAS_MISSING;
    return r->told ? RAS_FINE : RAS_LEFT;
}

/* ---- words ---- */

const char *ras_why_text(ras_why why)
{
    static const char *const texts[] = {"does not answer",
                                        "error",
                                        "has launched other operations",
                                        "missing in a collective",
                                        "has not joined",
                                        "has left",
                                        "fine"};
    return texts[why];
}

/* "AllReduce 642 and AllGather 12 to 14": what the one that has most has launched beyond it. */
static void append_operations(char words[BEHIND_WORDS], const communicator *c, const rank *r,
                              const rank *most)
{
    const char *between = "";
    for (size_t k = 0; k < c->kind_count; k++) {
        if (r->counts[k] >= most->counts[k])
            continue;
        words_append(words, "%s%s %llu", between, c->kinds[k],
                     (unsigned long long)r->counts[k] + 1);
        if (most->counts[k] > r->counts[k] + 1)
            words_append(words, " to %llu", (unsigned long long)most->counts[k]);
        between = " and ";
    }
}

static void append_missing(const inquiry *q, char words[BEHIND_WORDS], const rank *r)
{
    const communicator *c = &q->now.comms[r->of];
    const rank *ranks = q->now.ranks + c->first;
    size_t ahead = 0;
    for (size_t i = 0; i < c->count; i++)
        ahead += ranks[i].told && ranks[i].launched > r->launched;
    words_append(words, "has not launched ");
    append_operations(words, c, r, &ranks[c->furthest]);
    words_append(words, " on %s, where %zu of %lld ranks are further", c->name, ahead,
                 (long long)c->size);
}

static void append_why(const inquiry *q, char words[BEHIND_WORDS], const rank *r, ras_why why)
{
    const communicator *c = &q->now.comms[r->of];
    switch (why) {
    case RAS_SILENT:
        words_append(words,
                     r->dead ? "is dead: RAS has lost its process"
                             : "does not answer RAS: its process is stopped or gone, or its host "
                               "cannot be reached");
        break;
    case RAS_ERROR:
        if (r->aborted)
            words_append(words, "has aborted %s", c->name);
        else
            words_append(words, "has error %lld (ncclResult_t) on %s", (long long)r->error,
                         c->name);
        break;
    case RAS_OTHER:
        words_append(words, "has launched other operations on %s than rank %lld of it, but not ",
                     c->name, (long long)q->now.ranks[c->first + c->furthest].rank);
        append_operations(words, c, r, &q->now.ranks[c->first + c->furthest]);
        break;
    case RAS_MISSING:
        append_missing(q, words, r);
        break;
    default:
        words_append(words, "is not in %s, which others are in", c->name);
    }
}

static void append_name(const inquiry *q, char *words, size_t room, const rank *r)
{
    if (r->of == q->largest)
        snprintf(words, room, "rank %lld", (long long)r->rank);
    else
        snprintf(words, room, "rank %lld of %s", (long long)r->rank, q->now.comms[r->of].name);
}

/* ---- perfkit's own view of the same process ---- */

/* Other hosts number their processes alike, so where the job's communicator tells a rank, it
 * counts. */
static bool is_same(const inquiry *q, const rank *best, const view *v)
{
    const pki_arena_header *h = v->t->header;
    if (h->pid != best->pid)
        return false;
    if (h->world_size > 0 && q->now.comms[best->of].size == h->world_size)
        return h->rank == best->rank;
    for (size_t i = 0; i < q->now.count; i++)
        if (q->now.ranks[i].pid == best->pid && strcmp(q->now.ranks[i].host, best->host) != 0)
            return false;
    return true;
}

static void append_view(const inquiry *q, char words[BEHIND_WORDS], const rank *best)
{
    for (size_t i = 0; i < q->view_count; i++)
        if (is_same(q, best, &q->views[i])) {
            view_position(&q->views[i], words);
            return;
        }
}

/* ---- the verdict ---- */

static ras_row *add_row(inquiry *q, ras_why why)
{
    memory_fit(&q->to->rows, &q->room, q->to->count + 1, sizeof *q->to->rows);
    ras_row *row = &q->to->rows[q->to->count++];
    *row = (ras_row){.why = why, .rank = -1, .pid = -1, .device = -1};
    return row;
}

static void add_worker(inquiry *q, const worker *w, ras_why why)
{
    const rank *best = w->best;
    ras_row *row = add_row(q, why);
    row->rank = best->rank;
    row->pid = best->pid;
    row->device = best->device;
    snprintf(row->host, sizeof row->host, "%s", best->host);
    snprintf(row->communicator, sizeof row->communicator, "%s", q->now.comms[best->of].name);
    append_name(q, row->name, sizeof row->name, best);
    append_why(q, row->words, w->why, why);
    append_view(q, row->words, best);
}

/* Ranks that a communicator should have and nobody knows: they have not come to make it. */
static void add_not_joined(inquiry *q, const communicator *c)
{
    size_t next = c->first, end = c->first + c->count;
    size_t left = c->size > 0 && (size_t)c->size > c->count ? (size_t)c->size - c->count : 0;
    if (!left)
        return;
    ras_row *row = add_row(q, RAS_NOT_JOINED);
    snprintf(row->communicator, sizeof row->communicator, "%s", c->name);
    snprintf(row->name, sizeof row->name, "%zu of %lld", left, (long long)c->size);
    words_append(row->words, "ranks of %s have not come to make it:", c->name);
    for (int64_t r = 0, listed = 0; r < c->size && listed <= LISTED; r++) {
        while (next < end && q->now.ranks[next].rank < r)
            next++;
        if (next < end && q->now.ranks[next].rank == r)
            continue;
        if (listed++ < LISTED)
            words_append(row->words, "%s %lld", listed > 1 ? "," : "", (long long)r);
        else
            words_append(row->words, " ...");
    }
}

static int strongest_first(const void *x, const void *y)
{
    const ras_row *a = x, *b = y;
    int order = (a->why > b->why) - (a->why < b->why);
    return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static void find_rows(inquiry *q)
{
    for (size_t i = 0; i < q->worker_count; i++)
        q->workers[i].why = NULL;
    for (size_t i = 0; i < q->now.count; i++) {
        const rank *r = &q->now.ranks[i];
        worker *w = &q->workers[r->worker];
        if (!w->why || why_of(q, r) < why_of(q, w->why))
            w->why = r;
    }
    for (size_t i = 0; i < q->worker_count; i++)
        if (why_of(q, q->workers[i].why) != RAS_FINE)
            add_worker(q, &q->workers[i], why_of(q, q->workers[i].why));
    for (size_t i = 0; i < q->now.comm_count; i++)
        add_not_joined(q, &q->now.comms[i]);
}

static void append_names(const ras *to, char words[BEHIND_WORDS])
{
    for (size_t i = 0; i < to->first && i < LISTED; i++)
        words_append(words, "%s%s", i ? ", " : "", to->rows[i].name);
    if (to->first > LISTED)
        words_append(words, " and %zu more", to->first - LISTED);
    words_append(words, ".");
}

static void append_going_on(const inquiry *q, char words[BEHIND_WORDS])
{
    size_t on = 0;
    for (size_t i = 0; i < q->worker_count; i++)
        on += q->workers[i].gone_on;
    if (!q->before.document && q->to->count && q->to->rows[0].why == RAS_MISSING)
        words_append(words,
                     " Ranks on their way differ, too: append a second output to the file, and it "
                     "tells who stands.");
    else if (q->before.document && on)
        words_append(words, " %zu of %zu have launched something since %s.", on, q->worker_count,
                     q->before.time);
    else if (q->before.document)
        words_append(words, " Nobody has launched anything since %s.", q->before.time);
    if (q->now.timeouts)
        words_append(words, " RAS has waited for %lld answers in vain.",
                     (long long)q->now.timeouts);
}

static bool any_behind(const look *l)
{
    size_t i = 0;
    while (i < l->count && !l->ranks[i].behind)
        i++;
    return i < l->count;
}

static void append_first(const inquiry *q, char words[BEHIND_WORDS], ras_why why)
{
    if (why == RAS_FINE && !q->now.count)
        words_append(words, "RAS knows of no rank.");
    else if (why == RAS_FINE && any_behind(&q->now))
        words_append(words, "Nobody stands: who is behind goes on.");
    else if (why == RAS_FINE)
        words_append(words,
                     "Nobody is known to be missing: of collectives all have launched the same. "
                     "Whether they were done, messages and CUDA graphs RAS does not tell.");
    else
        words_append(words, q->also_waiting                           ? "Each waits for another: "
                            : why == RAS_SILENT || why == RAS_MISSING ? "The others wait for "
                            : why == RAS_NOT_JOINED                   ? "Not there yet: "
                                                                      : "To look at first: ");
}

static void conclude(inquiry *q)
{
    ras *to = q->to;
    ras_why why = to->count ? to->rows[0].why : RAS_FINE;
    while (to->first < to->count && to->rows[to->first].why == why)
        to->first++;
    append_first(q, to->verdict, why);
    if (why != RAS_FINE)
        append_names(to, to->verdict);
    append_going_on(q, to->verdict);
}

static void inquire(inquiry *q)
{
    for (size_t i = 0; i < q->now.comm_count; i++)
        compare_ranks(&q->now, &q->now.comms[i]);
    note_going_on(&q->now, &q->before);
    find_workers(q);
    find_rows(q);
    q->also_waiting = !q->to->count;
    if (q->also_waiting)
        find_rows(q);
    q->also_waiting &= q->to->count > 0;
    if (q->to->count)
        qsort(q->to->rows, q->to->count, sizeof *q->to->rows, strongest_first);
    conclude(q);
}

static void describe(inquiry *q)
{
    const look *l = &q->now;
    words_append(q->to->about, "NCCL %s's RAS, %s: %zu communicators, %zu ranks", l->version,
                 l->time, l->comm_count, q->worker_count);
    if (l->comm_count)
        words_append(q->to->about, "; as %s of %lld numbers them", l->comms[q->largest].name,
                     (long long)l->comms[q->largest].size);
}

bool ras_find(ras *to, const char *path, const view *views, size_t count, complaint *why)
{
    json_t *before, *last;
    inquiry q = {.views = views, .view_count = count, .to = to};
    *to = (ras){.rows = NULL};
    json_limit_memory(JSON_MEMORY_MOST);
    if (!read_documents(path, &before, &last, why))
        return false;
    bool is_one = read_look(&q.now, last);
    if (before)
        read_look(&q.before, before);
    if (is_one) {
        inquire(&q);
        describe(&q);
    } else {
        complaint_set(why, "is no output of ncclras -f json: it has no communicators");
    }
    finish_look(&q.now);
    finish_look(&q.before);
    free(q.workers);
    return is_one;
}

void ras_finish(ras *r)
{
    free(r->rows);
    *r = (ras){.rows = NULL};
}
