#include "walk.h"

#include <stddef.h>

#include "kit.h"

#define KEPT 64 /* the depth that the headers promise */

/* Declared, and named at run time; the last three are variants. */
static pk_region declared[] = {
    PK_REGION("w0"),
    PK_REGION_OF(PK_COMPUTE, "w1"),
    PK_REGION_OF(PK_DATA, "w2"),
    PK_REGION_OF(PK_COMM, "w3"),
    PK_REGION_OF(PK_IO, "w4"),
    PK_REGION_OF(PK_WAIT, "w5"),
};
static pk_region variants = PK_REGION_OF(PK_COMPUTE, "variants");
static pk_counter counter = PK_COUNTER("walk.counter", "steps");

#define DECLARED (sizeof declared / sizeof *declared)

pk_region *walk_region(unsigned i)
{
    static const char *const names[] = {"named 6", "named 7", "named 8"};
    if (i < DECLARED)
        return &declared[i];
    if (i < 9)
        return pk_region_named(names[i - 6]);
    return pk_region_variant(&variants, "n", (int64_t)i - 10);
}

typedef struct walker {
    walk_sums *sums;
    uint64_t chance;
    unsigned depth;
    uint8_t open[WALK_DEEPEST];
} walker;

static unsigned choose(walker *w, unsigned n)
{
    return (unsigned)(kit_random(&w->chance) >> 33) % n;
}

static void count_begin(walker *w, unsigned region)
{
    bool kept = w->depth < KEPT;
    w->open[w->depth++] = (uint8_t)region;
    w->sums->begun++;
    w->sums->too_deep += !kept;
    w->sums->calls[region] += kept;
}

static void begin(walker *w)
{
    unsigned region = choose(w, WALK_REGIONS);
    pk_region_begin(walk_region(region));
    count_begin(w, region);
}

static void end(walker *w)
{
    pk_region_end(walk_region(w->open[--w->depth]));
}

static void next(walker *w)
{
    unsigned region = choose(w, WALK_REGIONS);
    pk_region_next(walk_region(w->open[--w->depth]), walk_region(region));
    count_begin(w, region);
}

static void add(walker *w)
{
    unsigned region = w->open[w->depth - 1], bytes = 1 + choose(w, 1000);
    if (w->depth > KEPT)
        return;
    pk_region_add(walk_region(region), bytes, 0);
    w->sums->bytes[region] += bytes;
}

/* As after a longjmp: an end of a region further out. */
static void end_outer(walker *w)
{
    unsigned at = choose(w, w->depth);
    if (w->depth > KEPT)
        return;
    for (unsigned i = at + 1; i < w->depth; i++)
        if (w->open[i] == w->open[at])
            at = i; /* the innermost of that name is meant */
    pk_region_end(walk_region(w->open[at]));
    w->sums->unbalanced += w->depth - 1 - at;
    w->depth = at;
}

static void point(walker *w, bool steps)
{
    unsigned which = choose(w, steps ? 3 : 2);
    if (which == 0)
        pk_region_mark(walk_region(choose(w, WALK_REGIONS)));
    else if (which == 1)
        pk_counter_set(&counter, w->depth);
    else
        pk_step(w->depth);
    w->sums->points++;
    w->sums->steps += which == 2;
}

static void wander(walker *w, bool steps)
{
    unsigned dice = choose(w, 1000);
    if (dice < 20)
        point(w, steps);
    else if (dice < 40 && w->depth)
        add(w);
    else if (dice < 45 && w->depth)
        end_outer(w);
    else if (dice < 100 && w->depth)
        next(w);
    else if ((dice < 560 || !w->depth) && w->depth < WALK_DEEPEST)
        begin(w);
    else
        end(w);
}

void walk(walk_sums *sums, uint64_t seed, unsigned regions, bool steps)
{
    walker w = {.sums = sums, .chance = seed * UINT64_C(0x9E3779B97F4A7C15) | 1};
    uint64_t until = sums->begun + regions;
    while (sums->begun < until)
        wander(&w, steps);
    while (w.depth)
        end(&w);
}

void walk_add(walk_sums *to, const walk_sums *from)
{
    const uint64_t *more = &from->begun;
    uint64_t *sum = &to->begun;
    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
        sum[i] += more[i];
}
