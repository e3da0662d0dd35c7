#include "merge/clocks.h"

#include "memory.h"
#include "merge/edges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which there are ---- */

static uint32_t clock_of(merge_clocks *c, size_t *room, const merge_source *s)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (strcmp(c->all[i].name, s->clock_name) == 0)
            return i;
    memory_fit(&c->all, room, c->count + 1, sizeof *c->all);
    merge_clock *it = &c->all[c->count];
    *it = (merge_clock){.name = s->clock_name, .host = s->host, .first = UINT64_MAX, .count = 1};
    it->real_offset = (int64_t)(s->unix_ns - s->base_ns);
    return (uint32_t)c->count++;
}

static void find_spans(merge_clocks *c, const merge_sources *s)
{
    for (size_t i = 0; i < s->count; i++) {
        merge_clock *it = &c->all[s->all[i].clock];
        uint64_t from = s->all[i].base_ns, to = from + s->all[i].last_ns;
        it->first = from < it->first ? from : it->first;
        it->last = to > it->last ? to : it->last;
    }
}

/* Without the origin, which the answer is for. */
static int64_t absolute(const merge_clocks *c, uint32_t clock, uint64_t at);

static void find_origin(merge_clocks *c, const merge_sources *s)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < s->count; i++) {
        int64_t begins = absolute(c, s->all[i].clock, s->all[i].base_ns);
        first = begins < first ? begins : first;
    }
    c->origin = (uint64_t)first;
    c->origin_unix = (uint64_t)(first + c->all[0].real_offset);
}

static void use_real_time(const merge_clocks *c, merge_clock *it)
{
    it->method = it == c->all ? CLOCK_SAME : CLOCK_REAL_TIME;
    it->count = 1;
    it->knots[0] = (clock_knot){.at = it->first,
                                .offset = it->real_offset - c->all[0].real_offset,
                                .doubt = it == c->all ? 0 : -1};
}

void clocks_make(merge_clocks *c, merge_sources *s)
{
    size_t room = 0;
    *c = (merge_clocks){0};
    for (size_t i = 0; i < s->count; i++)
        s->all[i].clock = clock_of(c, &room, &s->all[i]);
    find_spans(c, s);
    for (size_t i = 0; i < c->count; i++)
        use_real_time(c, &c->all[i]);
    find_origin(c, s);
}

void clocks_free(merge_clocks *c)
{
    free(c->all);
}

/* ---- how far they are apart ---- */

/* The offset of an edge's second clock to the first one at a moment of the second, or the other way
 * round. */
static bounds_found find_knot(const edge *e, const merge_clocks *c, bool back, uint64_t at,
                              clock_knot *knot)
{
    double least, most, moment = (double)(int64_t)(at - c->all[e->b].first);
    bounds_found found =
        bounds_at(&e->found, back ? moment - (double)e->about : moment, &least, &most);
    if (found != BOUNDS_BOTH)
        return found;
    int64_t offset = e->about + llround((least + most) / 2);
    *knot = (clock_knot){at, back ? -offset : offset, (int64_t)ceil((most - least) / 2) + 1};
    return found;
}

/* From what the edge says to the axis, by way of the clock that has its place already. */
static clock_knot by_way_of(const merge_clocks *c, uint32_t placed, clock_knot k)
{
    const merge_clock *way = &c->all[placed];
    uint64_t there = k.at + (uint64_t)k.offset;
    int64_t further = absolute(c, placed, there) - (int64_t)there;
    int64_t doubt = clock_doubt(way);
    return (clock_knot){k.at, k.offset + further, doubt < 0 ? -1 : k.doubt + doubt};
}

/* False: the edge has no bounds on both sides. */
static bool place_clock(merge_clocks *c, const edge *e, uint32_t placed)
{
    bool back = placed == e->b;
    merge_clock *it = &c->all[back ? e->a : e->b];
    double span = (double)(it->last - it->first);
    uint32_t pieces = (uint32_t)fmin(fmax(ceil(span / BOUNDS_LINE), 1), CLOCK_KNOTS - 1);
    clock_knot knots[CLOCK_KNOTS];
    it->bounds = e->found.count;
    for (uint32_t i = 0; i <= pieces; i++) {
        uint64_t at = it->first + (it->last - it->first) / pieces * i;
        bounds_found found = find_knot(e, c, back, at, &knots[i]);
        it->broken |= found == BOUNDS_BROKEN;
        if (found != BOUNDS_BOTH)
            return false;
        knots[i] = by_way_of(c, placed, knots[i]);
    }
    memcpy(it->knots, knots, sizeof knots);
    it->count = pieces + 1;
    it->method = CLOCK_BOUNDED;
    return true;
}

/* From the first clock on, by what is bounded from both sides. */
static void place_clocks(merge_clocks *c, const edges *e)
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

bool clocks_fit(merge_clocks *c, const merge_sources *s, operations *o, complaint *why)
{
    edges e;
    find_spans(c, s);
    bool found = edges_find(&e, c, s, o, why);
    if (found)
        place_clocks(c, &e);
    edges_free(&e);
    find_origin(c, s);
    return found;
}

/* ---- what they say ---- */

static int64_t offset_at(const merge_clock *c, uint64_t at)
{
    uint32_t i = 0;
    if (c->count == 1 || at <= c->knots[0].at)
        return c->knots[0].offset;
    while (i + 2 < c->count && at >= c->knots[i + 1].at)
        i++;
    const clock_knot *a = &c->knots[i], *b = a + 1;
    if (at >= b->at || b->at == a->at)
        return b->offset;
    double part = (double)(at - a->at) / (double)(b->at - a->at);
    return a->offset + llround((double)(b->offset - a->offset) * part);
}

static int64_t absolute(const merge_clocks *c, uint32_t clock, uint64_t at)
{
    return (int64_t)at + offset_at(&c->all[clock], at);
}

uint64_t clocks_axis(const merge_clocks *c, const merge_source *s, uint64_t ns)
{
    int64_t at = absolute(c, s->clock, s->base_ns + ns) - (int64_t)c->origin;
    return at > 0 ? (uint64_t)at : 0;
}

int64_t clock_doubt(const merge_clock *c)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->knots[i].doubt < 0)
            return -1;
        most = c->knots[i].doubt > most ? c->knots[i].doubt : most;
    }
    return most;
}

double clock_drift(const merge_clock *c)
{
    const clock_knot *a = &c->knots[0], *b = &c->knots[c->count - 1];
    return b->at > a->at ? (double)(b->offset - a->offset) / (double)(b->at - a->at) * 1e6 : 0;
}
