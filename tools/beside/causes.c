/* tools/beside/causes.c - what made a step slow: its difference, shared out among causes */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "base/compiler.h"
#include "beside/beside.h"
#include "beside/causes.h"
#include "beside/stacks.h"
#include "memory.h"
#include "out/chrome/events.h"

/* ---- how the difference is shared out ---- */

/* What happens to any code comes first, if it is a good part: the thread had no processor, or a
 * lower clock, or the process was stopped. Of each path the rest is what it waited, by what it was
 * seen to wait for, and what it worked; of that, what more calls or items explain is more work. A
 * part below a hundredth of the difference is none: it stays in what is unexplained. */

#define LEAST 0.01
#define LEAST_NS 1e5
#define MORE 1.2      /* so many times the usual calls or items are more work... */
#define ALIKE 1.35    /* ...if each took no longer than so many times the usual */
#define LACKS 0.4     /* of a usual step is not in it: it is of another kind */
#define READ_BACK 0.1 /* major faults a millisecond of the kernel */
#define SAMPLES_LEAST 5u
#define TOLD 0.3  /* of a path's samples, for a function to be named */
#define HAD 0.5   /* of the time without a processor, for who is said to have had it */
#define LEADS 0.1 /* of the difference, for what is of no region to be named first */

typedef struct sharing {
    const slices *in;
    const waits *waits;
    pki_beside *out;
    const step_seen *step;
    size_t room;
    double least;
    bool other; /* it is of another kind than the usual ones */
    double
        placed; /* of what paths worked longer: the rest had no processor, nobody knows in which */
    bool known; /* when its thread was off its processor, or where it had it */
    const look_seen *clock; /* of its processor, if that was lower than usual; NULL */
    double slower;          /* what paths took longer for that */
} sharing;

static pki_cause *add(sharing *s, const char *cause, const char *region, double ns)
{
    pki_beside *b = s->out;
    memory_fit(&b->causes, &s->room, b->cause_count + 1, sizeof *b->causes);
    pki_cause *c = &b->causes[b->cause_count++];
    *c = (pki_cause){.cause = memory_copy(cause),
                     .ns = ns,
                     .region = memory_copy(region),
                     .function = memory_copy(""),
                     .caller = memory_copy(""),
                     .call = memory_copy(""),
                     .object = memory_copy(""),
                     .by = memory_copy(""),
                     .by_region = memory_copy("")};
    return c;
}

static void set(char **text, const char *to)
{
    free(*text);
    *text = memory_copy(to);
}

static const pki_path_row *state_row(const pki_beside *b, const char *name)
{
    for (size_t i = 0; i < b->path_count; i++)
        if (b->paths[i].where[0] == 0 && b->paths[i].kind == PK_WAIT &&
            strcmp(b->paths[i].path, name) == 0)
            return &b->paths[i];
    return NULL;
}

static bool is_state(const pki_path_row *r)
{
    return r->kind == PK_WAIT && r->where[0] == 0 &&
           (strcmp(r->path, SLICES_READY) == 0 || strcmp(r->path, SLICES_STOPPED) == 0 ||
            strcmp(r->path, SLICES_SUSPENDED) == 0);
}

static double more_of(const pki_path_row *r)
{
    return r ? (double)r->self - r->usual : 0;
}

static double waited_more(const pki_path_row *r)
{
    return (double)r->blocked - r->usual_blocked;
}

/* ---- outside the program ---- */

static bool in_step(const sharing *s, const look_seen *l)
{
    return l->start < s->step->end && l->end > s->step->start;
}

/* Of what is known of the time around the step. */
static double held_by_quota(const sharing *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->in->look_count; i++) {
        const look_seen *l = &s->in->looks[i];
        uint64_t from = PKI_MAX(l->start, s->step->start), until = PKI_MIN(l->end, s->step->end);
        if (strcmp(l->what, PKI_STATE_QUOTA) == 0 && from < until)
            sum += PKI_MIN((double)l->off, (double)(until - from));
    }
    return sum;
}

static double stolen_by_host(const sharing *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->in->look_count; i++) {
        const look_seen *l = &s->in->looks[i];
        uint64_t from = PKI_MAX(l->start, s->step->start), until = PKI_MIN(l->end, s->step->end);
        if (strcmp(l->what, PKI_STATE_READY) == 0 && from < until)
            sum += (double)l->off * (double)(until - from) / (double)(l->end - l->start);
    }
    return sum;
}

static const look_seen *lower_clock(const sharing *s)
{
    for (size_t i = 0; i < s->in->look_count; i++) {
        const look_seen *l = &s->in->looks[i];
        if (strcmp(l->what, PKI_STATE_CLOCK) == 0 && in_step(s, l) && l->rate < l->usual_rate)
            return l;
    }
    return NULL;
}

static const look_seen *neighbour(const sharing *s)
{
    const look_seen *most = NULL;
    for (size_t i = 0; i < s->in->look_count; i++) {
        const look_seen *l = &s->in->looks[i];
        if (strcmp(l->what, PKI_STATE_NEIGHBOUR) == 0 && in_step(s, l) &&
            (double)l->ran >= HAD * (double)l->ready && (!most || l->ran > most->ran))
            most = l;
    }
    return most;
}

static void share_ready(sharing *s)
{
    const pki_unplaced *u = &s->out->unplaced;
    double ns = more_of(state_row(s->out, SLICES_READY)) + (double)u->ready - u->usual;
    if (ns < s->least)
        return;
    pki_cause *c = add(s, PKI_NO_PROCESSOR, "", ns);
    const look_seen *who = neighbour(s);
    if (held_by_quota(s) >= HAD * ns)
        set(&c->by, PKI_BY_QUOTA);
    else if (stolen_by_host(s) >= HAD * ns)
        set(&c->by, PKI_BY_HOST);
    else if (who)
        set(&c->by, who->by);
    c->outside = strcmp(c->by, PKI_BY_OWN_THREADS) != 0;
}

static void share_state(sharing *s, const char *state, const char *cause)
{
    double ns = more_of(state_row(s->out, state));
    if (ns >= s->least)
        add(s, cause, "", ns)->outside = true;
}

/* ---- what a path waited ---- */

static double seen_waiting(const sharing *s, const char *path, const look_seen *only)
{
    double sum = 0;
    for (size_t i = 0; i < s->waits->count; i++) {
        const wait_seen *w = &s->waits->all[i];
        if (strcmp(w->path, path) == 0 && (!only || w->name == only->name))
            sum += (double)w->amount;
    }
    return sum;
}

static void tell_wait(pki_cause *c, const look_seen *l)
{
    c->waits = true;
    set(&c->call, l->call);
    set(&c->object, l->object);
    set(&c->by, l->by);
    set(&c->by_region, l->by_region);
}

/* In the proportions in which it was seen to wait for them. What was not seen is as what was, if
 * that is most of it. */
static void share_waited(sharing *s, const pki_path_row *r, double waited)
{
    double all = seen_waiting(s, r->path, NULL);
    bool collective = r->kind == PK_COMM;
    if (all <= 0) {
        add(s, collective ? PKI_COLLECTIVE : PKI_WAITS_UNKNOWN, r->path, waited)->waits = true;
        return;
    }
    bool most = all >= HAD * (double)r->blocked;
    double part = most ? waited : waited * all / (double)r->blocked;
    if (!most && waited - part >= s->least)
        add(s, PKI_WAITS_UNKNOWN, r->path, waited - part)->waits = true;
    waited = part;
    for (size_t i = 0; i < s->in->look_count; i++) {
        const look_seen *l = &s->in->looks[i];
        double ns = l->first ? seen_waiting(s, r->path, l) / all * waited : 0;
        if (ns >= s->least)
            tell_wait(add(s, collective ? PKI_COLLECTIVE : l->what, r->path, ns), l);
    }
}

/* ---- what a path worked ---- */

/* Of one of the usual steps, the median. */
static double usual_items(const sharing *s)
{
    uint64_t all[BESIDE_USUAL_MOST];
    size_t n = 0;
    for (size_t i = 0; i < s->in->step_count && n < PKI_COUNT_OF(all); i++)
        if (s->in->steps[i].wanted && &s->in->steps[i] != s->step)
            all[n++] = s->in->steps[i].items;
    if (n)
        qsort(all, n, sizeof *all, pki_compare_u64);
    return n ? (double)all[n / 2] : 0;
}

/* So many times as much, and each no slower? */
static bool explains(double now, double usual, double work, double usual_work)
{
    return usual > 0 && now >= MORE * usual && work <= ALIKE * usual_work * now / usual;
}

/* What was counted of that name while it was late, or for how long it was so, ns. */
static double sum_of(const sharing *s, const char *what)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->in->look_count; i++) {
        const look_seen *l = &s->in->looks[i];
        if (strcmp(l->what, what) == 0 && in_step(s, l))
            sum += l->count + l->off;
    }
    return (double)sum;
}

static const struct {
    const char *state, *cause;
    double a_ms; /* so many of them a millisecond of the kernel, to be what it did */
} of_pages[] = {{PKI_STATE_NUMA, PKI_NUMA, 50},
                {PKI_STATE_COMPACTED, PKI_COMPACTED, 500},
                {PKI_STATE_SPLIT, PKI_COMPACTED, 5}};

/* Of what the kernel did for the program nothing is seen but what it counts: page faults, of which
 * there is one for each of these milliseconds at least; pages that it had to read back, each in a
 * tenth of one at least; that tasks had to wait until it had taken back memory; and, of the
 * machine, what it did with pages, while most of the path was in it. */
static void tell_kernel(const sharing *s, pki_cause *c, double ns)
{
    double faults = sum_of(s, PKI_STATE_FAULTS), major = sum_of(s, PKI_STATE_MAJOR_FAULTS);
    double ms = ns / 1e6;
    bool pressed = major > 0 && sum_of(s, PKI_STATE_PRESSURE) >= HAD * c->ns; /* the machine is */
    bool memory = pressed || major >= READ_BACK * ms;
    if (c->now > 0 || ns < TOLD * c->ns)
        return;
    for (size_t i = 0; i < PKI_COUNT_OF(of_pages); i++)
        if (sum_of(s, of_pages[i].state) >= of_pages[i].a_ms * ms && ms > 0) {
            set(&c->cause, of_pages[i].cause);
            c->now = sum_of(s, of_pages[i].state);
            return;
        }
    if (!memory && faults < ms)
        return;
    set(&c->cause, memory ? PKI_WAITS_MEMORY : PKI_PAGE_FAULTS);
    c->now = memory ? major : faults;
}

/* By the clock's ticks, where there are no samples. */
static double in_kernel(const sharing *s)
{
    for (size_t i = 0; i < s->in->look_count; i++)
        if (strcmp(s->in->looks[i].what, PKI_STATE_TIME) == 0 && in_step(s, &s->in->looks[i]))
            return (double)s->in->looks[i].kernel;
    return 0;
}

static bool is_told(const pki_cause *c, const stacks_more *more)
{
    return more->certain && more->samples >= SAMPLES_LEAST &&
           more->ns - more->usual >= TOLD * c->ns;
}

/* What its samples are of more than usual ones are, where that is not by chance. */
static void tell_function(const sharing *s, pki_cause *c)
{
    stacks_more more;
    uint64_t usual = s->out->usual_count;
    bool any = stacks_dearest(s->in, c->region, BESIDE_USUAL_MOST, usual, false, &more);
    tell_kernel(s, c, any ? more.kernel : in_kernel(s));
    if (any && !is_told(c, &more))
        stacks_dearest(s->in, c->region, BESIDE_USUAL_MOST, usual, true, &more);
    if (!any || !is_told(c, &more))
        return;
    set(&c->function, more.function);
    set(&c->caller, more.caller);
    c->sampled = fmin(more.ns - more.usual, c->ns);
    c->sampled_usual = more.usual;
    c->samples = more.samples;
    c->usual_samples = more.usual_samples;
}

/* Of work that is as usual: what as many cycles took longer, as far as it took longer. The rest. */
static double share_clock(sharing *s, double work, double worked)
{
    double slower = s->clock ? fmin(worked, work * (1 - s->clock->rate / s->clock->usual_rate)) : 0;
    s->slower += fmax(slower, 0);
    return worked - fmax(slower, 0);
}

static void add_clock(sharing *s)
{
    if (s->slower < s->least)
        return;
    pki_cause *c = add(s, PKI_LOWER_CLOCK, "", s->slower);
    c->outside = true;
    c->now = 1e3 * s->clock->rate;
    c->usual = 1e3 * s->clock->usual_rate;
    set(&c->object, "Hz");
    set(&c->by, s->clock->by);
}

static void share_worked(sharing *s, const pki_path_row *r, double worked, double items)
{
    double unplaced = (more_of(r) - waited_more(r)) * (1 - s->placed);
    double work = (double)r->self - (double)r->blocked - unplaced;
    double usual = r->usual - r->usual_blocked;
    double calls = (double)r->calls;
    bool more_items = explains((double)s->step->items, items, work, usual);
    bool more_calls = explains(calls, r->usual_calls, work, usual) ||
                      (r->usual_calls == 0 && calls > 0); /* usual steps do not do that */
    const char *otherwise = s->known ? PKI_COMPUTE : PKI_LONGER;
    if (!more_items && !more_calls)
        worked = share_clock(s, work, worked);
    if (worked < s->least)
        return;
    pki_cause *c = add(s, more_items || more_calls ? PKI_MORE_WORK : otherwise, r->path, worked);
    c->now = more_calls ? calls : more_items ? (double)s->step->items : 0;
    c->usual = more_calls ? r->usual_calls : more_items ? items : 0;
    if (more_items || more_calls)
        set(&c->object, more_calls ? "calls" : "items");
    tell_function(s, c);
}

static void share_path(sharing *s, const pki_path_row *r, double items)
{
    double waited = waited_more(r), worked = (more_of(r) - waited) * s->placed;
    if (waited >= s->least)
        share_waited(s, r, waited);
    if (worked >= s->least && !s->other)
        share_worked(s, r, worked, items);
}

/* Of what usual steps do it leaves out a good part, and does something else instead. */
static bool is_of_another_kind(const sharing *s)
{
    double lacks = 0;
    for (size_t i = 0; i < s->out->path_count; i++) {
        const pki_path_row *r = &s->out->paths[i];
        lacks += r->where[0] == 0 && r->calls == 0 && r->usual_calls > 0 ? r->usual : 0;
    }
    double usual = s->out->usual, ready = s->out->unplaced.usual;
    for (size_t i = 0; i < s->out->path_count; i++)
        ready += is_state(&s->out->paths[i]) ? s->out->paths[i].usual : 0;
    return !s->out->same_kind || lacks >= LACKS * (usual - ready);
}

/* What it does instead, and has taken longest. */
static const char *dearest_new(const sharing *s)
{
    const pki_path_row *most = NULL;
    for (size_t i = 0; i < s->out->path_count; i++) {
        const pki_path_row *r = &s->out->paths[i];
        bool new = r->where[0] == 0 && r->calls > 0 && r->usual_calls == 0;
        if (new && (!most || r->self > most->self))
            most = r;
    }
    return most ? most->path : "";
}

static double placed_share(const sharing *s)
{
    double worked = 0, unplaced = (double)s->out->unplaced.ready - s->out->unplaced.usual;
    for (size_t i = 0; i < s->out->path_count; i++) {
        const pki_path_row *r = &s->out->paths[i];
        double more = more_of(r) - waited_more(r);
        worked += r->where[0] == 0 && !is_state(r) && more > 0 ? more : 0;
    }
    return worked > 0 && unplaced > 0 ? fmax(0, 1 - unplaced / worked) : 1;
}

/* Of a kind of its own, it does something else: no path of it is slow. */
static void share_kind(sharing *s)
{
    double ns = (double)s->out->took - s->out->usual;
    for (size_t i = 0; i < s->out->path_count; i++)
        ns -= is_state(&s->out->paths[i]) ? more_of(&s->out->paths[i]) : 0;
    ns -= (double)s->out->unplaced.ready - s->out->unplaced.usual;
    for (size_t i = 0; i < s->out->path_count; i++)
        if (s->out->paths[i].where[0] == 0 && waited_more(&s->out->paths[i]) >= s->least)
            ns -= waited_more(&s->out->paths[i]);
    uint32_t kind = s->step->kind;
    if (ns >= s->least)
        set(&add(s, PKI_OTHER_KIND, dearest_new(s), ns)->object,
            kind ? s->in->kinds.texts[kind - 1] : "");
}

/* ---- all of it ---- */

/* Paths of the same cause are one, which names the first of them: more of all is more. */
static void join_alike(pki_beside *b)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->cause_count; i++) {
        pki_cause *c = &b->causes[i], *with = NULL;
        for (size_t k = 0; k < kept && !with && strcmp(c->object, "items") == 0; k++)
            with = strcmp(b->causes[k].object, "items") == 0 ? &b->causes[k] : NULL;
        if (!with) {
            b->causes[kept++] = *c;
            continue;
        }
        with->ns += c->ns;
        set(&with->region, "");
        free(c->cause);
        free(c->region);
        free(c->function);
        free(c->caller);
        free(c->call);
        free(c->object);
        free(c->by);
        free(c->by_region);
    }
    b->cause_count = kept;
}

static int dearest_first(const void *a, const void *b)
{
    const pki_cause *x = a, *y = b;
    if (x->leads != y->leads)
        return x->leads ? -1 : 1; /* what is less is the last one */
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : strcmp(x->region, y->region);
}

/* Else what it did not compute is not known from what it did. */
static bool is_known(const sharing *s)
{
    bool known = s->in->sample_count > 0 || s->in->records;
    for (size_t i = 0; i < s->in->look_count && !known; i++)
        known = strcmp(s->in->looks[i].what, PKI_STATE_TIME) == 0 && in_step(s, &s->in->looks[i]);
    return known;
}

static void choose_leading(pki_beside *b, double all)
{
    for (size_t i = 0; i < b->cause_count; i++) {
        pki_cause *c = &b->causes[i];
        bool any = c->outside || strcmp(c->cause, PKI_NO_PROCESSOR) == 0; /* code would be late */
        c->leads = any && c->ns >= LEADS * all;
    }
}

/* What usual steps had longer, as far as causes are more than the difference. */
static void share_less(sharing *s, double all)
{
    const pki_unplaced *u = &s->out->unplaced;
    double rest = all, less = fmin((double)u->ready - u->usual, 0);
    for (size_t i = 0; i < s->out->cause_count; i++)
        rest -= s->out->causes[i].ns;
    for (size_t i = 0; i < s->out->path_count; i++) {
        const pki_path_row *r = &s->out->paths[i];
        less += r->where[0] == 0 ? fmin(waited_more(r), 0) : 0;
        less += r->where[0] == 0 ? fmin(more_of(r) - waited_more(r), 0) : 0;
    }
    if (fmax(rest, less) <= -s->least)
        add(s, PKI_LESS, "", fmax(rest, less));
}

static const struct {
    const char *source, *before, *behind;
} refusals[] = {
    {PKI_STATE_SUSPENDED, "The machine was suspended in it or right beside it, for ",
     ", which its clock does not count: nothing here has that."},
    {"perf_event_open", "The kernel gave no records of switches and no samples (perf_event_open: ",
     "): how long the thread was off its processor is by its account, what it waited for by looks, "
     "and in which functions it was is not known."},
    {"/proc", "/proc cannot be read (",
     "): what the thread waited for, and who had its processor, is not known."},
    {"looks", "It was not looked at while it was late, for what that takes (",
     "): what the thread waited for, and who had its processor, is not known."},
    {"/sys/fs/cgroup", "/sys/fs/cgroup cannot be read (",
     "): whether a quota kept the thread from a processor is not known."}};

/* A sentence for each source that there was none of. */
static void tell_untold(const slices *in, const step_seen *step, pki_beside *out)
{
    char text[1200] = "";
    for (size_t k = 0; k < PKI_COUNT_OF(refusals); k++)
        for (size_t i = 0; i < in->look_count; i++) {
            const look_seen *l = &in->looks[i];
            size_t n = strlen(text);
            if (strcmp(l->what, PKI_STATE_UNTOLD) != 0 || l->start >= step->end ||
                l->end <= step->start || strcmp(l->call, refusals[k].source) != 0)
                continue;
            snprintf(text + n, sizeof text - n, "%s%s%.100s%s", n ? " " : "", refusals[k].before,
                     l->object, refusals[k].behind);
            break;
        }
    out->untold = memory_copy(text);
}

void causes_fill(const slices *in, const step_seen *step, const waits *waited, pki_beside *out)
{
    double all = (double)out->took - out->usual;
    sharing s = {
        .in = in, .waits = waited, .out = out, .step = step, .least = fmax(LEAST * all, LEAST_NS)};
    tell_untold(in, step, out);
    if (!out->usual_count || all <= 0)
        return;
    double items = usual_items(&s);
    s.known = is_known(&s);
    s.other = is_of_another_kind(&s);
    s.placed = placed_share(&s);
    s.clock = lower_clock(&s);
    share_state(&s, SLICES_SUSPENDED, PKI_SUSPENDED);
    share_state(&s, SLICES_STOPPED, PKI_STOPPED);
    share_ready(&s);
    for (size_t i = 0; i < out->path_count; i++)
        if (out->paths[i].where[0] == 0 && !is_state(&out->paths[i]))
            share_path(&s, &out->paths[i], items);
    add_clock(&s);
    if (s.other)
        share_kind(&s);
    join_alike(out);
    share_less(&s, all);
    choose_leading(out, all);
    if (out->cause_count)
        qsort(out->causes, out->cause_count, sizeof *out->causes, dearest_first);
    out->unexplained = all;
    for (size_t i = 0; i < out->cause_count; i++)
        out->unexplained -= out->causes[i].ns;
}
