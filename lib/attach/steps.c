/* lib/attach/steps.c - where the steps of a program are that says nothing of them: found in what
 * repeats on the main thread (repeats.h), or by the user's word.
 *
 * `pk run --step WISH` is "none", or
 *
 *     NAME[@WHERE][ after NAME[@WHERE]][ among NAME[@WHERE]; ...][/N]
 *
 * a step begins with each NAME; with those right after another one; with the first of several in a
 * row of these; with each Nth of them. WHERE is a communicator, by its name in the report or its
 * size, or a place in the program as the report has it: "solve+0x1f". What was found is told in
 * these words. A region of exactly that name is it, whatever stands in it.
 */
#include "attach/attach.h"

#include <pk/private.h>
#include <pk/region.h>
#include <pk/step.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/repeats.h"

static _Thread_local bool is_main; /* and steps are looked for */
static pki_repeats *repeats;       /* NULL: the user has said it */
static uint32_t loop;              /* in whose steps we are */

/* ---- what libpk_mpi tells ---- */

/* Collectives of MPI_COMM_WORLD that have begun. */
PK_API extern uint32_t pk_attach_met_;
uint32_t pk_attach_met_;

/* The next communicator that a call of MPI's on the main thread looks up is asked for. */
PK_API extern int pk_attach_asks_;
int pk_attach_asks_;

/* ---- the user's word ---- */

#define PLACES 1024 /* a power of two */

/* What a symbol is in the wish. */
enum {
    BEGINS = 1,
    ELSEWHERE = 2 /* if that is its communicator */,
    BEFORE = 4,
    BODY = 8,
    SEEN = 128
};

typedef struct part {
    const char *name, *where; /* where NULL: anywhere */
} part;

static struct {
    char text[1000], whole[1000];
    part begins, before, body[PKI_REPEATS_BODY];
    unsigned body_count;
    bool of_run;
    unsigned long every, seen;
    bool outside, was_before;
} wish;

static struct {
    uint64_t site;
    uint32_t region;
    uint8_t is; /* 0: free */
} symbols[PLACES];
static uint32_t symbol_count;

static part part_of(char *text)
{
    char *at = strrchr(text, '@');
    if (at && at > text && at[1])
        *at = '\0';
    else
        at = NULL;
    return (part){text, at ? at + 1 : NULL};
}

/* Cuts the text there, and answers what stands behind; NULL: it is not in it. */
static char *cut(char *text, const char *word)
{
    char *at = strstr(text, word);
    if (at)
        *at = '\0';
    return at ? at + strlen(word) : NULL;
}

static void read_every(char *text)
{
    char *slash = strrchr(text, '/'), *end = NULL;
    unsigned long every =
        slash && slash[1] >= '0' && slash[1] <= '9' ? strtoul(slash + 1, &end, 10) : 0;
    wish.every = every && !*end ? every : 1;
    if (every && !*end)
        *slash = '\0';
}

static void read_wish(const char *text)
{
    snprintf(wish.whole, sizeof wish.whole, "%s", text);
    snprintf(wish.text, sizeof wish.text, "%s", text);
    read_every(wish.text);
    char *among = cut(wish.text, " among "), *before = cut(wish.text, " after ");
    wish.begins = part_of(wish.text);
    if (before)
        wish.before = part_of(before);
    wish.of_run = among != NULL;
    while (among && wish.body_count < PKI_REPEATS_BODY) {
        char *next = cut(among, "; ");
        wish.body[wish.body_count++] = part_of(among);
        among = next;
    }
    wish.outside = true;
}

static bool is_place(const char *where)
{
    return where && strstr(where, "+0x");
}

static bool is_part(const part *p, const char *name, const char *place)
{
    return p->name && strcmp(p->name, name) == 0 && (!p->where || strcmp(p->where, place) == 0);
}

static uint8_t look_at(const char *name, const void *site)
{
    char place[500];
    uint8_t is = SEEN;
    pki_attach_place(site, place, sizeof place);
    if (strcmp(name, wish.whole) == 0 || is_part(&wish.begins, name, place))
        is |= BEGINS;
    else if (wish.begins.where && !is_place(wish.begins.where) &&
             strcmp(wish.begins.name, name) == 0)
        is |= ELSEWHERE;
    if (is_part(&wish.before, name, place))
        is |= BEFORE;
    for (unsigned i = 0; i < wish.body_count; i++)
        if (is_part(&wish.body[i], name, place))
            is |= BODY;
    return is;
}

/* It is looked at once; those beyond the table's room each time. */
static uint8_t symbol_is(const pk_region *region, const void *site)
{
    uint64_t at = (uint64_t)(uintptr_t)site;
    uint64_t hash = (at ^ region->id * UINT64_C(0xC2B2AE3D27D4EB4F)) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t i = (uint32_t)(hash >> 40) % PLACES;
    while (symbols[i].is && (symbols[i].site != at || symbols[i].region != region->id))
        i = (i + 1) % PLACES;
    if (symbols[i].is)
        return symbols[i].is;
    uint8_t is = region->name ? look_at(region->name, site) : SEEN;
    if (symbol_count < PLACES - 1 && region->id) {
        symbols[i].site = at;
        symbols[i].region = region->id;
        symbols[i].is = is;
        symbol_count++;
    }
    return is;
}

/* As repeats.c has it of a loop that is known. */
static bool begins_by_hand(uint8_t is)
{
    bool was_before = wish.was_before, turn = false;
    wish.was_before = is & BEFORE;
    if (is & BEGINS && (!wish.before.name || was_before)) {
        turn = !wish.of_run || wish.outside;
        wish.outside = false;
    } else if (!(is & BODY)) {
        wish.outside = true;
    }
    return turn && wish.seen++ % wish.every == 0;
}

/* ---- the communicators of what begins steps ---- */

#define COMMS 4

static struct {
    char name[80];
    uint64_t steps, others;
} comms[COMMS + 1]; /* the last one: all others */

static bool asked_of_step;

static void note_comm(const char *name)
{
    size_t i = 0;
    while (i < COMMS && *comms[i].name && strcmp(comms[i].name, name) != 0)
        i++;
    if (i < COMMS && !*comms[i].name)
        snprintf(comms[i].name, sizeof comms[i].name, "%s", name);
    comms[i].steps += asked_of_step;
    comms[i].others += !asked_of_step;
}

/* NULL: steps begin on several, or other calls are on the same, or there are none by which it could
 * be told apart. */
static const char *comm_of_steps(void)
{
    const char *name = NULL;
    uint64_t others = 0;
    for (size_t i = 0; i <= COMMS; i++) {
        others += comms[i].others;
        if (!comms[i].steps)
            continue;
        if (name || comms[i].others || i == COMMS)
            return NULL;
        name = comms[i].name;
    }
    return others ? name : NULL;
}

/* ---- a step ---- */

/* The first step of a loop begins where the loop is seen; it has the number that it has on other
 * ranks. Answers the region of which it is not clear which calls begin steps; 0: there is none. */
static uint32_t step(void)
{
    pki_repeats_loop known = {.number = 1};
    if (repeats)
        known = pki_repeats_told(repeats, false);
    if (known.number == loop) {
        pk_step(0);
    } else {
        if (known.turns > known.alone)
            pk_step_number_(known.turns - known.alone);
        pk_step_begin();
    }
    loop = known.number;
    return known.begin.only || known.begin.of_run || known.begin.after ? 0 : known.region;
}

static void heard_by_hand(const pk_region *region, const void *site)
{
    uint8_t is = symbol_is(region, site);
    pk_attach_asks_ = (is & ELSEWHERE) != 0;
    if (!pk_attach_asks_ && begins_by_hand(is))
        step();
}

static void heard_to_find(const pk_region *region, const void *site)
{
    static uint32_t begins; /* the region whose communicator is asked for; 0: none */
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    bool turn = pki_repeats_feed(repeats, region->id, (uint64_t)(uintptr_t)site,
                                 (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
                                 __atomic_load_n(&pk_attach_met_, __ATOMIC_RELAXED));
    if (turn)
        begins = step();
    pk_attach_asks_ = begins == region->id;
    asked_of_step = turn;
}

static void heard(const pk_region *region, const void *site)
{
    if (!is_main || !PK_ON_) /* a child of fork is off */
        return;
    is_main = false; /* a handler may come by */
    if (repeats)
        heard_to_find(region, site);
    else
        heard_by_hand(region, site);
    is_main = true;
}

/* libpk_mpi calls it at each function of MPI; *region is kept for it. */
PK_API void pk_attach_event_(pk_region **region, const char *name, const void *site);

void pk_attach_event_(pk_region **region, const char *name, const void *site)
{
    if (!is_main)
        return;
    if (!*region)
        *region = pk_region_named_of(PK_COMM, name);
    heard(*region, site);
}

/* That of the messages on it, too, whose figures are apart. */
static bool is_wished(const char *name, int size)
{
    size_t n = strlen(name);
    const char *where = wish.begins.where;
    char number[24];
    snprintf(number, sizeof number, "%d", size);
    if (strcmp(where, number) == 0)
        return true;
    return strncmp(where, name, n) == 0 && (!where[n] || strcmp(where + n, " messages") == 0);
}

/* libpk_mpi calls it where pk_attach_asks_: the call that was heard is on this communicator. */
PK_API void pk_attach_comm_(const char *name, int size);

void pk_attach_comm_(const char *name, int size)
{
    if (!is_main)
        return;
    is_main = false;
    pk_attach_asks_ = 0;
    if (repeats)
        note_comm(name);
    else if (begins_by_hand(is_wished(name, size) ? BEGINS : 0))
        step();
    is_main = true;
}

void pki_attach_begin(pk_region *region, const void *site)
{
    heard(region, site);
    pk_region_begin(region);
}

__attribute__((constructor)) static void steps_begin(void)
{
    pki_attach_listens(""); /* now it is known what was asked for */
    const char *wanted = pki_attach.folder ? pki_attach.step : "none";
    if (wanted && strcmp(wanted, "none") == 0)
        return;
    if (wanted && *wanted)
        read_wish(wanted);
    else
        repeats = pki_repeats_new();
    is_main = repeats || *wish.whole;
    pk_nvtx_heard_(is_main ? heard : NULL);
}

/* ---- what was found, in words ---- */

/* Names are interned, and a region of either kind may be it. */
static const char *name_of(uint32_t id)
{
    const char *name = pk_region_name_(id);
    return name ? name : "?";
}

typedef struct text {
    char *at;
    size_t used, room;
} text;

static void add(text *to, const char *before, const char *name, const char *where)
{
    int n = snprintf(to->at + to->used, to->room - to->used, "%s%s%s%s", before, name,
                     *where ? "@" : "", where);
    to->used += n > 0 ? (size_t)n : 0;
    to->used = to->used < to->room ? to->used : to->room;
}

static void add_symbol(text *to, const char *before, const pki_repeats_symbol *s)
{
    char place[500] = "";
    if (s->site)
        pki_attach_place((const void *)(uintptr_t)s->site, place, sizeof place);
    add(to, before, name_of(s->region), place);
}

/* What is to be said by hand for the same; "": there are no words for it, or too many. */
static void say_found(char *out, size_t size)
{
    const pki_repeats_begin b = pki_repeats_told(repeats, true).begin;
    text to = {out, 0, size};
    const char *comm = comm_of_steps();
    *out = '\0';
    if (!b.whole)
        return;
    if (!b.of_run && !b.after && (b.only || comm))
        add(&to, "", name_of(b.symbol.region), b.only ? "" : comm);
    else
        add_symbol(&to, "", &b.symbol);
    if (b.after)
        add_symbol(&to, " after ", &b.before);
    for (uint32_t i = 0; i < b.body_count; i++)
        add_symbol(&to, i ? "; " : " among ", &b.body[i]);
    if (b.of_run && !b.body_count)
        add_symbol(&to, " among ", &b.symbol);
    if (to.used >= size)
        *out = '\0';
}

const char *pki_attach_steps_end(void)
{
    static char found[400], say[1000];
    pki_repeats_loop told = {0};
    char name[200];
    if (repeats && is_main)
        told = pki_repeats_told(repeats, true);
    if (*wish.whole && !wish.seen)
        return "; nothing began that --step says";
    if (!told.number)
        return "";
    snprintf(name, sizeof name, "%s%.120s%s", told.first_of_run ? "the first " : "",
             name_of(told.region), told.first_of_run ? " of several" : "");
    say_found(say, sizeof say);
    pk_steps_found_(told.turns, told.before, told.alike, name, say);
    snprintf(found, sizeof found, "; %llu steps found, each with %s",
             (unsigned long long)told.turns, name);
    return found;
}
