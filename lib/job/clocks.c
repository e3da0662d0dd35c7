#include "job/clocks.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pk/comm.h>

#include "base/map.h"
#include "base/memory.h"
#include "comm/model/communicator.h"
#include "out/file.h"

/* ---- what ranks did together ---- */

#define PARTS 256
#define CHUNK 256 /* operations that a part keeps in memory */

typedef struct part {
    pki_joint *waiting;
    size_t used, chunks, room;
    uint64_t *places; /* of its chunks in the file */
} part;

struct pki_joints {
    const char *path; /* of what lies beside it */
    int fd;
    uint64_t end;
    part parts[PARTS];
};

pki_joint_kind pki_joint_kind_of(uint32_t op)
{
    switch (op) {
    case PK_COMM_OP_ALL_REDUCE:
    case PK_COMM_OP_ALL_GATHER:
    case PK_COMM_OP_REDUCE_SCATTER:
    case PK_COMM_OP_ALL_TO_ALL:
    case PK_COMM_OP_BARRIER:
        return PKI_JOINT_ALL;
    case PK_COMM_OP_BROADCAST:
    case PK_COMM_OP_SCATTER:
        return PKI_JOINT_FROM;
    case PK_COMM_OP_REDUCE:
    case PK_COMM_OP_GATHER:
        return PKI_JOINT_TO;
    case PK_COMM_OP_SEND:
    case PK_COMM_OP_SEND_RECV:
        return PKI_JOINT_SEND;
    case PK_COMM_OP_RECV:
        return PKI_JOINT_RECEIVE;
    default:
        return PKI_JOINT_LOOSE;
    }
}

pki_joints *pki_joints_create(const char *path)
{
    pki_joints *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->path = path;
    o->fd = -1;
    return o;
}

void pki_joints_destroy(pki_joints *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < PARTS; i++) {
        free(o->parts[i].waiting);
        free(o->parts[i].places);
    }
    if (o->fd >= 0)
        close(o->fd);
    free(o);
}

static bool open_file(pki_joints *o)
{
    char name[PATH_MAX];
    if (o->fd >= 0)
        return true;
    o->fd = pki_file_fresh(o->path, PKI_FILE_PRIVATE, name, sizeof name);
    if (o->fd >= 0)
        unlink(name);
    return o->fd >= 0;
}

static bool write_all(int fd, const char *data, size_t n, uint64_t at)
{
    if (!pki_mem_may_grow(at + n))
        return false;
    while (n > 0) {
        ssize_t put = pwrite(fd, data, n, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        data += put;
        n -= (size_t)put;
        at += (uint64_t)put;
    }
    return true;
}

static bool read_all(int fd, char *data, size_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t got = pread(fd, data, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : EIO;
            return false;
        }
        data += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return true;
}

/* A part that has a chunk's worth goes to the file. */
static bool put_away(pki_joints *o, part *p)
{
    const size_t bytes = CHUNK * sizeof *p->waiting;
    if (!open_file(o) || !write_all(o->fd, (const char *)p->waiting, bytes, o->end) ||
        !pki_array_fit(&p->places, &p->room, p->chunks + 1, sizeof *p->places))
        return false;
    p->places[p->chunks++] = o->end;
    o->end += bytes;
    p->used = 0;
    return true;
}

bool pki_joints_add(pki_joints *o, const pki_joint *op)
{
    part *p = &o->parts[op->key % PARTS];
    if (!p->waiting)
        p->waiting = calloc(CHUNK, sizeof *p->waiting);
    if (!p->waiting || p->used == CHUNK)
        return false; /* there was no room for a whole chunk */
    p->waiting[p->used++] = *op;
    return p->used < CHUNK || put_away(o, p);
}

static int in_order(const void *a, const void *b)
{
    const pki_joint *one = a, *other = b;
    if (one->key != other->key)
        return one->key < other->key ? -1 : 1;
    if (one->kind != other->kind)
        return one->kind < other->kind ? -1 : 1;
    if (one->rank != other->rank)
        return one->rank < other->rank ? -1 : 1;
    return one->start < other->start ? -1 : one->start > other->start;
}

static void each_group(pki_joint *all, size_t n, pki_joints_group *group, void *user)
{
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && all[next].key == all[i].key; next++)
            ;
        group(user, all + i, next - i);
    }
}

static bool each_group_of_part(const pki_joints *o, const part *p, pki_joints_group *group,
                               void *user)
{
    size_t n = p->chunks * CHUNK + p->used;
    pki_joint *all = pki_array_zeroed(n, sizeof *all);
    bool whole = all != NULL;
    for (size_t i = 0; whole && i < p->chunks; i++)
        whole = read_all(o->fd, (char *)(all + i * CHUNK), CHUNK * sizeof *all, p->places[i]);
    if (whole && n) {
        if (p->used)
            memcpy(all + p->chunks * CHUNK, p->waiting, p->used * sizeof *all);
        qsort(all, n, sizeof *all, in_order);
        each_group(all, n, group, user);
    }
    int error = errno;
    free(all);
    errno = error;
    return whole;
}

bool pki_joints_each(pki_joints *o, pki_joints_group *group, void *user)
{
    for (size_t i = 0; i < PARTS; i++)
        if (!each_group_of_part(o, &o->parts[i], group, user))
            return false;
    return true;
}

bool pki_joints_are_one(const pki_joint *all, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (all[i].rank == all[i - 1].rank || all[i].kind != all[0].kind)
            return false;
    return count <= all[0].ranks;
}

size_t pki_joints_receives(const pki_joint *all, size_t count)
{
    size_t i = 0;
    while (i < count && all[i].kind != PKI_JOINT_RECEIVE)
        i++;
    return i;
}

/* ---- how far two clocks are apart: bounds from both sides, over time ---- */

#define ROUNDS 60 /* of narrowing down a slope: to 1e-13 */

static pki_bounds_piece *piece_at(pki_bounds *b, double at)
{
    double place = b->span > 0 ? (at - b->from) / b->span * PKI_BOUNDS_PIECES : 0;
    int i = place > 0 ? place < PKI_BOUNDS_PIECES - 1 ? (int)place : PKI_BOUNDS_PIECES - 1 : 0;
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
    double share = (double)(at - a->at) / (double)(b->at - a->at);
    return a->offset + llround((double)(b->offset - a->offset) * share);
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
    pki_map map; /* by a and b */
} edges;

#define EDGES_MOST 2048 /* 48 MiB: each clock with the first one, and some more */

/* What one collective says of each clock: when the last of its ranks began, the first ended. */
typedef struct extremes {
    uint64_t last_start, first_end;
    bool there;
} extremes;

typedef struct finding {
    edges *edges;
    const pki_clocks *clocks;
    extremes *of; /* by clock */
    bool failed;  /* without memory */
} finding;

static uint32_t hash_of(const edge *e)
{
    return pki_map_hash(e->a, e->b);
}

static bool is_edge(const void *all, uint32_t number, const void *sought)
{
    const edge *there = ((edge *const *)all)[number], *e = sought;
    return there->a == e->a && there->b == e->b;
}

static edge *make_edge(finding *f, uint32_t a, uint32_t b)
{
    edges *e = f->edges;
    if (e->count == EDGES_MOST || f->failed)
        return NULL;
    const pki_clock *one = &f->clocks->all[a], *other = &f->clocks->all[b];
    edge *made = calloc(1, sizeof *made), is = {.a = a, .b = b};
    if (!made || !pki_array_fit(&e->all, &e->room, e->count + 1, sizeof *e->all) ||
        !pki_map_put(&e->map, hash_of(&is), (uint32_t)e->count)) {
        free(made);
        f->failed = true;
        return NULL;
    }
    *made = is;
    made->about = other->real_offset - one->real_offset;
    made->found.span = (double)(other->last - other->first);
    e->all[e->count++] = made;
    return made;
}

/* a < b; NULL: there are too many, or there is no memory. */
static edge *edge_of(finding *f, uint32_t a, uint32_t b)
{
    const edges *e = f->edges;
    const edge is = {.a = a, .b = b};
    uint32_t at = pki_map_find(&e->map, hash_of(&is), is_edge, e->all, &is);
    return at == PKI_MAP_NONE ? make_edge(f, a, b) : e->all[at];
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

/* From all operations, whose files have been read. False and errno. */
static bool find_edges(edges *e, const pki_clocks *c, pki_joints *o)
{
    finding f = {.edges = e, .clocks = c, .of = pki_array_zeroed(c->count, sizeof *f.of)};
    *e = (edges){0};
    f.failed = !f.of;
    bool found = !f.failed && pki_joints_each(o, add_group, &f);
    free(f.of);
    if (f.failed)
        errno = ENOMEM;
    return found && !f.failed;
}

static void free_edges(edges *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->all[i]);
    free(e->all);
    pki_map_finish(&e->map);
}

/* ---- which there are ---- */

/* UINT32_MAX: without memory. */
static uint32_t clock_named(pki_clocks *c, size_t *room, const pki_clocked *s)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (strcmp(c->all[i].name, s->name) == 0)
            return i;
    if (!pki_array_fit(&c->all, room, c->count + 1, sizeof *c->all))
        return UINT32_MAX;
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

bool pki_clocks_make(pki_clocks *c, const pki_clocked_files *files)
{
    size_t room = 0;
    *c = (pki_clocks){.files = *files};
    for (size_t i = 0; i < files->count; i++) {
        uint32_t at = clock_named(c, &room, file_at(c, i));
        if (at == UINT32_MAX)
            return false;
        file_at(c, i)->clock = at;
    }
    find_spans(c);
    for (size_t i = 0; i < c->count; i++)
        use_real_time(c, &c->all[i]);
    find_origin(c);
    return true;
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
static bool place_clocks(pki_clocks *c, const edges *e)
{
    bool *placed = pki_array_zeroed(c->count, sizeof *placed);
    if (!placed)
        return false;
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
    return true;
}

bool pki_clocks_fit(pki_clocks *c, pki_joints *o)
{
    edges e;
    find_spans(c);
    bool found = find_edges(&e, c, o) && place_clocks(c, &e);
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

double pki_clock_drift_doubt(const pki_clock *c)
{
    const pki_clock_knot *a = &c->knots[0], *b = &c->knots[c->count - 1];
    bool known = c->method == PKI_CLOCK_SAME || (a->doubt >= 0 && b->doubt >= 0 && b->at > a->at);
    if (!known)
        return INFINITY;
    return b->at > a->at ? (double)(a->doubt + b->doubt) / (double)(b->at - a->at) * 1e6 : 0;
}
