#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/processors.h"
#include "history/history.h"
#include "measure/figure.h"
#include "measure/summary.h"
#include "out/chrome/events.h"
#include "session/activity.h"
#include "session/captures/captures.h"
#include "session/collector/collect.h"

/* ---- when the threads that make steps had no processor, as long as a history is kept ---- */

/* The kernel writes down each switch of a thread into a ring that it shares with us: a dummy event
 * of perf_event_open(2) with context_switch, which any process may have of its own threads where
 * perf_event_paranoid is 2 or less. The thread itself does nothing for it. A switch away from a
 * thread that could have gone on is marked as such (PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
 * Linux 4.17).
 *
 *     off, and could go on     no processor
 *     off, and could not       blocked: it waits for something, or the process is stopped
 *
 * A thread that is woken waits for a processor, too, which no record says; schedstat knows how much
 * that was from round to round, and it is shared among the ends of the waits between.
 *
 * A process that is stopped or frozen stops perfkit's collector as well, whose switches are
 * recorded, too: a wait of a thread that is one of the collector's as well, and not one that it
 * has chosen, is a stop. (A signal wakes who sleeps, to be stopped. A freezer may leave it asleep:
 * then it wakes later than it should, and not for want of a processor.)
 *
 * A virtual machine's host may have the processor while the thread has it, by its records. The
 * kernel does not count that as the thread's time (where it knows of it): what is missing is
 * stolen, as far as /proc/stat has as much.
 *
 * Without such records schedstat says from round to round how long it was ready.
 *
 * While the machine is suspended CLOCK_MONOTONIC stands still, and with it all of these. Where the
 * session's time goes on (base/clock.h), the steps in which that was say so.
 *
 * A thread that is off and on again takes 2 to 3 us more for it, in the kernel. So they are for
 * threads that are so a thousand times a second at most, 0.25 % of their time, or ten thousand
 * times in a burst; of others there are none for ten seconds.
 *
 * All of it on the collector, under the drain lock. */

#define THREADS 4u
/* A round of threads that wait: by rounds it is known how late they go on. */
#define WITHIN_NS 100000000u
#define PAGES_MOST 32u     /* of records, each of 16 bytes: 8,192 of them in a round */
#define READY_LEAST 50000u /* ns; shorter ones are no slice */
#define BLOCKED_LEAST 1000000u
#define BRIEF_MOST 5000000u    /* shorter ones than that are one slice for so long */
#define OFFS 1024u             /* of a round; of more waits it is not known how late they ended */
#define TRACK_FIRST (1u << 21) /* pki_track_apart */
#define SWITCH_NS 2600u        /* docs/internals/overhead.md */
#define SWITCHES_A_SECOND 1000.0
#define SWITCHES_MOST 10000.0 /* in a burst */
#define PAUSE_NS 10000000000u
/* ns; a thread's time is brought up to date at clock ticks, each 10 ms at most. */
#define STOLEN_LEAST 12000000u
/* ns; shorter ones are waits, since two threads may wait for one disk so long. */
#define STOP_LEAST 20000000u
#define APART_MOST 4000000u
#define SLEEPS 64u /* of the collector that are known */
#define STOPS 16u  /* the last ones */

typedef struct interval {
    uint64_t from, until; /* CLOCK_MONOTONIC, ns */
    bool ready;           /* it was off and could go on */
    uint64_t beside;      /* ns that it was ready right before and behind it */
} interval;

static interval piece(uint64_t from, uint64_t until, bool ready)
{
    return (interval){.from = from, .until = until, .ready = ready};
}

typedef struct watched {
    uint32_t tid, track;
    pki_kernel_ring ring;    /* not open: there are no records of it */
    bool gone;               /* the thread has ended */
    double switches;         /* that it may have before there is a pause... */
    uint64_t pause;          /* ...until then, CLOCK_MONOTONIC, ns; 0: there is none */
    uint64_t begun, running; /* ns: all of its time is known since, and had it run so long then */
    uint64_t was_off;        /* since then; ended ones */
    uint64_t missing;        /* of the rest, and told or known not to be stolen */
    uint64_t lacks;          /* the same, now */
    bool off, ready;         /* it is off its processor, and could go on */
    uint64_t since;          /* ns; then */
    uint64_t ready_told;     /* ns, in all: by records */
    uint64_t ready_sum;      /* by schedstat, at the last round... */
    uint64_t ready_before;   /* ...and at the one before */
    uint64_t ran_sum, ran;   /* the same; between the two it ran so long */
    uint64_t looked;         /* ns; then. 0: not yet */
    uint64_t accounted;      /* ns; schedstat was read then */
    interval brief;    /* waits that are no slices each: the first's start, the last's end... */
    uint64_t brief_ns; /* ...and how long they were together; 0: there are none */
    unsigned off_count;
    interval offs[OFFS]; /* of this round */
} watched;

/* The collector has slept, and wanted to until it was due. */
typedef struct nap {
    uint64_t from, due, woke;
    unsigned waits; /* in it: the first one is the sleep itself */
} nap;

/* The collector was off, and not for want of a processor that it knows of. */
typedef struct stop {
    interval at;
    uint64_t due;   /* it wanted to sleep until then; else its beginning */
    uint64_t ready; /* in that round it waited for a processor so long in all */
    bool amid;      /* a round, where it may wait for a disk as well */
} stop;

static struct {
    watched threads[THREADS];
    unsigned count;
    uint64_t stolen;    /* ns, of all processors, that somebody's missing time is set against */
    int refused;        /* errno: the kernel has no records for us, which is said */
    uint64_t switches;  /* of all of them, away from a processor; any thread reads it */
    watched own;        /* the collector */
    nap sleeps[SLEEPS]; /* its last ones */
    unsigned slept;
    stop stops[STOPS]; /* what was none of these */
    unsigned stop_count;
    uint64_t suspensions; /* that have been told */
} x;

/* ---- records of switches ---- */

static watched *find(uint32_t tid)
{
    for (unsigned i = 0; i < x.count; i++)
        if (x.threads[i].tid == tid && !x.threads[i].gone)
            return &x.threads[i];
    return NULL;
}

static bool map_records(watched *w)
{
    struct perf_event_attr a = {.size = sizeof a,
                                .type = PERF_TYPE_SOFTWARE,
                                .config = PERF_COUNT_SW_DUMMY,
                                .sample_type = PERF_SAMPLE_TIME,
                                .sample_id_all = 1,
                                .context_switch = 1,
                                .use_clockid = 1,
                                .clockid = CLOCK_MONOTONIC,
                                .exclude_kernel = 1,
                                .exclude_hv = 1};
    return pki_kernel_ring_open(&w->ring, &a, w->tid, PAGES_MOST);
}

static void unmap_records(watched *w)
{
    pki_kernel_ring_close(&w->ring);
}

/* ---- what slow steps went to, over the run ---- */

/* The last intervals of all threads are kept until the steps in which they lie have been judged: as
 * late as a round after them, when all records of their time are there.
 *
 * What usual steps have of each is taken off: a loop that waits for its loader does so always. */

#define LATELY 2048u
#define SLOW_MOST 64u /* that wait to be judged; of more it is not known what they went to */
#define NEIGHBOURS 8u
#define HAD 0.5 /* of the time without a processor, to be named; as tools/beside/causes.c */

enum { SUSPENDED, STOPPED, READY, WAITED, CAUSES_OFF, REST = CAUSES_OFF, UNKNOWN, CAUSES };

static const char *const slow_words[CAUSES] = {PKI_SUSPENDED, PKI_STOPPED, PKI_NO_PROCESSOR,
                                               PKI_WAITED,    PKI_COMPUTE, PKI_LONGER};

typedef struct lately {
    interval at;
    uint64_t off;
    uint32_t tid, cause;
} lately;

typedef struct slow_step {
    uint64_t from, until, longer;
    uint32_t tid;
} slow_step;

static struct {
    lately last[LATELY];
    unsigned told; /* in all, modulo 2^32 */
    slow_step slow[SLOW_MOST];
    unsigned waiting;
    uint64_t steps, found, count; /* all; those that were slow; these, as far as they are judged */
    double all[CAUSES_OFF];       /* ns, of all steps */
    double of_slow[CAUSES_OFF];   /* the same, of those that are judged */
    double longer, parts[CAUSES]; /* ns, what they took longer */
    uint64_t dearest[CAUSES];     /* steps */
    struct {
        char who[80];
        double ns;
    } by[NEIGHBOURS];
} slow;

static void note_lately(const watched *w, unsigned cause, interval i, uint64_t off)
{
    uint64_t ns = off ? off : i.until - i.from;
    slow.last[slow.told++ % LATELY] = (lately){i, ns, w->tid, cause};
    slow.all[cause] += (double)ns;
}

/* It was so for a part of the interval, nobody knows which. */
static double overlap(const lately *l, const slow_step *p)
{
    uint64_t from = PKI_MAX(l->at.from, p->from), until = PKI_MIN(l->at.until, p->until);
    if (l->tid != p->tid || from >= until)
        return 0;
    return (double)l->off * (double)(until - from) / (double)(l->at.until - l->at.from);
}

static bool has_records_of(uint32_t tid)
{
    for (unsigned i = 0; i < x.count; i++)
        if (x.threads[i].tid == tid && x.threads[i].ring.page)
            return true;
    return false;
}

/* No more than what is left of what it took longer. */
static void judge(const slow_step *p)
{
    double sum[CAUSES_OFF] = {0}, parts[CAUSES] = {0}, left = (double)p->longer;
    uint64_t usual = slow.steps - slow.found;
    unsigned dearest = 0;
    for (unsigned i = 0; i < PKI_MIN(slow.told, LATELY); i++)
        sum[slow.last[i].cause] += overlap(&slow.last[i], p);
    for (unsigned k = 0; k < CAUSES_OFF; k++) {
        double often = usual ? (slow.all[k] - slow.of_slow[k] - sum[k]) / (double)usual : 0;
        double more = PKI_MIN(PKI_MAX(sum[k] - often, 0), left);
        parts[k] = more;
        left -= more;
        slow.of_slow[k] += sum[k];
    }
    parts[has_records_of(p->tid) ? REST : UNKNOWN] = left;
    for (unsigned k = 0; k < CAUSES; k++) {
        slow.parts[k] += parts[k];
        dearest = parts[k] > parts[dearest] ? k : dearest;
    }
    slow.dearest[dearest]++;
    slow.longer += (double)p->longer;
}

/* Those of whose time everything has been told. */
static void judge_slow(bool all)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < slow.waiting; i++) {
        const watched *w = find(slow.slow[i].tid);
        if (!all && w && w->looked < slow.slow[i].until) {
            slow.slow[kept++] = slow.slow[i];
            continue;
        }
        judge(&slow.slow[i]);
        slow.count++;
    }
    slow.waiting = kept;
}

/* Of more than there is room for, those that had it longest: the least one gives way, and what it
 * had is the new one's doubt, which is not told. */
void pki_states_neighbour(const char *who, uint64_t ns)
{
    unsigned least = 0;
    for (unsigned i = 0; i < NEIGHBOURS; i++) {
        if (!slow.by[i].who[0] || strcmp(slow.by[i].who, who) == 0) {
            least = i;
            break;
        }
        least = slow.by[i].ns < slow.by[least].ns ? i : least;
    }
    if (strcmp(slow.by[least].who, who) != 0)
        slow.by[least].ns = 0;
    snprintf(slow.by[least].who, sizeof slow.by[least].who, "%s", who);
    slow.by[least].ns += (double)ns;
}

static const char *who_had_it(void)
{
    unsigned most = 0;
    for (unsigned i = 1; i < NEIGHBOURS; i++)
        most = slow.by[i].ns > slow.by[most].ns ? i : most;
    return slow.by[most].ns >= HAD * slow.parts[READY] ? slow.by[most].who : "";
}

static int dearest_first(const void *a, const void *b)
{
    double one = ((const pki_slow_cause *)a)->ns, other = ((const pki_slow_cause *)b)->ns;
    return (one < other) - (one > other);
}

static bool summarise(const pki_session *s, pki_summary *out)
{
    pki_slow_steps *to = &out->slow_steps;
    if (!s->history || !slow.steps)
        return true;
    judge_slow(!pki_load(&s->collector_tid)); /* else it has more to tell of the last ones */
    if (!slow.count)
        return true;
    to->causes = calloc(CAUSES, sizeof *to->causes);
    if (!to->causes)
        return false;
    to->count = slow.count;
    to->longer = slow.longer;
    for (unsigned k = 0; k < CAUSES; k++) {
        pki_slow_cause *c = &to->causes[to->cause_count];
        if (slow.parts[k] <= 0)
            continue;
        *c = (pki_slow_cause){strdup(slow_words[k]), slow.dearest[k], slow.parts[k],
                              strdup(k == READY ? who_had_it() : "")};
        to->cause_count++;
        if (!c->cause || !c->by)
            return false;
    }
    qsort(to->causes, to->cause_count, sizeof *to->causes, dearest_first);
    return true;
}

/* ---- what becomes a slice ---- */

static pki_track track_of(const pki_session *s, const watched *w)
{
    uint32_t n = TRACK_FIRST + (uint32_t)(w - x.threads);
    return (pki_track){s->config.world.pid, pki_track_apart(n), NULL,
                       "processor of the thread that makes steps", 0};
}

/* off: of it, where not all of it was so; 0: all. */
static void tell_of(const pki_session *s, const watched *w, unsigned cause, interval i,
                    uint64_t off, const char *by)
{
    static const char *const states[] = {PKI_STATE_SUSPENDED, PKI_STATE_STOPPED, PKI_STATE_READY,
                                         PKI_STATE_BLOCKED};
    const char *state = states[cause];
    pki_track track = track_of(s, w);
    if (!w->track)
        return;
    note_lately(w, cause, i, off);
    pki_activity_arg args[3] = {{"thread", NULL, w->tid}, {"off_ns", NULL, (int64_t)off}};
    size_t n = off ? 2 : 1;
    if (by)
        args[n++] = (pki_activity_arg){"by", by, 0};
    pki_activity a = {.kind = PKI_ACTIVITY_STATE,
                      .track = w->track,
                      .name = state,
                      .name_length = strlen(state),
                      .start = pki_activity_ns(i.from),
                      .end = pki_activity_ns(i.until),
                      .device = PKI_NO_DEVICE,
                      .args = args,
                      .arg_count = n};
    pki_history_activity(s->history, &a, &track);
}

/* Across a suspension it is two: between them the session's time has what the kernel's has not. */
static void tell(const pki_session *s, const watched *w, unsigned cause, interval i, uint64_t off)
{
    uint64_t slept = s->slept.until;
    if (s->slept.counted && !off && i.from < slept && slept < i.until) {
        tell_of(s, w, cause, piece(i.from, slept - 1, i.ready), 0, NULL);
        i.from = slept;
    }
    tell_of(s, w, cause, i, off, NULL);
}

static void tell_missing(const pki_session *s, const watched *w, uint64_t from, uint64_t until,
                         const char *source, const char *why)
{
    pki_track track = track_of(s, w);
    pki_activity_arg args[] = {{"thread", NULL, w->tid}, {"call", source, 0}, {"object", why, 0}};
    pki_activity a = {.kind = PKI_ACTIVITY_STATE,
                      .track = w->track,
                      .name = PKI_STATE_UNTOLD,
                      .name_length = sizeof PKI_STATE_UNTOLD - 1,
                      .start = pki_activity_ns(from),
                      .end = pki_activity_ns(until),
                      .device = PKI_NO_DEVICE,
                      .args = args,
                      .arg_count = PKI_COUNT_OF(args)};
    pki_history_activity(s->history, &a, &track);
}

/* Of a slow step: why there are no records of it. */
static void tell_untold(const pki_session *s, const watched *w, uint64_t from, uint64_t until)
{
    if (w->track && !w->ring.page)
        tell_missing(s, w, from, until, "perf_event_open",
                     x.refused ? strerror(x.refused) : "too many switches");
}

/* Some time between two looks of the collector the machine slept; the session's clock has it, or
 * not. */
static void tell_suspended(const pki_session *s, const watched *w)
{
    interval at = piece(s->slept.from, s->slept.until, false);
    if (s->slept.counted)
        tell_of(s, w, SUSPENDED, at, s->slept.ns, NULL);
    else if (w->track)
        tell_missing(s, w, at.from, at.until, PKI_STATE_SUSPENDED,
                     pki_figure_time((double)s->slept.ns).text);
}

static void tell_brief(const pki_session *s, watched *w)
{
    uint64_t length = w->brief.until - w->brief.from;
    if (w->brief_ns >= READY_LEAST)
        tell(s, w, WAITED, w->brief, w->brief_ns < length ? w->brief_ns : 0);
    w->brief_ns = 0;
}

static void add_brief(const pki_session *s, watched *w, interval i)
{
    if (w->brief_ns && i.until > w->brief.from + BRIEF_MOST)
        tell_brief(s, w);
    if (!w->brief_ns)
        w->brief.from = i.from;
    w->brief.until = i.until;
    w->brief_ns += i.until - i.from;
}

static void tell_ready(const pki_session *s, watched *w, interval i)
{
    if (i.until - i.from < READY_LEAST)
        return;
    tell_brief(s, w);
    tell(s, w, READY, i, 0);
}

static bool is_near(uint64_t a, uint64_t b, uint64_t apart)
{
    return a < b + apart && b < a + apart;
}

/* The collector was off for the same reason: nearly all the time, but for what it wanted to sleep
 * first, in one piece, and most of it not for want of a processor. Who is stopped without one gets
 * one first, to see it, and both wait for one again when they are let go on. */
static bool is_same(const stop *p, interval i)
{
    uint64_t from = PKI_MAX(i.from, p->due), until = PKI_MIN(i.until, p->at.until);
    uint64_t both = pki_saturating_sub(until, from);
    uint64_t begun = p->due > p->at.from ? from : i.from;
    uint64_t apart = APART_MOST + p->ready + p->at.beside + i.beside;
    bool ends = is_near(i.from, p->at.from, apart) && is_near(i.until, p->at.until, apart);
    return both >= STOP_LEAST && both >= (i.until - begun) / 5 * 4 &&
           both >= (i.until - i.from) / 2 && both >= 2 * p->ready && (ends || !p->amid);
}

/* NULL: it was none. */
static const stop *stop_of(interval i)
{
    for (unsigned k = 0; k < PKI_MIN(x.stop_count, STOPS); k++)
        if (is_same(&x.stops[k], i))
            return &x.stops[k];
    return NULL;
}

/* What lies before the collector's sleep was no stop. */
static void tell_wait(const pki_session *s, watched *w, interval i)
{
    if (i.until - i.from < BLOCKED_LEAST) {
        add_brief(s, w, i);
        return;
    }
    tell_brief(s, w);
    const stop *p = stop_of(i);
    if (p && p->due > p->at.from && i.from + BLOCKED_LEAST < p->at.from) {
        tell(s, w, WAITED, piece(i.from, p->at.from, false), 0);
        i.from = p->at.from;
    }
    tell(s, w, p ? STOPPED : WAITED, i, 0);
}

static void tell_off(const pki_session *s, watched *w, interval i)
{
    if (i.ready)
        tell_ready(s, w, i);
    else
        tell_wait(s, w, i);
}

/* It could go on, but for want of a processor. */
static void note_beside(interval *before, interval *i)
{
    if (before->ready == i->ready || i->from >= before->until + BLOCKED_LEAST)
        return;
    interval *waits = i->ready ? before : i, *ready = i->ready ? i : before;
    waits->beside += ready->until - ready->from;
}

/* How late waits ended is known once the round is; of so many it is not. */
static void keep_off(const pki_session *s, watched *w, interval i)
{
    for (unsigned k = 0; k < w->off_count && w->off_count == OFFS; k++)
        tell_off(s, w, w->offs[k]);
    w->off_count %= OFFS;
    if (w->off_count)
        note_beside(&w->offs[w->off_count - 1], &i);
    w->offs[w->off_count++] = i;
}

static void note_switch(const pki_session *s, watched *w, bool out, bool ready, uint64_t ns)
{
    if (out) {
        w->switches--;
        pki_store(&x.switches, x.switches + 1);
        w->off = true;
        w->ready = ready;
        w->since = ns;
    } else if (w->off) {
        interval i = piece(w->since, PKI_MAX(ns, w->since), w->ready);
        w->off = false;
        w->ready_told += i.ready ? i.until - i.from : 0;
        w->was_off += pki_saturating_sub(i.until, PKI_MAX(i.from, w->begun));
        keep_off(s, w, i);
    } else {
        w->begun = 0; /* it was off before, for nobody knows how long */
    }
}

/* Some are lost, and what it is now is not known. perf_event_open(2): the event's id, how many. A
 * half of them was away from a processor. */
static void note_lost(watched *w, const pki_kernel_record *r)
{
    uint64_t lost = r->header.type == PERF_RECORD_LOST ? r->words[1] / 2 : 0;
    w->switches -= (double)lost;
    pki_store(&x.switches, x.switches + lost);
    w->off = false;
    w->begun = 0;
}

static void read_records(const pki_session *s, watched *w)
{
    pki_kernel_record r;
    while (pki_kernel_ring_next(&w->ring, &r))
        if (r.header.type == PERF_RECORD_SWITCH)
            note_switch(s, w, r.header.misc & PERF_RECORD_MISC_SWITCH_OUT,
                        r.header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, r.words[0]);
        else
            note_lost(w, &r);
}

/* ---- what schedstat adds ---- */

static int shorter_first(const void *a, const void *b)
{
    const interval *const *i = a, *const *k = b;
    uint64_t one = (*i)->until - (*i)->from, other = (*k)->until - (*k)->from;
    return (one > other) - (one < other);
}

/* What it was ready, and no record says, was behind the waits of the round: of each an equal part,
 * since how late a thread comes back does not depend on how long it was away; but not more than it
 * lasted. */
static void share_late(watched *w, uint64_t late[OFFS])
{
    interval *order[OFFS];
    unsigned n = 0;
    uint64_t left = pki_saturating_sub(w->ready_sum, w->ready_told);
    memset(late, 0, OFFS * sizeof *late);
    for (unsigned k = 0; k < w->off_count; k++)
        if (!w->offs[k].ready)
            order[n++] = &w->offs[k];
    if (n)
        qsort(order, n, sizeof *order, shorter_first);
    for (unsigned k = 0; k < n; k++) {
        uint64_t part = PKI_MIN(left / (n - k), order[k]->until - order[k]->from);
        part = part < READY_LEAST ? 0 : part; /* to wake up takes a while */
        late[order[k] - w->offs] = part;
        left -= part;
        w->ready_told += part;
    }
}

static void end_round(const pki_session *s, watched *w)
{
    uint64_t late[OFFS];
    share_late(w, late);
    for (unsigned k = 0; k < w->off_count; k++) {
        interval i = w->offs[k], behind = piece(i.until - late[k], i.until, true);
        i.until = behind.from;
        tell_off(s, w, i);
        tell_ready(s, w, behind);
    }
    tell_brief(s, w);
    w->off_count = 0;
    w->ready_told = PKI_MAX(w->ready_told, w->ready_sum);
}

/* Are there records for it? Too many are none for a while. */
static void bound_records(watched *w, uint64_t now)
{
    uint64_t last = w->looked ? w->looked : now;
    w->switches += (double)(now - last) / 1e9 * SWITCHES_A_SECOND;
    w->switches = w->switches < SWITCHES_MOST ? w->switches : SWITCHES_MOST;
    if (w->ring.page && w->switches < 0) {
        unmap_records(w);
        w->off = false;
        w->pause = now + PAUSE_NS;
    } else if (w->pause && now >= w->pause) {
        w->pause = map_records(w) ? 0 : now + PAUSE_NS;
        w->ready_told = w->ready_sum;
    }
}

/* What is missing since all of its time is known; else it is from now on. */
static void find_missing(watched *w, uint64_t now, uint64_t running)
{
    bool known = w->ring.page && w->begun && now > w->begun;
    uint64_t off = w->was_off + (w->off ? pki_saturating_sub(now, PKI_MAX(w->since, w->begun)) : 0);
    uint64_t ran = pki_saturating_sub(running, w->running);
    w->lacks = known ? pki_saturating_sub(now - w->begun, off + ran) : 0;
    if (known)
        return;
    w->begun = w->ring.page ? now : 0;
    w->running = running;
    w->was_off = w->missing = 0;
}

/* What nobody has stolen was spent in interrupts. */
static void tell_stolen(const pki_session *s, watched *w, uint64_t now)
{
    uint64_t more = pki_saturating_sub(w->lacks, w->missing);
    if (more < STOLEN_LEAST || !w->looked || now <= w->looked)
        return;
    uint64_t all = pki_stolen_read(""), stolen = PKI_MIN(more, pki_saturating_sub(all, x.stolen));
    uint64_t most = now - w->looked - 1;
    x.stolen = PKI_MAX(x.stolen + stolen, pki_saturating_sub(all, 2 * STOLEN_LEAST));
    w->missing = w->lacks;
    if (stolen < BLOCKED_LEAST)
        return;
    stolen = PKI_MIN(stolen, most);
    tell_of(s, w, READY, piece(w->looked, now, true), stolen, PKI_BY_HOST);
    pki_states_neighbour(PKI_BY_HOST, stolen);
}

/* Where nobody may read /proc, it is there until the kernel knows it no longer. */
static bool is_gone(uint32_t tid)
{
    return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

/* It was off its processor when its account was read, and no record says that it came back. */
static bool has_rested(const watched *w)
{
    const struct perf_event_mmap_page *ring = w->ring.page;
    return ring && w->off && w->since < w->accounted &&
           __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE) == ring->data_tail;
}

static bool read_account(watched *w, pki_thread_cpu *cpu)
{
    if (has_rested(w)) {
        *cpu = (pki_thread_cpu){.running = w->ran_sum, .ready = w->ready_sum};
        return true;
    }
    w->accounted = pki_monotonic_ns();
    return pki_thread_cpu_read("", w->tid, false, cpu);
}

/* What the kernel says of it by now. */
static void read_state(const pki_session *s, watched *w)
{
    pki_thread_cpu cpu;
    bool known = read_account(w, &cpu);
    w->ready_before = w->ready_sum;
    if (known && !w->looked)
        w->ready_told = w->ready_before = cpu.ready;
    w->ready_sum = known ? cpu.ready : w->ready_before;
    w->ran = known ? cpu.running - w->ran_sum : 0;
    w->ran_sum = known ? cpu.running : w->ran_sum;
    w->gone = !known && is_gone(w->tid);
    uint64_t now = pki_monotonic_ns();
    if (w->ring.page)
        read_records(s, w);
    if (known)
        find_missing(w, now, cpu.running);
}

/* Without records: the collector stood still, at first perhaps in its sleep, and in the round this
 * thread has neither run nor waited for a processor so long that it had not. */
static void tell_stops(const pki_session *s, const watched *w, uint64_t now, uint64_t ready)
{
    uint64_t rest = pki_saturating_sub(now - w->looked, w->ran + ready);
    for (unsigned k = 0; k < PKI_MIN(x.stop_count, STOPS); k++) {
        const stop *p = &x.stops[k];
        uint64_t from = PKI_MAX(p->due, w->looked), length = pki_saturating_sub(p->at.until, from);
        uint64_t asleep = pki_saturating_sub(from, PKI_MAX(p->at.from, w->looked));
        if (length < STOP_LEAST || length < 2 * p->ready || rest < length / 5 * 4)
            continue;
        from -= PKI_MIN(asleep, pki_saturating_sub(rest, length)); /* the collector slept by then */
        tell(s, w, STOPPED, piece(from, p->at.until, false), 0);
    }
}

/* What it was ready is in its account only once it runs: it may be of the rounds before. */
static void tell_account(const pki_session *s, const watched *w, uint64_t now, uint64_t ready)
{
    if (!w->looked)
        return;
    tell_stops(s, w, now, ready);
    if (ready >= BLOCKED_LEAST)
        tell(s, w, READY, piece(PKI_MIN(w->looked, now - ready - 1), now, true), ready);
}

static void tell_state(const pki_session *s, watched *w)
{
    uint64_t now = pki_monotonic_ns(), ready = w->ready_sum - w->ready_before;
    if (w->ring.page) {
        end_round(s, w);
        tell_stolen(s, w, now);
    } else {
        tell_account(s, w, now, ready);
    }
    bound_records(w, now);
    w->looked = now;
}

/* ---- the collector, which stops when all of the process does ---- */

/* It has slept, from then on, and wanted to wake when it was due. */
static uint64_t watch(pki_session *s, uint64_t slept, uint64_t due)
{
    if (s->history)
        x.sleeps[x.slept++ % SLEEPS] = (nap){slept, due, s->woke, 0};
    return 0;
}

/* The sleep that it was in then; NULL. */
static nap *sleep_at(uint64_t at)
{
    for (unsigned i = 0; i < SLEEPS; i++)
        if (at >= x.sleeps[i].from && at <= x.sleeps[i].woke)
            return &x.sleeps[i];
    return NULL;
}

/* Who is told to stop as it sleeps wakes up, and is off again at once. */
static bool join_last(interval i)
{
    stop *last = &x.stops[(x.stop_count - 1) % STOPS];
    bool joins = x.stop_count && i.from - PKI_MIN(i.from, last->at.until) < BLOCKED_LEAST;
    if (joins)
        last->at.until = i.until;
    return joins;
}

/* Of a sleep, what lies behind the moment when it wanted to wake; a wait that it did not begin
 * itself; and one amid a round, which it may have. */
static void note_stop(interval i, uint64_t ready)
{
    nap *slept = sleep_at(i.from);
    bool asleep = slept && slept->waits++ == 0 && i.from < slept->due;
    uint64_t due = asleep ? slept->due : i.from;
    if (i.until < due + STOP_LEAST || (!asleep && join_last(i)))
        return;
    x.stops[x.stop_count++ % STOPS] = (stop){i, due, ready, !slept};
}

static void note_stops(watched *own, uint64_t ready)
{
    for (unsigned k = 0; k < own->off_count; k++)
        if (own->offs[k].ready)
            ready -= PKI_MIN(ready, own->offs[k].until - own->offs[k].from);
    for (unsigned k = 0; k < own->off_count; k++)
        if (!own->offs[k].ready)
            note_stop(own->offs[k], ready);
    own->off_count = 0;
}

/* Each begins in the nanosecond in which the one before it ended. */
static void note_sleeps(const pki_session *s, watched *own)
{
    for (unsigned k = 0; k < PKI_MIN(x.slept, SLEEPS); k++)
        if (x.sleeps[k].woke > own->looked)
            keep_off(s, own, piece(x.sleeps[k].from + 1, x.sleeps[k].woke, false));
}

/* Without records it is known how late it woke. What it was ready for since is no stop. */
static void look_at_collector(const pki_session *s)
{
    watched *own = &x.own;
    pki_thread_cpu cpu;
    uint32_t tid = pki_load(&s->collector_tid);
    if (!own->tid && !tid)
        return;
    if (!own->tid) {
        own->tid = tid; /* the rest is zero */
        own->switches = SWITCHES_MOST;
        map_records(own);
    }
    bool known = pki_thread_cpu_read("", own->tid, false, &cpu); /* not once it has ended */
    uint64_t ready = known && own->looked ? cpu.ready - own->ready_sum : 0;
    own->ready_sum = known ? cpu.ready : own->ready_sum;
    if (own->ring.page)
        read_records(s, own);
    else
        note_sleeps(s, own);
    note_stops(own, ready);
    bound_records(own, pki_monotonic_ns());
    own->looked = pki_monotonic_ns();
}

/* ---- the service ---- */

/* A flush of another thread does not know whether the process was stopped: the next round does. */
static void drain(pki_session *s)
{
    uint32_t collector = pki_load(&s->collector_tid);
    bool mine = collector && collector == (uint32_t)syscall(SYS_gettid);
    if (!s->history || (collector && !mine))
        return;
    bool waited = false;
    for (unsigned i = 0; i < x.count; i++) {
        read_state(s, &x.threads[i]);
        waited |= !x.threads[i].ring.page || x.threads[i].off_count;
    }
    if (waited && pki_load(&s->fullest))
        pki_collect_within(WITHIN_NS);
    look_at_collector(s); /* behind them: it knows of each stop that they have come back from */
    for (unsigned i = 0; i < x.count; i++)
        tell_state(s, &x.threads[i]);
    for (unsigned i = 0; i < x.count && x.suspensions < s->slept.count; i++)
        tell_suspended(s, &x.threads[i]);
    x.suspensions = s->slept.count;
    judge_slow(false);
}

/* A place of its own, or that of a thread that has ended; NULL: there is none. */
static watched *find_place(void)
{
    if (x.count < THREADS)
        return &x.threads[x.count++];
    for (unsigned i = 0; i < THREADS; i++)
        if (x.threads[i].gone) {
            unmap_records(&x.threads[i]);
            return &x.threads[i];
        }
    return NULL;
}

static void follow(pki_session *s, uint32_t tid)
{
    watched *w = find(tid) ? NULL : find_place();
    int saved = errno;
    if (!w)
        return;
    *w = (watched){.tid = tid, .switches = SWITCHES_MOST};
    x.stolen = x.stolen ? x.stolen : pki_stolen_read("");
    pki_track track = track_of(s, w);
    w->track = pki_track_unwritten(&track);
    if (!map_records(w) && !x.refused) {
        x.refused = errno;
        pki_log(
            PK_LOG_INFO,
            "history: the kernel gives no records of switches (perf_event_open: %s): where in a "
            "step its thread had no processor is not known, only how long",
            strerror(errno));
    }
    errno = saved;
    read_state(s, w);
    tell_state(s, w);
}

void pki_states_step(pki_session *s, uint32_t tid, uint64_t from, uint64_t until, uint64_t longer)
{
    follow(s, tid);
    const watched *w = longer ? find(tid) : NULL;
    if (w)
        tell_untold(s, w, from, until);
    slow.steps++;
    slow.found += longer > 0;
    if (longer && slow.waiting < SLOW_MOST)
        slow.slow[slow.waiting++] = (slow_step){from, until, longer, tid};
}

static void clear(void)
{
    pki_mem_clear(&x, sizeof x);
    pki_mem_clear(&slow, sizeof slow);
}

static void forget(void)
{
    for (unsigned i = 0; i < x.count; i++)
        unmap_records(&x.threads[i]);
    unmap_records(&x.own);
    clear();
}

/* That the kernel takes longer for the program's threads. */
static uint64_t spent(void)
{
    return pki_load(&x.switches) * SWITCH_NS;
}

/* The kernel does not give such mappings to a child. */
static void after_fork(void)
{
    clear();
}

const pki_service pki_service_states = {
    .name = "states",
    .reset = forget,
    .drain = drain,
    .watch = watch,
    .summarise = summarise,
    .forget = forget,
    .after_fork = after_fork,
    .spent = spent,
};
