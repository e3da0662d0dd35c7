/* lib/attach/repeats.c - which symbol comes once a step */
#include "repeats.h"

#include <stdlib.h>
#include <string.h>

#include "attach/symbol_set.h"
#include "attach/values.h"

enum {
    KEPT = 16384,    /* symbols that are looked through */
    FIRST_LOOK = 64, /* symbols */
    OTHER = 255,     /* the number of all symbols beyond so many different ones */
    PLACES = 1024,
    CONTENTS = 1024, /* different contents of gaps */
    FAR = 48,        /* a gap with more different symbols is like no other */
    LEAST_TURNS = 10,
    EMERGING = 3, /* turns of one that is not known yet */
    DEPTH = 5,    /* loops in loops, of one symbol */
    ANCHORS = 256,
    POSITIONS = 4 * KEPT,
    LEVELS = 8,
    SEEN = 128,  /* turns, where some say enough... */
    MANY = 512,  /* ...and where it takes more */
    SURE = 1024, /* symbols */
    ROW = 4      /* turns that are alike */
};

/* Below that share of symbols that follow the one before as they most often do, the first time that
 * they do so apart, there is no loop. */
#define LEAST_PREDICTED 0.6
#define LEAST_ALIKE 50    /* percent of turns */
#define UNLIKE 10         /* and so much does not count */
#define LEAST_COVERED 0.5 /* of the symbols */
#define CONSTANT 0.9
#define SURELY_REGULAR 0.97
#define LEAST_USUAL 0.75   /* of a loop's turns: with the commonest content */
#define LEAST_LASTING 0.05 /* of the time of the run */
#define BY_CHANCE 0.7
#define LONG INT64_C(10000000000) /* ns */
#define LEAST_TIME 20000          /* of a step, ns: what polls turns faster */

typedef struct known_symbol {
    uint64_t site, with; /* with: 0: the whole symbol, whoever it is with */
    uint32_t region;
    uint32_t number; /* + 1; 0: free */
} known_symbol;

/* A symbol that ends a turn: each time, or where something outside a body came since the last, or
 * where it comes right after a certain one. */
typedef struct anchor {
    uint32_t symbol;
    uint32_t after; /* + 1; 0: any */
    bool of_run;
    bool parts; /* symbols are told apart by whom they are with */
    symbol_set body;
    uint32_t turns, at; /* its turns' positions: looks.positions[at...] */
} anchor;

typedef struct content {
    symbol_set set;
    uint32_t symbol, count;
    bool used;
} content;

/* What one look needs, allocated with the rest. */
typedef struct looks {
    uint8_t view[KEPT]; /* the symbols as this look sees them */
    bool parts;
    uint16_t follows[OTHER + 1][OTHER + 1];
    uint8_t pairs[OTHER + 1][OTHER + 1];
    uint16_t gap[KEPT];   /* contents[gap[i]]: what is between symbol i and the same one before */
    uint16_t order[KEPT]; /* positions by symbol */
    uint32_t start[OTHER + 2];
    content contents[CONTENTS];
    uint32_t content_count;
    uint32_t least_turns;
    anchor anchors[ANCHORS];
    uint32_t anchor_count;
    uint16_t positions[POSITIONS + KEPT]; /* the last ones: of the loop before */
    uint32_t position_count;
    symbol_set inside[MANY]; /* what is in a turn */
    double sorted[KEPT];
    uint16_t in_turn[OTHER + 1][SEEN];
} looks;

struct pki_repeats {
    uint64_t fed, next_look;
    uint8_t kept[KEPT];
    int64_t when[KEPT];
    uint32_t met[KEPT]; /* collectives of all ranks before it */
    known_symbol symbols[PLACES];
    uint32_t symbol_count;
    uint32_t regions[OTHER + 1];
    uint64_t sites[OTHER + 1];
    uint8_t whole[OTHER + 1];  /* what it is a part of, or itself */
    uint32_t parts[OTHER + 1]; /* how many it has */
    uint32_t nth[OTHER + 1];   /* which part it is, from 1; 0: it is none */
    bool any_parts;            /* of some symbol several */
    bool known, candidate_known;
    anchor loop, candidate;
    bool outside;           /* since the loop's anchor came last */
    uint32_t last;          /* symbol + 1; 0: none */
    uint64_t idle, longest; /* symbols since the last turn; the most between two */
    pki_repeats_loop told;
    looks look;
};

/* ---- symbols ---- */

static known_symbol *symbol_place(pki_repeats *r, uint32_t region, uint64_t site, uint64_t with)
{
    uint64_t hash = (site ^ region * UINT64_C(0xC2B2AE3D27D4EB4F)) + with;
    hash *= UINT64_C(0x9E3779B97F4A7C15);
    for (uint32_t place = (uint32_t)(hash >> 54) % PLACES;; place = (place + 1) % PLACES) {
        known_symbol *s = &r->symbols[place];
        if (!s->number || (s->region == region && s->site == site && s->with == with))
            return s;
    }
}

/* Of a symbol that has a part too many, or one for which there is no number, the whole. */
static uint32_t symbol_number(pki_repeats *r, uint32_t region, uint64_t site, uint64_t with)
{
    known_symbol *s = symbol_place(r, region, site, with);
    if (s->number)
        return s->number - 1;
    uint32_t whole = with ? symbol_number(r, region, site, 0) : OTHER;
    bool full = r->symbol_count >= (with ? OTHER - OTHER / 4 : OTHER);
    if (full || (with && r->parts[whole] >= PKI_REPEATS_PARTS)) {
        r->parts[whole] = PKI_REPEATS_PARTS + 1;
        return whole;
    }
    s = symbol_place(r, region, site, with);
    *s =
        (known_symbol){.site = site, .with = with, .region = region, .number = r->symbol_count + 1};
    r->regions[r->symbol_count] = region;
    r->sites[r->symbol_count] = site;
    r->whole[r->symbol_count] = (uint8_t)(with ? whole : r->symbol_count);
    r->nth[r->symbol_count] = with ? ++r->parts[whole] : 0;
    r->any_parts |= with && r->parts[whole] > 1;
    return r->symbol_count++;
}

/* As an anchor that tells parts apart sees it, or one that does not. */
static uint8_t seen_as(const pki_repeats *r, uint8_t symbol, bool parts)
{
    uint8_t whole = r->whole[symbol];
    return parts && r->parts[whole] <= PKI_REPEATS_PARTS ? symbol : whole;
}

/* ---- gaps: what comes between a symbol and the same one before ---- */

/* CONTENTS: too many different ones, or none like another. */
static uint16_t content_of(looks *l, uint8_t symbol, const uint8_t *between, size_t count)
{
    uint64_t hash = symbol;
    symbol_set set = {{0}};
    for (size_t i = 0; i < count; i++)
        set_add(&set, between[i]);
    for (int i = 0; i < 4; i++)
        hash = (hash ^ set.word[i]) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t place = (uint32_t)(hash >> 40) % CONTENTS;
    for (uint32_t tries = 0; tries < CONTENTS; tries++, place = (place + 1) % CONTENTS) {
        content *c = &l->contents[place];
        if (c->used && (c->symbol != symbol || !set_equal(&c->set, &set)))
            continue;
        if (!c->used && l->content_count >= CONTENTS / 2)
            break;
        l->content_count += !c->used;
        c->used = true;
        c->symbol = symbol;
        c->set = set;
        c->count++;
        return (uint16_t)place;
    }
    return CONTENTS;
}

static void find_gaps(pki_repeats *r, uint32_t n)
{
    looks *l = &r->look;
    uint8_t recent[OTHER + 1]; /* symbols, the last first */
    uint32_t recent_count = 0;
    memset(l->contents, 0, sizeof l->contents);
    l->content_count = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t symbol = l->view[i];
        const uint8_t *before = memchr(recent, symbol, recent_count);
        size_t depth = before ? (size_t)(before - recent) : recent_count;
        l->gap[i] = before && depth <= FAR ? content_of(l, symbol, recent, depth) : CONTENTS;
        recent_count += !before;
        memmove(recent + 1, recent, depth);
        recent[0] = symbol;
    }
}

static void order_by_symbol(pki_repeats *r, uint32_t n)
{
    looks *l = &r->look;
    uint32_t next[OTHER + 1];
    memset(l->start, 0, sizeof l->start);
    for (uint32_t i = 0; i < n; i++)
        l->start[l->view[i] + 1]++;
    for (uint32_t s = 0; s <= OTHER; s++)
        l->start[s + 1] += l->start[s];
    memcpy(next, l->start, sizeof next);
    for (uint32_t i = 0; i < n; i++)
        l->order[next[l->view[i]]++] = (uint16_t)i;
}

/* From the last symbol, or from the last two: in "aabbcc" one says little. */
static double predicted(pki_repeats *r, uint32_t n, bool by_two)
{
    looks *l = &r->look;
    uint32_t sum = 0, different = 0, pairs = 0;
    memset(l->follows, 0, sizeof l->follows);
    memset(l->pairs, 0, sizeof l->pairs);
    for (uint32_t i = 2; i < n; i++) {
        uint8_t last = l->view[i - 1], *both = &l->pairs[l->view[i - 2]][last];
        if (!*both)
            *both = (uint8_t)(pairs < OTHER ? ++pairs : OTHER);
        l->follows[by_two ? *both : last][l->view[i]]++;
    }
    for (uint32_t a = 0; a <= OTHER; a++) {
        uint32_t most = 0;
        for (uint32_t b = 0; b <= OTHER && (by_two || l->start[a + 1] > l->start[a]); b++)
            most = l->follows[a][b] > most ? l->follows[a][b] : most;
        sum += most - (most > 0);
        different += most > 0;
    }
    return n > different + 1 ? (double)sum / (n - 1 - different) : 0;
}

/* ---- anchors ---- */

static bool outside_body(const looks *l, uint32_t gap, const anchor *a)
{
    return gap >= CONTENTS || !a->of_run || !set_within(&l->contents[gap].set, &a->body);
}

static bool comes_after(const pki_repeats *r, uint32_t at, const anchor *a)
{
    return !a->after || (at > 0 && r->look.view[at - 1] + 1u == a->after);
}

static void add_anchor(pki_repeats *r, anchor a)
{
    looks *l = &r->look;
    if (l->anchor_count == ANCHORS)
        return;
    a.parts = l->parts;
    a.at = l->position_count;
    a.turns = 0;
    for (uint32_t i = l->start[a.symbol]; i < l->start[a.symbol + 1]; i++)
        if (outside_body(l, l->gap[l->order[i]], &a) && comes_after(r, l->order[i], &a) &&
            l->position_count < POSITIONS)
            l->positions[l->position_count++] = l->order[i], a.turns++;
    if (a.turns < l->least_turns)
        l->position_count = a.at;
    else
        l->anchors[l->anchor_count++] = a;
}

/* The commonest content of a symbol's gaps that is not within the body. */
static const content *commonest_outside(const looks *l, const anchor *a)
{
    const content *most = NULL;
    for (uint32_t i = 0; i < CONTENTS; i++) {
        const content *c = &l->contents[i];
        if (c->used && c->symbol == a->symbol && (!most || c->count > most->count) &&
            !(a->of_run && set_within(&c->set, &a->body)))
            most = c;
    }
    return most;
}

/* The anchors of a symbol: each time that it comes, then the first of each run, where a run's body
 * is what gaps most often have; then the first of runs of runs. */
static void anchors_of(pki_repeats *r, uint32_t symbol)
{
    looks *l = &r->look;
    anchor a = {.symbol = symbol};
    for (int depth = 0; depth < DEPTH; depth++) {
        uint32_t had = l->anchor_count;
        add_anchor(r, a);
        const content *next = l->anchor_count > had ? commonest_outside(l, &a) : NULL;
        if (!next)
            return;
        a.of_run = true;
        set_join(&a.body, &next->set);
    }
}

/* In the order in which they were found where they turn as often, so that all ranks agree. */
static void most_turns_first(anchor *all, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        anchor a = all[i];
        uint32_t to = i;
        for (; to > 0 && all[to - 1].turns < a.turns; to--)
            all[to] = all[to - 1];
        all[to] = a;
    }
}

/* ---- loops in loops ---- */

/* Turns of the inner anchor in each turn of the outer one; to sorted. */
static uint32_t count_inner(looks *l, const anchor *inner, const anchor *outer)
{
    const uint16_t *in = l->positions + inner->at, *out = l->positions + outer->at;
    uint32_t i = 0;
    while (i < inner->turns && in[i] < out[0])
        i++;
    for (uint32_t o = 1; o < outer->turns; o++) {
        uint32_t from = i;
        while (i < inner->turns && in[i] < out[o])
            i++;
        l->sorted[o - 1] = i - from;
    }
    return outer->turns - 1;
}

/* How regular the last turns are: for each symbol, the share of turns with as many of it as most
 * have; over all symbols, each as often as it comes. */
static double regularity(pki_repeats *r, const anchor *a)
{
    looks *l = &r->look;
    uint32_t turns = a->turns - 1 < SEEN ? a->turns - 1 : SEEN, all = 0;
    const uint16_t *turn = l->positions + a->at + (a->turns - 1 - turns);
    double sum = 0;
    memset(l->in_turn, 0, sizeof l->in_turn);
    for (uint32_t t = 0; t < turns; t++)
        for (uint32_t i = turn[t]; i < turn[t + 1]; i++)
            l->in_turn[l->view[i]][t]++;
    for (uint32_t s = 0; s <= OTHER; s++) {
        uint32_t number[64] = {0}, most = 0, times = 0;
        for (uint32_t t = 0; t < turns && l->start[s + 1] > l->start[s]; t++) {
            uint32_t same = ++number[l->in_turn[s][t] % 64];
            times += l->in_turn[s][t];
            most = same > most ? same : most;
        }
        sum += (double)times * most / turns;
        all += times;
    }
    return sum / all;
}

/* Where a symbol comes in several places of a turn, what it comes after tells these apart, unless
 * that is by chance. */
static void add_pairs(pki_repeats *r, uint32_t symbol)
{
    looks *l = &r->look;
    uint32_t all = l->start[symbol + 1] - l->start[symbol];
    for (uint32_t before = 0; before < OTHER && all >= 2 * l->least_turns; before++) {
        uint32_t times = l->follows[before][symbol];
        uint32_t had = l->anchor_count, used = l->position_count;
        if (times >= l->least_turns && times * 2 <= all)
            add_anchor(r, (anchor){.symbol = symbol, .after = before + 1});
        if (l->anchor_count > had && regularity(r, &l->anchors[had]) < SURELY_REGULAR) {
            l->anchor_count = had;
            l->position_count = used;
        }
    }
}

static void find_anchors(pki_repeats *r)
{
    looks *l = &r->look;
    l->anchor_count = l->position_count = 0;
    for (uint32_t s = 0; s < OTHER; s++)
        if (l->start[s + 1] - l->start[s] >= l->least_turns)
            anchors_of(r, s);
    for (uint32_t s = 0; s < OTHER; s++)
        add_pairs(r, s);
    most_turns_first(l->anchors, l->anchor_count);
}

/* The share of turns that have hardly anything in them: the anchor comes elsewhere, too. */
static double fragments(looks *l, const anchor *a)
{
    const uint16_t *turn = l->positions + a->at;
    uint32_t few = 0;
    for (uint32_t t = 0; t + 1 < a->turns; t++)
        l->sorted[t] = turn[t + 1] - turn[t];
    double usual = median(l->sorted, a->turns - 1);
    for (uint32_t t = 0; t + 1 < a->turns; t++)
        few += (turn[t + 1] - turn[t]) * 4 < usual;
    return (double)few / (a->turns - 1);
}

/* Of the same level: is it the better anchor than one of that regularity? Of those with as many
 * turns the one that comes first is, as a turn begins with it. */
static bool is_better(pki_repeats *r, const anchor *a, const anchor *than, double *regular)
{
    looks *l = &r->look;
    if (a->turns + 1 >= than->turns && a->turns <= than->turns + 1)
        return !a->after && (than->after || l->positions[a->at] < l->positions[than->at]);
    if (a->turns * 2 <= than->turns)
        return false;
    double its = regularity(r, a), broken = fragments(l, than);
    if (its <= *regular + 0.05 && (its < *regular - 0.02 || fragments(l, a) * 2 >= broken))
        return false;
    *regular = its;
    return true;
}

/* The anchors are sorted by turns. What has at most one turn of a level's anchor in its own is of
 * the same level: steps that leave something out, or another symbol of theirs. The most regular is
 * the level's. */
static uint32_t find_levels(pki_repeats *r, anchor *levels[LEVELS])
{
    looks *l = &r->look;
    uint32_t count = 0;
    double regular = 0;
    for (uint32_t i = 0; i < l->anchor_count; i++) {
        anchor *a = &l->anchors[i], *last = count ? levels[count - 1] : NULL;
        if (!last || median(l->sorted, count_inner(l, last, a)) >= 2) {
            if (count == LEVELS)
                return count;
            levels[count++] = a;
            regular = regularity(r, a);
        } else if (is_better(r, a, last, &regular)) {
            levels[count - 1] = a;
        }
    }
    return count;
}

/* Turns of the symbols between a turn and the next; to inside. */
static uint32_t find_inside(pki_repeats *r, const anchor *a)
{
    looks *l = &r->look;
    const uint16_t *turn = l->positions + a->at;
    for (uint32_t t = 0; t + 1 < a->turns; t++) {
        l->inside[t] = (symbol_set){{0}};
        for (uint32_t i = turn[t]; i < turn[t + 1]; i++)
            set_add(&l->inside[t], l->view[i]);
    }
    return a->turns - 1;
}

/* The commonest of the first count in inside, which of them are it, and how many. */
static uint32_t commonest_inside(const looks *l, uint32_t count, const bool *left_out,
                                 symbol_set *most)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < count && count - i > best; i++) {
        uint32_t same = 0;
        for (uint32_t j = i; j < count && !left_out[i]; j++)
            same += !left_out[j] && set_equal(&l->inside[i], &l->inside[j]);
        if (same > best) {
            best = same;
            *most = l->inside[i];
        }
    }
    return best;
}

/* Percent of turns with one of the four commonest contents; of many turns the last are seen. */
static uint32_t alike(pki_repeats *r, const anchor *a)
{
    anchor last = *a;
    bool seen[MANY] = {false};
    if (last.turns > MANY) {
        last.at += last.turns - MANY;
        last.turns = MANY;
    }
    uint32_t count = find_inside(r, &last), sum = 0;
    for (int rank = 0; rank < 4; rank++) {
        symbol_set most;
        uint32_t same = commonest_inside(&r->look, count, seen, &most);
        for (uint32_t i = 0; same && i < count; i++)
            seen[i] |= set_equal(&r->look.inside[i], &most);
        sum += same;
    }
    return count ? 100 * sum / count : 0;
}

/* In turns of the inner loop in which the outer one's anchor comes, is much left out that the
 * others have? Then it is a branch of that loop and not a loop around it. few: of a few turns the
 * last may have less, so there has to be something else in its place. */
static bool replaces(pki_repeats *r, const anchor *inner, const anchor *outer, bool few)
{
    looks *l = &r->look;
    const uint16_t *in = l->positions + inner->at, *out = l->positions + outer->at;
    anchor last = *inner;
    bool with[MANY] = {false};
    if (last.turns > MANY) {
        last.at += last.turns - MANY;
        last.turns = MANY;
        in = l->positions + last.at;
    }
    uint32_t count = find_inside(r, &last), o = 0, hits = 0, less = 0;
    for (uint32_t t = 0; t < count; t++) {
        while (o < outer->turns && out[o] <= in[t])
            o++;
        with[t] = o < outer->turns && out[o] <= in[t + 1];
    }
    symbol_set usual;
    if (!commonest_inside(l, count, with, &usual))
        return false;
    for (uint32_t t = 0; t < count; t++)
        if (with[t]) {
            symbol_set joined = usual;
            set_join(&joined, &l->inside[t]);
            int missing = set_size(&joined) - set_size(&l->inside[t]);
            int others = set_size(&joined) - set_size(&usual);
            hits++;
            less += missing * 5 >= set_size(&usual) * 2 && (!few || others * 2 >= missing);
        }
    return hits && less * 2 >= hits;
}

/* What turns of the inner loop take, to sorted: those in which the outer one's anchor comes (with),
 * or the others. */
static uint32_t times_of(pki_repeats *r, const anchor *inner, const anchor *outer, bool with)
{
    looks *l = &r->look;
    const uint16_t *in = l->positions + inner->at, *out = l->positions + outer->at;
    uint32_t o = 0, count = 0;
    for (uint32_t t = 0; t + 1 < inner->turns; t++) {
        while (o < outer->turns && out[o] <= in[t])
            o++;
        if ((o < outer->turns && out[o] <= in[t + 1]) == with)
            l->sorted[count++] = (double)(r->when[in[t + 1]] - r->when[in[t]]);
    }
    return count;
}

/* Of an outer turn's time, the share that its inner turns do not take if all take what is usual. By
 * middle ones and by means, of which the lower: what disturbs the machine makes any turn longer,
 * and where it always does most are waits. */
static double beside_inner(pki_repeats *r, const anchor *inner, const anchor *outer, double turns)
{
    double *times = r->look.sorted, middle, usual;
    uint32_t count = times_of(r, inner, outer, false);
    usual = mean(times, count);
    middle = median(times, count);
    count = times_of(r, inner, outer, true);
    double by_means = share_beside(usual, mean(times, count), turns);
    return fmin(by_means, share_beside(middle, median(times, count), turns));
}

/* Has each of so many turns on end a content of its own, and the same in each row of them? Then
 * they are parts of a larger turn. */
static bool have_places(pki_repeats *r, const anchor *inner, uint32_t row)
{
    looks *l = &r->look;
    static const bool none[MANY];
    symbol_set most;
    anchor last = *inner;
    uint32_t more = last.turns > MANY ? last.turns - MANY : 0, same = 0;
    last.at += more;
    last.turns -= more;
    uint32_t count = find_inside(r, &last);
    for (uint32_t i = 0; i + row < count; i++)
        same += set_equal(&l->inside[i], &l->inside[i + row]);
    return count >= 2 * row && same >= CONSTANT * (count - row) &&
           commonest_inside(l, count, none, &most) < LEAST_USUAL * count;
}

/* Is that outer loop what is done every so many turns of the inner one? People write 10, 25 or 100
 * for output and lists, 2 to 8 for the parts of a step; what always turns 50 times or more is an
 * epoch. What comes by chance has a variation near 1, iterations until something converges have
 * less. */
static bool every_so_many(pki_repeats *r, const anchor *inner, const anchor *outer)
{
    looks *l = &r->look;
    if (outer->turns < EMERGING)
        return true;
    uint32_t count = count_inner(l, inner, outer), same = 0;
    double usual = median(l->sorted, count);
    for (uint32_t i = 0; i < count; i++)
        same += l->sorted[i] == usual;
    bool constant = same >= CONSTANT * count, chance = variation(l->sorted, count) > BY_CHANCE;
    if (constant && have_places(r, inner, (uint32_t)usual))
        return false;
    if (replaces(r, inner, outer, constant && usual < 5))
        return true;
    if (!constant || usual < 5)
        return chance;
    double beside = beside_inner(r, inner, outer, usual);
    if (usual >= 50)
        return beside < 0.6;
    return ((uint32_t)usual % 10 == 0 || usual == 5 || usual == 25) && beside < 0.3;
}

/* Those of a run's turns that have a symbol before them, as an anchor of their own. */
static anchor turns_with(looks *l, const anchor *run, uint32_t symbol)
{
    anchor some = {.symbol = symbol, .at = l->position_count};
    for (uint32_t i = 0; i < run->turns; i++) {
        uint16_t at = l->positions[run->at + i], gap = l->gap[at];
        bool has = gap < CONTENTS && set_has(&l->contents[gap].set, symbol);
        if (has && some.at + some.turns < POSITIONS)
            l->positions[some.at + some.turns++] = at;
    }
    return some;
}

/* The same where several things are done every so many turns, each in its own: all but a few of the
 * outer turns have one of them. */
static bool all_every_so_many(pki_repeats *r, const anchor *inner, const anchor *outer)
{
    looks *l = &r->look;
    symbol_set every = {{0}};
    if (every_so_many(r, inner, outer))
        return true;
    for (uint32_t s = 0; s < OTHER && outer->of_run; s++) {
        anchor some = turns_with(l, outer, s);
        if (!set_has(&outer->body, s) && some.turns && every_so_many(r, inner, &some))
            set_add(&every, s);
    }
    uint32_t others = 0;
    for (uint32_t i = 0; i < outer->turns; i++) {
        uint16_t gap = l->gap[l->positions[outer->at + i]];
        bool has = false;
        for (int w = 0; w < 4 && gap < CONTENTS; w++)
            has |= l->contents[gap].set.word[w] & every.word[w];
        others += !has;
    }
    return others * 5 < outer->turns;
}

/* ---- a look ---- */

static bool covers(const looks *l, const anchor *a, uint32_t n)
{
    const uint16_t *turn = l->positions + a->at;
    uint32_t longest = 0;
    for (uint32_t t = 0; t + 1 < a->turns; t++)
        if (turn[t] + longest < turn[t + 1])
            longest = (uint32_t)(turn[t + 1] - turn[t]);
    uint32_t first = turn[0], last = turn[a->turns - 1];
    return last - first >= LEAST_COVERED * n && n - last <= 4 * longest + FIRST_LOOK;
}

static double usual_turn(pki_repeats *r, const anchor *a)
{
    looks *l = &r->look;
    const uint16_t *turn = l->positions + a->at;
    for (uint32_t t = 0; t + 1 < a->turns; t++)
        l->sorted[t] = (double)(r->when[turn[t + 1]] - r->when[turn[t]]);
    return median(l->sorted, a->turns - 1);
}

static bool turn_as_often(const anchor *a, const anchor *b)
{
    uint32_t slack = b->turns / 50 + 1;
    return a->turns + slack >= b->turns && b->turns + slack >= a->turns;
}

/* From the inside to the outside: the last that is a loop of its own. */
static bool choose(pki_repeats *r, uint32_t n, anchor *to, pki_repeats_loop *told)
{
    looks *l = &r->look;
    anchor *levels[LEVELS], *inner = NULL;
    uint32_t count = find_levels(r, levels);
    *told = (pki_repeats_loop){0};
    for (uint32_t i = 0; i < count; i++) {
        anchor *a = levels[i];
        if (!covers(l, a, n))
            continue;
        bool every = inner && all_every_so_many(r, inner, a);
        uint32_t same = every ? 0 : alike(r, a);
        double turns = inner ? median(l->sorted, count_inner(l, inner, a)) : 0;
        if (every && told->outer_steps == 0) {
            told->outer = r->regions[a->symbol];
            told->outer_steps = turns;
        }
        if (same < LEAST_ALIKE)
            continue;
        *told = (pki_repeats_loop){.alike = same, .inner_turns = turns};
        if (inner)
            told->inner = r->regions[inner->symbol];
        inner = a;
    }
    if (inner)
        *to = *inner;
    return inner && usual_turn(r, inner) >= LEAST_TIME;
}

static bool view(pki_repeats *r, uint32_t n, bool parts)
{
    r->look.parts = parts;
    r->look.least_turns = LEAST_TURNS;
    for (uint32_t i = 0; i < n; i++)
        r->look.view[i] = seen_as(r, r->kept[i], parts);
    order_by_symbol(r, n);
    bool regular = parts && predicted(r, n, true) >= LEAST_PREDICTED;
    if (predicted(r, n, false) < LEAST_PREDICTED && !regular)
        return false;
    find_gaps(r, n);
    return true;
}

static bool find_in_view(pki_repeats *r, uint32_t n, bool parts, anchor *to, pki_repeats_loop *told)
{
    if (!view(r, n, parts))
        return false;
    find_anchors(r);
    return choose(r, n, to, told);
}

/* One function may have all messages of a program, with all neighbours; then its turns are told
 * apart by whom they are with. Where that shows nothing more, it is not told. */
static bool find(pki_repeats *r, uint32_t n, anchor *to, pki_repeats_loop *told)
{
    anchor in_parts;
    pki_repeats_loop told_parts;
    bool any = find_in_view(r, n, false, to, told);
    bool more = r->any_parts && find_in_view(r, n, true, &in_parts, &told_parts);
    if (more &&
        (!any || (!turn_as_often(to, &in_parts) && told_parts.alike + UNLIKE >= told->alike))) {
        *to = in_parts;
        *told = told_parts;
        return true;
    }
    if (any && r->any_parts) { /* as it was seen before */
        view(r, n, false);
        r->look.anchor_count = r->look.position_count = 0;
        add_anchor(r, *to);
        *to = r->look.anchors[0];
    }
    return any;
}

/* ---- the number of a turn, the same on all ranks ---- */

/* Collectives of all ranks before the next turn, and within turn t. */
static uint32_t met_in(const pki_repeats *r, const uint16_t *turn, uint32_t t)
{
    return r->met[turn[t + 1]] - r->met[turn[t]];
}

/* How many collectives of all ranks most turns have; 0: they differ, or there are none. */
static uint32_t usual_meetings(const pki_repeats *r, const uint16_t *turn, uint32_t count)
{
    uint32_t usual = 0, votes = 0, same = 0;
    for (uint32_t t = 0; t < count; t++) { /* what more than half have (Boyer and Moore) */
        uint32_t met = met_in(r, turn, t);
        if (votes && met != usual) {
            votes--;
        } else {
            usual = met;
            votes++;
        }
    }
    for (uint32_t t = 0; t < count; t++)
        same += met_in(r, turn, t) == usual;
    return same >= LEAST_USUAL * count ? usual : 0;
}

/* Ranks see the loop at different turns, as they have more messages or fewer; so turns are counted
 * from the first one on that is the same for all: that begins a row in which each has as many
 * collectives of all ranks as most have, or any at all where these numbers differ. A rank's own
 * turns before, without others, have none. Answers how many come before it. */
static uint32_t turns_before_all(const pki_repeats *r, const uint16_t *turn, uint32_t count)
{
    uint32_t usual = usual_meetings(r, turn, count), row = 0;
    for (uint32_t t = 0; t < count; t++) {
        uint32_t met = met_in(r, turn, t);
        row = (usual ? met == usual : met > 0) ? row + 1 : 0;
        if (row == ROW)
            return t + 1 - ROW;
    }
    return 0;
}

/* ---- what a loop begins with ---- */

static pki_repeats_symbol symbol_of(const pki_repeats *r, uint32_t number)
{
    uint32_t nth = r->parts[r->whole[number]] > 1 ? r->nth[number] : 0;
    return (pki_repeats_symbol){r->regions[number], r->sites[number], nth};
}

static bool has_all_parts(const pki_repeats *r, const symbol_set *body, uint32_t whole)
{
    bool all = r->parts[whole] <= PKI_REPEATS_PARTS;
    for (uint32_t s = 0; s < r->symbol_count && all; s++)
        all = r->whole[s] != whole || !r->nth[s] || set_has(body, s);
    return all;
}

static void describe(pki_repeats *r)
{
    const anchor *a = &r->loop;
    pki_repeats_begin b = {.symbol = symbol_of(r, a->symbol),
                           .after = a->after > 0,
                           .of_run = a->of_run,
                           .only = r->symbol_count < OTHER,
                           .whole = a->after != OTHER + 1 && !set_has(&a->body, OTHER)};
    if (a->after)
        b.before = symbol_of(r, a->after - 1);
    for (uint32_t s = 0; s < r->symbol_count; s++) {
        bool other = r->whole[s] != r->whole[a->symbol] || r->nth[a->symbol];
        b.only &= s == a->symbol || !other || r->regions[s] != r->regions[a->symbol];
        bool all = r->nth[s] && has_all_parts(r, &a->body, r->whole[s]);
        if (!set_has(&a->body, s) || (all && r->nth[s] > 1)) /* the whole at its first part */
            continue;
        b.whole &= b.body_count < PKI_REPEATS_BODY;
        if (b.whole)
            b.body[b.body_count++] = symbol_of(r, all ? r->whole[s] : s);
    }
    r->told.begin = b;
}

/* ---- turns ---- */

/* Does a turn begin with it? before: the symbol before + 1, or 0; outside: since the anchor came
 * last. */
static bool begins_turn(const anchor *a, uint32_t symbol, uint32_t before, bool *outside)
{
    if (symbol != a->symbol || (a->after && before != a->after)) {
        *outside |= !set_has(&a->body, symbol);
        return false;
    }
    bool turn = !a->of_run || *outside;
    *outside = false;
    return turn;
}

/* at: of what is kept. */
static bool turns_at(pki_repeats *r, uint64_t at)
{
    uint8_t seen = seen_as(r, r->kept[at], r->loop.parts);
    bool turn = begins_turn(&r->loop, seen, r->last, &r->outside);
    r->idle++;
    r->last = seen + 1u;
    if (turn && r->told.turns++)
        r->longest = r->idle > r->longest ? r->idle : r->longest;
    if (turn) {
        r->idle = 0;
        r->told.ended = r->when[at];
    }
    return turn && r->told.turns > 1;
}

/* Finds the turns of a loop that was found before, in what is kept now. */
static void turn_again(pki_repeats *r, uint32_t n, anchor *a)
{
    bool outside = true;
    uint32_t before = 0;
    a->at = POSITIONS;
    a->turns = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t seen = seen_as(r, r->kept[i], a->parts);
        if (begins_turn(a, seen, before, &outside))
            r->look.positions[a->at + a->turns++] = (uint16_t)i;
        before = seen + 1u;
    }
}

/* The loop is known: what is kept of the symbols says how often it has turned. */
static void know(pki_repeats *r, uint32_t n, const anchor *loop, const pki_repeats_loop *told)
{
    uint32_t number = r->told.number + 1;
    r->loop = *loop;
    r->told = *told;
    r->told.number = number;
    r->told.region = r->regions[loop->symbol];
    r->told.first_of_run = loop->of_run;
    r->known = r->outside = true;
    r->idle = r->longest = r->last = 0;
    uint32_t turns = 0;
    for (uint32_t i = 0; i < n; i++) {
        turns_at(r, i);
        r->look.positions[turns] = (uint16_t)i;
        turns += r->told.turns > turns;
    }
    r->told.turns -= r->told.turns > 0; /* the first anchor begins the first turn */
    r->told.before = r->told.turns;
    r->told.began = r->when[r->look.positions[0]];
    describe(r);
    r->told.alone = turns_before_all(r, r->look.positions, (uint32_t)r->told.turns);
}

/* Does that loop turn as often as the one that is found, and in turn with it? more: turns that it
 * has and the found one has not. */
static bool is_the_same(pki_repeats *r, uint32_t n, anchor before, const anchor *found,
                        uint32_t *more)
{
    looks *l = &r->look;
    turn_again(r, n, &before);
    *more = before.turns > found->turns ? before.turns - found->turns : 0;
    return turn_as_often(&before, found) && median(l->sorted, count_inner(l, &before, found)) == 1;
}

/* The same loop has a better anchor: one that comes in each step, and only there. */
static void correct(pki_repeats *r, const anchor *found, uint32_t more)
{
    uint64_t less = r->told.before < more ? r->told.before : more;
    r->loop = *found;
    r->told.turns -= less;
    r->told.before -= less;
    r->told.region = r->regions[found->symbol];
    r->told.first_of_run = found->of_run;
    r->outside = true;
    describe(r);
}

/* A loop around that one has turned some times: it is waited for, in vain perhaps. */
static bool another_emerges(pki_repeats *r, uint32_t n, const anchor *found)
{
    anchor outer, inner = *found; /* its turns' positions are written over */
    pki_repeats_loop told;
    uint32_t turns = inner.turns;
    if (n == KEPT)
        return false;
    r->look.least_turns = EMERGING;
    find_anchors(r);
    return choose(r, n, &outer, &told) && outer.turns * 2 <= turns;
}

/* Would its turns, each as long as the middle one, be much of that time? What comes on end while a
 * program begins or ends (lines of its input, the log of its solver) is not its loop. */
static bool lasts(pki_repeats *r, const anchor *found, int64_t since, int64_t now)
{
    return usual_turn(r, found) * found->turns >= LEAST_LASTING * (double)(now - since);
}

/* One look is not believed, two that agree are; and of few symbols only where they took long: the
 * inner loops are seen first. */
static void look(pki_repeats *r)
{
    uint32_t n = r->fed < KEPT ? (uint32_t)r->fed : KEPT;
    anchor found;
    pki_repeats_loop told;
    bool any = find(r, n, &found, &told);
    uint32_t more = 0;
    bool again = any && r->candidate_known && is_the_same(r, n, r->candidate, &found, &more);
    bool sure = n >= SURE || r->when[n - 1] - r->when[0] > LONG;
    r->candidate_known = any;
    r->candidate = any ? found : r->candidate;
    if (!again || !sure)
        return;
    bool same = r->known && is_the_same(r, n, r->loop, &found, &more);
    if (same && more > 1)
        correct(r, &found, more);
    bool next = !r->told.number || n == KEPT || lasts(r, &found, r->told.began, r->when[n - 1]);
    if (!same && next && !another_emerges(r, n, &found))
        know(r, n, &found, &told);
}

static void forget(pki_repeats *r)
{
    r->known = r->candidate_known = false;
    r->fed = 0;
    r->next_look = FIRST_LOOK;
}

bool pki_repeats_feed(pki_repeats *r, uint32_t region, uint64_t site, uint64_t with, int64_t ns,
                      uint32_t met)
{
    uint32_t number = symbol_number(r, region, site, with);
    bool turn = false;
    r->kept[r->fed % KEPT] = (uint8_t)number;
    r->met[r->fed % KEPT] = met;
    r->when[r->fed++ % KEPT] = ns;
    if (r->known)
        turn = turns_at(r, (r->fed - 1) % KEPT);
    if (r->known && r->idle > 8 * r->longest + FIRST_LOOK)
        forget(r); /* that loop is over; there may be another */
    if (r->fed == r->next_look) {
        look(r);
        r->next_look *= 2;
    }
    return turn;
}

pki_repeats *pki_repeats_new(void)
{
    pki_repeats *r = calloc(1, sizeof *r);
    if (r) {
        r->next_look = FIRST_LOOK;
        r->whole[OTHER] = OTHER;
    }
    return r;
}

void pki_repeats_free(pki_repeats *r)
{
    free(r);
}

pki_repeats_loop pki_repeats_told(pki_repeats *r, int64_t over)
{
    uint32_t n = over && r->fed < KEPT ? (uint32_t)r->fed : 0;
    anchor found;
    pki_repeats_loop told;
    if (!r->known && n >= FIRST_LOOK && !r->told.number && find(r, n, &found, &told) &&
        lasts(r, &found, r->when[0], over))
        know(r, n, &found, &told);
    if (over && r->told.number)
        describe(r);
    return r->told;
}
