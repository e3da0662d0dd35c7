/* lib/attach/steps.c - where the steps of a program are that says nothing of them: found in what
 * repeats on the main thread (repeats.h), or by the user's word.
 *
 * `pk run --step WISH` is "none", or
 *
 *     NAME[@WHERE[#K]][ after NAME[@WHERE[#K]]][ among NAME[@WHERE[#K]]; ...][/N]
 *
 * a step begins with each NAME; with those right after another one; with the first of several in a
 * row of these; with each Nth of them. WHERE is a communicator, by its name in the report or its
 * size, or a place in the program as the report has it: "solve+0x1f"; of the messages there those
 * with the Kth peer and tag that it has had. What was found is told in these words. A region of
 * exactly that name is it, whatever stands in it.
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
    unsigned long nth;        /* 0: with anybody */
} part;

static struct {
    char text[1000], whole[1000];
    part begins, before, body[PKI_REPEATS_BODY];
    unsigned body_count;
    bool of_run;
    unsigned long every, seen;
    bool outside, was_before, any_nth;
} wish;

static struct symbol {
    uint64_t site, with;
    uint32_t region, parts; /* parts: how many others differ from it in with alone */
    uint8_t is;             /* 0: free */
} symbols[PLACES];
static uint32_t symbol_count;

/* A number behind the last such sign, which goes; 0: there is none. */
static unsigned long cut_number(char *text, char sign)
{
    char *at = strrchr(text, sign), *end = NULL;
    unsigned long n = at && at[1] >= '0' && at[1] <= '9' ? strtoul(at + 1, &end, 10) : 0;
    if (!n || *end)
        return 0;
    *at = '\0';
    return n;
}

static bool is_place(const char *where)
{
    return where && strstr(where, "+0x");
}

/* Communicators have numbers of their own: "communicator of 4 #2". */
static part part_of(char *text)
{
    char *at = strrchr(text, '@');
    unsigned long nth = is_place(at) ? cut_number(at, '#') : 0;
    if (at && at > text && at[1])
        *at = '\0';
    else
        at = NULL;
    wish.any_nth |= nth;
    return (part){text, at ? at + 1 : NULL, nth};
}

/* Cuts the text there, and answers what stands behind; NULL: it is not in it. */
static char *cut(char *text, const char *word)
{
    char *at = strstr(text, word);
    if (at)
        *at = '\0';
    return at ? at + strlen(word) : NULL;
}

static void read_wish(const char *text)
{
    snprintf(wish.whole, sizeof wish.whole, "%s", text);
    snprintf(wish.text, sizeof wish.text, "%s", text);
    unsigned long every = cut_number(wish.text, '/');
    wish.every = every ? every : 1;
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

static bool is_part(const part *p, const char *name, const char *place, uint32_t nth)
{
    return p->name && strcmp(p->name, name) == 0 && (!p->nth || p->nth == nth) &&
           (!p->where || strcmp(p->where, place) == 0);
}

static uint8_t look_at(const char *name, const void *site, uint32_t nth)
{
    char place[500];
    uint8_t is = SEEN;
    pki_attach_place(site, place, sizeof place);
    if (strcmp(name, wish.whole) == 0 || is_part(&wish.begins, name, place, nth))
        is |= BEGINS;
    else if (wish.begins.where && !is_place(wish.begins.where) &&
             strcmp(wish.begins.name, name) == 0)
        is |= ELSEWHERE;
    if (is_part(&wish.before, name, place, nth))
        is |= BEFORE;
    for (unsigned i = 0; i < wish.body_count; i++)
        if (is_part(&wish.body[i], name, place, nth))
            is |= BODY;
    return is;
}

static struct symbol *symbol_of(uint32_t region, uint64_t site, uint64_t with)
{
    uint64_t hash = (site ^ region * UINT64_C(0xC2B2AE3D27D4EB4F)) + with;
    uint32_t i = (uint32_t)(hash * UINT64_C(0x9E3779B97F4A7C15) >> 40) % PLACES;
    while (symbols[i].is &&
           (symbols[i].site != site || symbols[i].region != region || symbols[i].with != with))
        i = (i + 1) % PLACES;
    return &symbols[i];
}

/* It is looked at once; those beyond the table's room each time. */
static uint8_t symbol_is(const pk_region *region, const void *site, uint64_t with)
{
    uint64_t at = (uint64_t)(uintptr_t)site;
    struct symbol *s = symbol_of(region->id, at, with), *whole;
    uint32_t nth = 0;
    if (s->is)
        return s->is;
    if (with) {
        uint8_t is = symbol_is(region, site, 0);
        whole = symbol_of(region->id, at, 0);
        if (!whole->is || whole->parts == PKI_REPEATS_PARTS)
            return is;
        nth = ++whole->parts;
        s = symbol_of(region->id, at, with);
    }
    uint8_t is = region->name ? look_at(region->name, site, nth) : SEEN;
    if (symbol_count < PLACES - 1 && region->id) {
        *s = (struct symbol){.site = at, .with = with, .region = region->id, .is = is};
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

static int64_t now(void)
{
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The first step of a loop begins where the loop is seen; it has the number that it has on other
 * ranks. Answers the region of which it is not clear which calls begin steps; 0: there is none. */
static uint32_t step(void)
{
    pki_repeats_loop known = {.number = 1};
    if (repeats)
        known = pki_repeats_told(repeats, 0);
    if (known.number == loop) {
        pk_step(0);
    } else {
        if (known.turns > known.alone)
            pk_step_number_(known.turns - known.alone);
        pk_step_begin();
    }
    loop = known.number;
    const pki_repeats_begin *b = &known.begin;
    return b->only || b->of_run || b->after || b->symbol.nth ? 0 : known.region;
}

static void heard_by_hand(const pk_region *region, const void *site, uint64_t with)
{
    uint8_t is = symbol_is(region, site, wish.any_nth ? with : 0);
    pk_attach_asks_ = (is & ELSEWHERE) != 0;
    if (!pk_attach_asks_ && begins_by_hand(is))
        step();
}

static void heard_to_find(const pk_region *region, const void *site, uint64_t with)
{
    static uint32_t begins; /* the region whose communicator is asked for; 0: none */
    bool turn = pki_repeats_feed(repeats, region->id, (uint64_t)(uintptr_t)site, with, now(),
                                 __atomic_load_n(&pk_attach_met_, __ATOMIC_RELAXED));
    if (turn)
        begins = step();
    pk_attach_asks_ = begins == region->id;
    asked_of_step = turn;
}

static void heard_with(const pk_region *region, const void *site, uint64_t with)
{
    if (!is_main || !PK_ON_) /* a child of fork is off */
        return;
    is_main = false; /* a handler may come by */
    if (repeats)
        heard_to_find(region, site, with);
    else
        heard_by_hand(region, site, with);
    is_main = true;
}

static void heard(const pk_region *region, const void *site)
{
    heard_with(region, site, 0);
}

/* libpk_mpi calls it at each function of MPI; *region is kept for it. with: a message's peer and
 * tag. */
PK_API void pk_attach_event_(pk_region **region, const char *name, const void *site, uint64_t with);

void pk_attach_event_(pk_region **region, const char *name, const void *site, uint64_t with)
{
    if (!is_main)
        return;
    if (!*region)
        *region = pk_region_named_of(PK_COMM, name);
    heard_with(*region, site, with);
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

static void add(text *to, const char *before, const char *name, const char *where, uint32_t nth)
{
    char with[16] = "";
    if (nth)
        snprintf(with, sizeof with, "#%u", nth);
    int n = snprintf(to->at + to->used, to->room - to->used, "%s%s%s%s%s", before, name,
                     *where ? "@" : "", where, with);
    to->used += n > 0 ? (size_t)n : 0;
    to->used = to->used < to->room ? to->used : to->room;
}

static void add_symbol(text *to, const char *before, const pki_repeats_symbol *s)
{
    char place[500] = "";
    if (s->site)
        pki_attach_place((const void *)(uintptr_t)s->site, place, sizeof place);
    add(to, before, name_of(s->region), place, s->nth);
}

/* What is to be said by hand for the same; "": there are no words for it, or too many. */
static void say_found(char *out, size_t size)
{
    const pki_repeats_begin b = pki_repeats_told(repeats, now()).begin;
    text to = {out, 0, size};
    const char *comm = comm_of_steps();
    *out = '\0';
    if (!b.whole)
        return;
    if (!b.of_run && !b.after && !b.symbol.nth && (b.only || comm))
        add(&to, "", name_of(b.symbol.region), b.only ? "" : comm, 0);
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
        told = pki_repeats_told(repeats, now());
    if (*wish.whole && !wish.seen)
        return "; nothing began that --step says";
    if (!told.number)
        return "";
    char nth[16] = "";
    if (told.begin.symbol.nth)
        snprintf(nth, sizeof nth, "#%u", told.begin.symbol.nth);
    snprintf(name, sizeof name, "%s%.120s%s%s", told.first_of_run ? "the first " : "",
             name_of(told.region), nth, told.first_of_run ? " of several" : "");
    say_found(say, sizeof say);
    pk_steps_found_(told.turns, told.ended - told.began, told.before, told.alike, name, say);
    snprintf(found, sizeof found, "; %llu steps found, each with %s",
             (unsigned long long)told.turns, name);
    return found;
}
