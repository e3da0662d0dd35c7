/* tools/live/behind.c - which of several ranks the others wait for */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "live/live.h"
#include "measure/figure.h"

/* ---- collectives that some ranks have begun and others have not ---- */

typedef enum collective_part {
    COLLECTIVE_STRANGER, /* no rank of this communicator, as far as known */
    COLLECTIVE_INSIDE,
    COLLECTIVE_NOT_STARTED,
    COLLECTIVE_NOT_ENQUEUED
} collective_part;

/* What a communicator's name has as its value: comm/model/communicator.h. */
static int32_t size_of(const live_name *name)
{
    return (int32_t)((uint64_t)name->value >> 32);
}

static bool is_named(const collective *c, const live_name *name)
{
    return size_of(name) == c->size && strcmp(name->text, c->comm) == 0 &&
           strcmp(name->key, c->library) == 0;
}

static const live_comm *find(const collective *c, const view *l)
{
    for (size_t i = 0; i < l->s.comm_count; i++)
        if (is_named(c, live_name_of(&l->s.names, l->s.comms[i].name)))
            return &l->s.comms[i];
    return NULL;
}

/* Has it the communicator, though nothing was done on it yet? */
static bool has_communicator(const collective *c, const view *l)
{
    for (uint32_t id = PKI_NAME_FIRST; id < l->s.names.room; id++) {
        const live_name *n = &l->s.names.all[id];
        if (n->text && n->key && n->kind == PKI_KIND_INTERNAL && is_named(c, n))
            return true;
    }
    return c->size == l->t->header->world_size;
}

static collective_part collective_part_of(const collective *c, const view *views, size_t of)
{
    const view *l = &views[of];
    const live_comm *comm = find(c, l);
    if (!comm)
        return has_communicator(c, l) ? COLLECTIVE_NOT_ENQUEUED : COLLECTIVE_STRANGER;
    if (comm->messages)
        return COLLECTIVE_STRANGER;
    if (comm->enqueued < c->operation)
        return COLLECTIVE_NOT_ENQUEUED;
    if (c->started && comm->started < c->operation)
        return COLLECTIVE_NOT_STARTED;
    return COLLECTIVE_INSIDE;
}

static void note_since(collective *c, const view *l)
{
    const live_region *in = view_innermost(l);
    uint64_t since = in ? in->since_ns : 0;
    uint64_t ns = l->s.now_ns > since ? l->s.now_ns - since : 0;
    if (!in || live_name_of(&l->s.names, in->id)->kind != PK_COMM)
        return;
    c->shortest_ns = c->since_known ? PKI_MIN(c->shortest_ns, ns) : ns;
    c->since_known = true;
}

/* The one that ranks stand in who have come furthest on the communicator that `of` has as its i-th.
 * False if none does, or if all do. */
static bool describe(collective *c, const view *views, size_t count, size_t of, size_t i)
{
    const live_comm *comm = &views[of].s.comms[i];
    const live_name *name = live_name_of(&views[of].s.names, comm->name);
    *c = (collective){.comm = name->text, .library = name->key, .size = size_of(name)};
    if (!comm->under_way || comm->messages || views[of].t->state == TARGET_ENDED)
        return false;
    c->operation = comm->completed + 1;
    c->started = comm->started >= c->operation;
    size_t missing = 0;
    for (size_t k = 0; k < count; k++) {
        collective_part part = collective_part_of(c, views, k);
        const live_comm *other = find(c, &views[k]);
        if (other && other->under_way && other->completed > comm->completed)
            return false; /* that one has come further: it will be its turn */
        c->inside += part == COLLECTIVE_INSIDE;
        missing += part == COLLECTIVE_NOT_ENQUEUED || part == COLLECTIVE_NOT_STARTED;
        if (part == COLLECTIVE_INSIDE)
            note_since(c, &views[k]);
    }
    return missing > 0;
}

/* Is it the first rank that has this communicator under way there? The others have the same. */
static bool is_reported_before(const collective *c, const view *views, size_t of)
{
    for (size_t k = 0; k < of; k++) {
        const live_comm *comm = find(c, &views[k]);
        if (comm && comm->under_way && comm->completed + 1 == c->operation &&
            views[k].t->state != TARGET_ENDED)
            return true;
    }
    return false;
}

/* The next one that lacks somebody; *next begins with 0. False: there are no more. */
static bool collective_next(collective *c, const view *views, size_t count, size_t *next)
{
    for (; *next < count * PKI_NAMES_MAX; ++*next) {
        size_t of = *next / PKI_NAMES_MAX, i = *next % PKI_NAMES_MAX;
        if (i >= views[of].s.comm_count) {
            *next = (of + 1) * PKI_NAMES_MAX - 1;
            continue;
        }
        if (describe(c, views, count, of, i) && !is_reported_before(c, views, of)) {
            ++*next;
            return true;
        }
    }
    return false;
}

/* ---- words ---- */

const char *behind_why_text(behind_why why)
{
    static const char *const texts[] = {"not behind",
                                        "gone",
                                        "stopped",
                                        "missing in a collective",
                                        "in an earlier step",
                                        "in a region that others have left",
                                        "perhaps waits for one of those"};
    return (size_t)why < PKI_COUNT_OF(texts) ? texts[why] : "?";
}

void view_name(const view *l, char name[VIEW_NAME])
{
    const pki_arena_header *h = l->t->header;
    if (h->world_size > 0)
        snprintf(name, VIEW_NAME, "rank %d", h->rank);
    else
        snprintf(name, VIEW_NAME, "pid %u",
                 l->t->process.pid ? (unsigned)l->t->process.pid : h->pid);
}

const live_region *view_innermost(const view *l)
{
    const live_thread *main = snapshot_main(&l->s);
    return main && main->depth ? &main->open[main->depth - 1] : NULL;
}

void words_append(char words[BEHIND_WORDS], const char *format, ...)
{
    size_t n = strlen(words);
    va_list args;
    va_start(args, format);
    vsnprintf(words + n, BEHIND_WORDS - n, format, args);
    va_end(args);
}

static uint64_t age(const view *l, uint64_t since_ns)
{
    return l->s.now_ns > since_ns ? l->s.now_ns - since_ns : 0;
}

void view_position(const view *l, char words[BEHIND_WORDS])
{
    const live_thread *main = snapshot_main(&l->s);
    const live_region *in = view_innermost(l);
    if (l->s.steps)
        words_append(words, "; it is in step %llu", (unsigned long long)l->s.steps);
    if (in)
        words_append(words, "%s %s", l->s.steps ? ", in" : "; it is in",
                     live_name_of(&l->s.names, in->id)->text);
    if (in && age(l, in->since_ns))
        words_append(words, " for %s", pki_figure_time((double)age(l, in->since_ns)).text);
    if (main && main->waits_in[0])
        words_append(words, ", asleep in %s", main->waits_in);
    else if (main && main->system_state == 'R')
        words_append(words, ", on a processor");
}

/* ---- evidence ---- */

typedef struct inquiry {
    const view *views;
    size_t count;
    bool *waits; /* in a collective where somebody is missing */
    behind *to;
} inquiry;

static void add(inquiry *q, size_t of, behind_why why, const char *words)
{
    behind_row *row = &q->to->rows[q->to->count + q->to->perhaps];
    if (why == BEHIND_PERHAPS)
        q->to->perhaps++;
    else
        q->to->count++;
    *row = (behind_row){.of = of, .why = why};
    words_append(row->words, "%s", words);
    view_position(&q->views[of], row->words);
}

static void find_ended(inquiry *q)
{
    for (size_t i = 0; i < q->count; i++) {
        target_state state = q->views[i].t->state;
        if (state == TARGET_GONE)
            add(q, i, BEHIND_GONE, "has ended without pk_stop");
        else if (state == TARGET_STOPPED)
            add(q, i, BEHIND_STOPPED, "is stopped, by a signal, a terminal or a debugger");
    }
}

static bool is_listed(const inquiry *q, size_t of)
{
    for (size_t i = 0; i < q->to->count + q->to->perhaps; i++)
        if (q->to->rows[i].of == of)
            return true;
    return false;
}

static bool stands(const view *l)
{
    return l->t->state == TARGET_RUNNING;
}

static bool is_waiting(const view *l)
{
    const live_region *in = view_innermost(l);
    uint32_t kind = in ? live_name_of(&l->s.names, in->id)->kind : PK_OTHER;
    return kind == PK_COMM || kind == PK_WAIT;
}

static void add_missing(inquiry *q, const collective *c, size_t of, const char *verb)
{
    char words[BEHIND_WORDS] = "";
    words_append(words, "has not %s operation %llu on %s, in which %zu other%s", verb,
                 (unsigned long long)c->operation, c->comm, c->inside,
                 c->inside == 1 ? " is" : "s are");
    if (c->since_known)
        words_append(words, " for %s", pki_figure_time((double)c->shortest_ns).text);
    if (!is_listed(q, of))
        add(q, of, BEHIND_MISSING, words);
}

/* Waits for somebody else before it comes: for one that is gone or stopped, if there is any. What
 * it waits for is not known, so that it has not come is said (find_perhaps). */
static bool is_excused(const inquiry *q, size_t of, collective_part part, size_t ended)
{
    return q->waits[of] || (ended && part == COLLECTIVE_NOT_ENQUEUED && is_waiting(&q->views[of]));
}

/* Who waits himself is left out, unless everybody does: that is a deadlock. */
static size_t find_missing(inquiry *q, bool also_waiting, size_t ended)
{
    size_t before = q->to->count;
    collective c;
    for (size_t i = 0; collective_next(&c, q->views, q->count, &i);)
        for (size_t of = 0; of < q->count; of++) {
            collective_part part = collective_part_of(&c, q->views, of);
            if (part == COLLECTIVE_INSIDE || part == COLLECTIVE_STRANGER)
                continue;
            if (also_waiting || !is_excused(q, of, part, ended))
                add_missing(q, &c, of, part == COLLECTIVE_NOT_ENQUEUED ? "entered" : "started");
        }
    return q->to->count - before;
}

static void note_waiting(inquiry *q)
{
    collective c;
    for (size_t i = 0; collective_next(&c, q->views, q->count, &i);)
        for (size_t of = 0; of < q->count; of++)
            if (collective_part_of(&c, q->views, of) == COLLECTIVE_INSIDE)
                q->waits[of] = true;
}

static void add_perhaps(inquiry *q, const collective *c, size_t of)
{
    char words[BEHIND_WORDS] = "", name[VIEW_NAME];
    const view *l = &q->views[of];
    view_name(&q->views[q->to->rows[0].of], name);
    words_append(words, "has not entered operation %llu on %s and waits in %s, perhaps for %s",
                 (unsigned long long)c->operation, c->comm,
                 live_name_of(&l->s.names, view_innermost(l)->id)->text,
                 q->to->count == 1 ? name : "one of those");
    add(q, of, BEHIND_PERHAPS, words);
}

/* Excused only because somebody is gone or stopped. After all that are behind. */
static void find_perhaps(inquiry *q)
{
    collective c;
    for (size_t i = 0; collective_next(&c, q->views, q->count, &i);)
        for (size_t of = 0; of < q->count; of++)
            if (collective_part_of(&c, q->views, of) == COLLECTIVE_NOT_ENQUEUED &&
                is_waiting(&q->views[of]) && !q->waits[of] && !is_listed(q, of))
                add_perhaps(q, &c, of);
}

/* Ranks are looked at one after the other, and may run without waiting for each other: who is
 * behind has been in its step for longer than so many take. */
static bool is_late(const view *l, uint64_t furthest)
{
    const live_calls *all = snapshot_calls(&l->s, PKI_NAME_STEP);
    double mean = all && all->count ? (double)all->sum / (double)all->count : 0;
    return stands(l) && l->s.steps < furthest &&
           (double)age(l, l->s.step_since_ns) >= 2 * (double)(furthest - l->s.steps) * mean;
}

/* also_waiting: those, too, who themselves wait. */
static void find_in_earlier_steps(inquiry *q, bool also_waiting)
{
    uint64_t furthest = 0;
    size_t ahead = 0;
    for (size_t i = 0; i < q->count; i++)
        furthest = PKI_MAX(furthest, stands(&q->views[i]) ? q->views[i].s.steps : 0);
    for (size_t i = 0; i < q->count; i++)
        ahead += stands(&q->views[i]) && q->views[i].s.steps == furthest;
    for (size_t i = 0; i < q->count; i++) {
        char words[BEHIND_WORDS] = "";
        if (!is_late(&q->views[i], furthest) || (!also_waiting && is_waiting(&q->views[i])))
            continue;
        uint64_t steps = furthest - q->views[i].s.steps;
        words_append(words, "is %llu step%s behind %zu other%s", (unsigned long long)steps,
                     steps == 1 ? "" : "s", ahead, ahead == 1 ? "" : "s");
        add(q, i, BEHIND_STEP, words);
    }
}

/* Calls of that region that have ended. */
static uint64_t count_calls(const view *l, const live_name *name)
{
    for (size_t i = 0; i < l->s.call_count; i++) {
        const live_name *n = live_name_of(&l->s.names, l->s.calls[i].id);
        if (n->kind == name->kind && strcmp(n->text, name->text) == 0)
            return l->s.calls[i].count;
    }
    return 0;
}

static size_t count_ended(const inquiry *q, size_t of, const live_name *name)
{
    size_t n = 0;
    uint64_t mine = count_calls(&q->views[of], name);
    for (size_t i = 0; i < q->count; i++)
        n += i != of && stands(&q->views[i]) && is_waiting(&q->views[i]) &&
             count_calls(&q->views[i], name) > mine;
    return n;
}

static void find_in_ended_regions(inquiry *q)
{
    for (size_t i = 0; i < q->count; i++) {
        char words[BEHIND_WORDS] = "";
        const live_region *in = view_innermost(&q->views[i]);
        if (!stands(&q->views[i]) || !in || is_waiting(&q->views[i]))
            continue;
        const live_name *name = live_name_of(&q->views[i].s.names, in->id);
        size_t left = count_ended(q, i, name);
        if (!left)
            continue;
        words_append(words, "is inside %s, which %zu other%s left and wait%s since", name->text,
                     left, left == 1 ? " has" : "s have", left == 1 ? "s" : "");
        add(q, i, BEHIND_REGION, words);
    }
}

/* ---- the verdict ---- */

static void list_ranks(const inquiry *q, char words[BEHIND_WORDS])
{
    for (size_t i = 0; i < q->to->count && i < 8; i++) {
        char name[VIEW_NAME];
        view_name(&q->views[q->to->rows[i].of], name);
        words_append(words, "%s%s", i ? ", " : "", name);
    }
    if (q->to->count > 8)
        words_append(words, " and %zu more", q->to->count - 8);
}

/* Ranks of the job that are not among the targets. */
static void append_absent(const inquiry *q, char words[BEHIND_WORDS])
{
    int32_t size = q->views[0].t->header->world_size;
    size_t absent = 0;
    for (int32_t rank = 0; rank < size && rank < 65536; rank++) {
        bool there = false;
        for (size_t i = 0; i < q->count && !there; i++)
            there = q->views[i].t->header->rank == rank;
        if (!there && absent++ < 8)
            words_append(words, "%s %d",
                         absent > 1 ? ","
                         : words[0] ? " Not among the targets: rank"
                                    : "Not among the targets: rank",
                         rank);
    }
    if (absent > 8)
        words_append(words, " and %zu more", absent - 8);
    if (absent)
        words_append(words, ".");
}

static void append_awaited(const inquiry *q, bool deadlock, char words[BEHIND_WORDS])
{
    bool all = q->to->count == q->count;
    words_append(words, deadlock ? "Each waits for another: "
                        : all    ? "All of them: "
                                 : "The others wait for ");
    list_ranks(q, words);
    words_append(words, ".");
}

static void append_nobody(const inquiry *q, char words[BEHIND_WORDS])
{
    size_t inside = 0;
    for (size_t i = 0; i < q->count; i++)
        inside += is_waiting(&q->views[i]);
    if (q->count > 1 && inside == q->count)
        words_append(
            words,
            "All %zu wait, and nobody is behind: it is the library, the network, or a rank "
            "that is not seen here.",
            q->count);
    else
        words_append(words, "%s",
                     q->count > 1 ? "Nobody is behind." : "There is only one process.");
}

/* Of one process that is stopped or gone its row has said all. */
static void conclude(inquiry *q, bool deadlock)
{
    if (!q->to->count)
        append_nobody(q, q->to->verdict);
    else if (q->count > 1)
        append_awaited(q, deadlock, q->to->verdict);
    append_absent(q, q->to->verdict);
}

/* Ranks that are gone or stopped are found; of the rest those without which others cannot go on. */
static void inquire(inquiry *q)
{
    bool deadlock = false;
    find_ended(q);
    note_waiting(q);
    size_t ended = q->to->count, missing = find_missing(q, false, ended);
    if (!ended && !missing)
        deadlock = find_missing(q, true, ended) > 0;
    if (!q->to->count)
        find_in_earlier_steps(q, false);
    if (!q->to->count)
        find_in_ended_regions(q);
    if (!q->to->count)
        find_in_earlier_steps(q, true);
    if (ended)
        find_perhaps(q);
    conclude(q, deadlock);
}

bool behind_find(behind *b, const view *views, size_t count)
{
    *b = (behind){.rows = calloc(count + 1, sizeof *b->rows)};
    inquiry q = {views, count, calloc(count + 1, sizeof *q.waits), b};
    if (b->rows && q.waits)
        inquire(&q);
    free(q.waits);
    return b->rows && q.waits;
}

void behind_finish(behind *b)
{
    free(b->rows);
    *b = (behind){0};
}
