#include "live/collective.h"

#include <string.h>

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

collective_part collective_part_of(const collective *c, const view *views, size_t of)
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

bool collective_next(collective *c, const view *views, size_t count, size_t *next)
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
