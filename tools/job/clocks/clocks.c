#include "job/clocks/clocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* ---- how far two clocks are apart: bounds from both sides, over time ---- */

#define ROUNDS 60 /* of narrowing down a slope: to 1e-13 */

static pki_bounds_piece *piece_at(pki_bounds *b, double at)
{
    double part = b->span > 0 ? (at - b->from) / b->span * PKI_BOUNDS_PIECES : 0;
    int i = part > 0 ? part < PKI_BOUNDS_PIECES - 1 ? (int)part : PKI_BOUNDS_PIECES - 1 : 0;
    b->count++;
    return &b->pieces[i];
}

void pki_bounds_least(pki_bounds *b, double at, double offset)
{
    pki_bounds_piece *p = piece_at(b, at);
    if (p->has_least && p->least >= offset)
        return;
    p->has_least = true;
    p->least = offset;
    p->least_at = at;
}

void pki_bounds_most(pki_bounds *b, double at, double offset)
{
    pki_bounds_piece *p = piece_at(b, at);
    if (p->has_most && p->most <= offset)
        return;
    p->has_most = true;
    p->most = offset;
    p->most_at = at;
}

/* What lines of a slope have to be at the moment 0: those through `at`, among the bounds near it.
 */
typedef struct view {
    const pki_bounds *b;
    double at;
} view;

static double lowest(const view *v, double slope)
{
    double found = -INFINITY;
    for (int i = 0; i < PKI_BOUNDS_PIECES; i++) {
        const pki_bounds_piece *p = &v->b->pieces[i];
        double away = p->least_at - v->at;
        if (p->has_least && fabs(away) <= PKI_BOUNDS_LINE)
            found = fmax(found, p->least - slope * away);
    }
    return found;
}

static double highest(const view *v, double slope)
{
    double found = INFINITY;
    for (int i = 0; i < PKI_BOUNDS_PIECES; i++) {
        const pki_bounds_piece *p = &v->b->pieces[i];
        double away = p->most_at - v->at;
        if (p->has_most && fabs(away) <= PKI_BOUNDS_LINE)
            found = fmin(found, p->most - slope * away);
    }
    return found;
}

/* Negative where no line of that slope fits. */
static double gap(const view *v, double slope)
{
    return highest(v, slope) - lowest(v, slope);
}

static double minus_lowest(const view *v, double slope)
{
    return -lowest(v, slope);
}

/* Where a concave function of the slope is largest. */
static double peak(const view *v, double (*of)(const view *, double), double from, double to)
{
    for (int i = 0; i < ROUNDS; i++) {
        double third = (to - from) / 3, a = from + third, b = to - third;
        if (of(v, a) < of(v, b))
            from = a;
        else
            to = b;
    }
    return (from + to) / 2;
}

/* From a slope that fits towards one that need not: the last that does. */
static double last_fit(const view *v, double fits, double beyond)
{
    if (gap(v, beyond) >= 0)
        return beyond;
    for (int i = 0; i < ROUNDS; i++) {
        double middle = (fits + beyond) / 2;
        if (gap(v, middle) >= 0)
            fits = middle;
        else
            beyond = middle;
    }
    return beyond; /* never too narrow */
}

pki_bounds_found pki_bounds_at(const pki_bounds *b, double at, double *least, double *most)
{
    const view v = {b, at};
    *least = lowest(&v, 0);
    *most = highest(&v, 0);
    if (isinf(*least) || isinf(*most))
        return PKI_BOUNDS_OPEN;
    double best = peak(&v, gap, -PKI_BOUNDS_DRIFT, PKI_BOUNDS_DRIFT);
    if (gap(&v, best) < 0)
        return PKI_BOUNDS_BROKEN;
    double from = last_fit(&v, best, -PKI_BOUNDS_DRIFT), to = last_fit(&v, best, PKI_BOUNDS_DRIFT);
    *most = highest(&v, peak(&v, highest, from, to));
    *least = lowest(&v, peak(&v, minus_lowest, from, to));
    return PKI_BOUNDS_BOTH;
}

/* ---- clocks and their files ---- */

static pki_clocked *file_at(const pki_clocks *c, size_t at)
{
    return (pki_clocked *)(void *)((char *)c->files.first + at * c->files.stride);
}

static int64_t offset_at(const pki_clock *c, uint64_t at)
{
    uint32_t i = 0;
    if (c->count == 1 || at <= c->knots[0].at)
        return c->knots[0].offset;
    while (i + 2 < c->count && at >= c->knots[i + 1].at)
        i++;
    const pki_clock_knot *a = &c->knots[i], *b = a + 1;
    if (at >= b->at || b->at == a->at)
        return b->offset;
    double part = (double)(at - a->at) / (double)(b->at - a->at);
    return a->offset + llround((double)(b->offset - a->offset) * part);
}

static int64_t absolute(const pki_clocks *c, uint32_t clock, uint64_t at)
{
    return (int64_t)at + offset_at(&c->all[clock], at);
}

/* ---- the bounds between every two clocks that had to do with each other ---- */

/* The time of clock `a` is that of clock `b` plus the offset, which is bounded over b's time. */
typedef struct edge {
    uint32_t a, b;
    int64_t about; /* what the bounds are relative to */
    pki_bounds found;
} edge;

typedef struct edges {
    edge **all;
    size_t count, room;
    uint32_t *table; /* place + 1, by a and b */
} edges;

#define EDGES_MOST 2048 /* 48 MiB: each clock with the first one, and some more */
#define TABLE 8192

/* What one collective says of each clock: when the last of its ranks began, the first ended. */
typedef struct extremes {
    uint64_t last_start, first_end;
    bool there;
} extremes;

typedef struct finding {
    edges *edges;
    const pki_clocks *clocks;
    extremes *of; /* by clock */
} finding;

static edge *make_edge(finding *f, uint32_t a, uint32_t b, size_t slot)
{
    edges *e = f->edges;
    if (e->count == EDGES_MOST)
        return NULL;
    const pki_clock *one = &f->clocks->all[a], *other = &f->clocks->all[b];
    edge *made = memory_zeroed(1, sizeof *made);
    made->a = a;
    made->b = b;
    made->about = other->real_offset - one->real_offset;
    made->found.span = (double)(other->last - other->first);
    memory_fit(&e->all, &e->room, e->count + 1, sizeof *e->all);
    e->all[e->count++] = made;
    e->table[slot] = (uint32_t)e->count;
    return made;
}

/* a < b; NULL: there are too many. */
static edge *edge_of(finding *f, uint32_t a, uint32_t b)
{
    edges *e = f->edges;
    size_t slot = ((size_t)a * 40503 + b) % TABLE;
    for (; e->table[slot]; slot = (slot + 1) % TABLE) {
        edge *it = e->all[e->table[slot] - 1];
        if (it->a == a && it->b == b)
            return it;
    }
    return make_edge(f, a, b, slot);
}

static uint32_t clock_of(const finding *f, const pki_joint *o)
{
    return file_at(f->clocks, o->source)->clock;
}

static uint64_t moment(const finding *f, const pki_joint *o, uint64_t ns)
{
    return file_at(f->clocks, o->source)->base_ns + ns;
}

/* What happened at `before` of one clock cannot be later than `after` of another. */
static void add_order(finding *f, uint32_t one, uint64_t before, uint32_t other, uint64_t after)
{
    if (one == other)
        return;
    edge *e = edge_of(f, one < other ? one : other, one < other ? other : one);
    if (!e)
        return;
    uint64_t first = f->clocks->all[e->b].first;
    if (one == e->b) /* before + offset <= after */
        pki_bounds_most(&e->found, (double)(int64_t)(before - first),
                        (double)((int64_t)(after - before) - e->about));
    else /* before <= after + offset */
        pki_bounds_least(&e->found, (double)(int64_t)(after - first),
                         (double)((int64_t)(before - after) - e->about));
}

static void add_messages(finding *f, const pki_joint *all, size_t count)
{
    size_t sends = pki_joints_receives(all, count);
    if (2 * sends != count)
        return;
    for (size_t i = 0; i < sends; i++) {
        const pki_joint *s = &all[i], *r = &all[sends + i];
        add_order(f, clock_of(f, s), moment(f, s, s->start), clock_of(f, r), moment(f, r, r->end));
    }
}

static void find_extremes(finding *f, const pki_joint *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        extremes *x = &f->of[clock_of(f, &all[i])];
        uint64_t start = moment(f, &all[i], all[i].start), end = moment(f, &all[i], all[i].end);
        if (!x->there || start > x->last_start)
            x->last_start = start;
        if (!x->there || end < x->first_end)
            x->first_end = end;
        x->there = true;
    }
}

/* All pairs would be bounds, too; those with one clock say nearly as much, for less. */
static void add_all_to_all(finding *f, const pki_joint *all, size_t count)
{
    uint32_t centre = UINT32_MAX;
    find_extremes(f, all, count);
    for (size_t i = 0; i < count; i++)
        centre = clock_of(f, &all[i]) < centre ? clock_of(f, &all[i]) : centre;
    extremes c = f->of[centre];
    for (size_t i = 0; i < count; i++) {
        uint32_t clock = clock_of(f, &all[i]);
        extremes *x = &f->of[clock];
        if (x->there && clock != centre) {
            add_order(f, clock, x->last_start, centre, c.first_end);
            add_order(f, centre, c.last_start, clock, x->first_end);
        }
        x->there = false;
    }
}

/* One rank gives to all, or gets from all. */
static void add_rooted(finding *f, const pki_joint *all, size_t count)
{
    const pki_joint *root = NULL;
    for (size_t i = 0; i < count; i++)
        root = all[i].rank == all[i].peer ? &all[i] : root;
    for (size_t i = 0; root && i < count; i++) {
        const pki_joint *from = root->kind == PKI_JOINT_FROM ? root : &all[i];
        const pki_joint *to = root->kind == PKI_JOINT_FROM ? &all[i] : root;
        add_order(f, clock_of(f, from), moment(f, from, from->start), clock_of(f, to),
                  moment(f, to, to->end));
    }
}

static void add_group(void *user, pki_joint *all, size_t count)
{
    finding *f = user;
    if (all[0].kind >= PKI_JOINT_SEND)
        add_messages(f, all, count);
    else if (!pki_joints_are_one(all, count) || all[0].kind == PKI_JOINT_LOOSE)
        return;
    else if (all[0].kind == PKI_JOINT_ALL)
        add_all_to_all(f, all, count);
    else
        add_rooted(f, all, count);
}

/* From all operations, whose files have been read. False and why. */
static bool find_edges(edges *e, const pki_clocks *c, pki_joints *o, complaint *why)
{
    *e = (edges){.table = memory_zeroed(TABLE, sizeof *e->table)};
    finding f = {e, c, memory_zeroed(c->count, sizeof *f.of)};
    bool found = pki_joints_each(o, add_group, &f, why);
    free(f.of);
    return found;
}

static void free_edges(edges *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->all[i]);
    free(e->all);
    free(e->table);
}

/* ---- which there are ---- */

static uint32_t clock_named(pki_clocks *c, size_t *room, const pki_clocked *s)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (strcmp(c->all[i].name, s->name) == 0)
            return i;
    memory_fit(&c->all, room, c->count + 1, sizeof *c->all);
    pki_clock *it = &c->all[c->count];
    *it = (pki_clock){.name = s->name, .host = s->host, .first = UINT64_MAX, .count = 1};
    it->real_offset = (int64_t)(s->unix_ns - s->base_ns);
    return (uint32_t)c->count++;
}

static void find_spans(pki_clocks *c)
{
    for (size_t i = 0; i < c->files.count; i++) {
        const pki_clocked *of = file_at(c, i);
        pki_clock *it = &c->all[of->clock];
        uint64_t from = of->base_ns, to = from + of->last_ns;
        it->first = from < it->first ? from : it->first;
        it->last = to > it->last ? to : it->last;
    }
}

static void find_origin(pki_clocks *c)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < c->files.count; i++) {
        int64_t begins = absolute(c, file_at(c, i)->clock, file_at(c, i)->base_ns);
        first = begins < first ? begins : first;
    }
    c->origin = (uint64_t)first;
    c->origin_unix = (uint64_t)(first + c->all[0].real_offset);
}

static void use_real_time(const pki_clocks *c, pki_clock *it)
{
    it->method = it == c->all ? PKI_CLOCK_SAME : PKI_CLOCK_REAL_TIME;
    it->count = 1;
    it->knots[0] = (pki_clock_knot){.at = it->first,
                                    .offset = it->real_offset - c->all[0].real_offset,
                                    .doubt = it == c->all ? 0 : -1};
}

void pki_clocks_make(pki_clocks *c, const pki_clocked_files *files)
{
    size_t room = 0;
    *c = (pki_clocks){.files = *files};
    for (size_t i = 0; i < files->count; i++)
        file_at(c, i)->clock = clock_named(c, &room, file_at(c, i));
    find_spans(c);
    for (size_t i = 0; i < c->count; i++)
        use_real_time(c, &c->all[i]);
    find_origin(c);
}

void pki_clocks_free(pki_clocks *c)
{
    free(c->all);
}

/* ---- how far they are apart ---- */

/* The offset of an edge's second clock to the first one at a moment of the second, or the other way
 * round. */
static pki_bounds_found find_knot(const edge *e, const pki_clocks *c, bool back, uint64_t at,
                                  pki_clock_knot *knot)
{
    double least, most, moment = (double)(int64_t)(at - c->all[e->b].first);
    pki_bounds_found found =
        pki_bounds_at(&e->found, back ? moment - (double)e->about : moment, &least, &most);
    if (found != PKI_BOUNDS_BOTH)
        return found;
    int64_t offset = e->about + llround((least + most) / 2);
    *knot = (pki_clock_knot){at, back ? -offset : offset, (int64_t)ceil((most - least) / 2) + 1};
    return found;
}

/* From what the edge says to the axis, by way of the clock that has its place already. */
static pki_clock_knot by_way_of(const pki_clocks *c, uint32_t placed, pki_clock_knot k)
{
    const pki_clock *way = &c->all[placed];
    uint64_t there = k.at + (uint64_t)k.offset;
    int64_t further = absolute(c, placed, there) - (int64_t)there;
    int64_t doubt = pki_clock_doubt(way);
    return (pki_clock_knot){k.at, k.offset + further, doubt < 0 ? -1 : k.doubt + doubt};
}

/* False: the edge has no bounds on both sides. */
static bool place_clock(pki_clocks *c, const edge *e, uint32_t placed)
{
    bool back = placed == e->b;
    pki_clock *it = &c->all[back ? e->a : e->b];
    double span = (double)(it->last - it->first);
    uint32_t pieces = (uint32_t)fmin(fmax(ceil(span / PKI_BOUNDS_LINE), 1), PKI_CLOCK_KNOTS - 1);
    pki_clock_knot knots[PKI_CLOCK_KNOTS];
    it->bounds = e->found.count;
    for (uint32_t i = 0; i <= pieces; i++) {
        uint64_t at = it->first + (it->last - it->first) / pieces * i;
        pki_bounds_found found = find_knot(e, c, back, at, &knots[i]);
        it->broken |= found == PKI_BOUNDS_BROKEN;
        if (found != PKI_BOUNDS_BOTH)
            return false;
        knots[i] = by_way_of(c, placed, knots[i]);
    }
    memcpy(it->knots, knots, sizeof knots);
    it->count = pieces + 1;
    it->method = PKI_CLOCK_BOUNDED;
    return true;
}

/* From the first clock on, by what is bounded from both sides. */
static void place_clocks(pki_clocks *c, const edges *e)
{
    bool *placed = memory_zeroed(c->count, sizeof *placed);
    placed[0] = true;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < e->count; i++) {
            const edge *it = e->all[i];
            if (placed[it->a] == placed[it->b])
                continue;
            uint32_t next = placed[it->a] ? it->b : it->a;
            placed[next] = place_clock(c, it, placed[it->a] ? it->a : it->b);
            more |= placed[next];
        }
    }
    free(placed);
}

bool pki_clocks_fit(pki_clocks *c, pki_joints *o, complaint *why)
{
    edges e;
    find_spans(c);
    bool found = find_edges(&e, c, o, why);
    if (found)
        place_clocks(c, &e);
    free_edges(&e);
    find_origin(c);
    return found;
}

/* ---- what they say ---- */

uint64_t pki_clocks_axis(const pki_clocks *c, const pki_clocked *of, uint64_t ns)
{
    int64_t at = absolute(c, of->clock, of->base_ns + ns) - (int64_t)c->origin;
    return at > 0 ? (uint64_t)at : 0;
}

int64_t pki_clock_doubt(const pki_clock *c)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->knots[i].doubt < 0)
            return -1;
        most = c->knots[i].doubt > most ? c->knots[i].doubt : most;
    }
    return most;
}

double pki_clock_drift(const pki_clock *c)
{
    const pki_clock_knot *a = &c->knots[0], *b = &c->knots[c->count - 1];
    return b->at > a->at ? (double)(b->offset - a->offset) / (double)(b->at - a->at) * 1e6 : 0;
}
