#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pk/private.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/processors.h"
#include "history/history.h"
#include "out/chrome/events.h"
#include "session/activity.h"
#include "session/captures/captures.h"
#include "session/captures/stacks.h"
#include "session/captures/waits.h"
#include "session/collector/collect.h"
#include "session/costs/io.h"

/* ---- a step that is late is looked at while it is ---- */

/* With a clause slow=, a step is known to be slow before it ends: as soon as it has lasted as long
 * as makes it so. From then on the collector looks every 5 ms what its thread waits for, less often
 * as it goes on:
 *
 *     it is blocked     /proc/self/task/TID/syscall: in which call, and on what: a file, a pipe, a
 *                       terminal, a socket's other end, a lock and its holder
 *     it is ready       /proc/PID/stat: which processes' CPU time grows, on its processor
 *     it runs           where, by samples (stacks.h); how many page faults it has; at which clock
 *
 * All of it is seen from outside of the thread, which does nothing for it. Kernels without
 * CONFIG_HAVE_ARCH_TRACEHOOK, and those that let nobody read these files, say nothing: then it is
 * not known what it waited for, only that it did. How long it was off its processor, where there
 * are no records of that (states.c), is what its account does not have from look to look.
 *
 * Looks and samples of late steps, and the writing of captures, take half of what overhead_max
 * allows, of the time: 50 ms in a burst, as a rule (`pk run`: what it has not taken so far); and no
 * more than all else of perfkit leaves of it. Where every second step is late, some are not looked
 * at, which is said.
 *
 * By the collector, without a lock; what was seen goes to the history in the next round. */

/* ns: so late it may be found to be late, once one has been in the last ten seconds, and before. A
 * wake-up takes some us, on a virtual machine that rests fifty. */
#define POLL_LEAST 20000000u
#define POLL_AT_REST 50000000u
#define POLL_RESTS 10000000000u
#define LOOK_FIRST 5000000u
#define LOOK_RUNNING 20000000u /* of a thread that has its processor, which a look may take */
#define LOOKS_DENSE 20u        /* then each a tenth of the time since the first one later */
#define LOOK_MOST 1000000000u
#define SEEN_MOST 64u
#define BURST_NS 10e9                  /* of that long what looks may take is theirs in a burst */
#define OVERHEAD_PART 0.5              /* of overhead_max */
#define SAMPLES_TAKE 0.03              /* of the sampled time, with what unwinding takes */
#define QUOTA_PERIOD 100000000u        /* ns, the kernel's own choice, which few change */
#define QUOTA_KNOWN 5000000000u        /* of longer times nobody knows which step it was */
#define TRACK_LOOKS ((1u << 21) + 16u) /* pki_track_apart; behind those of states.c */
#define SCANS_MOST 50u                 /* of one late step */
#define SCAN_SHARE 50u                 /* of the time between two such looks one may take */
#define SCAN_LEAST 20000000u           /* ns between two looks at all processes */
#define OF_PAGES 3u
#define RATE_ASKED 250000000u     /* ns between readings of its processor's clock in usual steps */
#define RATE_UNKNOWN 10000000000u /* the same where the kernel does not tell */
#define RATES_LEAST 3u            /* so many of them are needed */
#define RATE_LOWER 0.9            /* of the usual one */
#define CONSUMERS_MOST 1024u      /* processes that are followed; and threads */

typedef struct consumer {
    uint32_t id;
    uint64_t used, grown; /* ns, at the last scan, and since the first one */
    char name[32];
} consumer;

/* What the kernel says of the thread, and when. */
typedef struct account {
    uint64_t at, running, ready; /* ns; at: 0: not known */
    uint32_t of;
} account;

typedef struct scan {
    unsigned scans, count, next; /* next: where the kernel's list goes on, most likely */
    consumer of[CONSUMERS_MOST];
} scan;

/* kHz of its processor while it ran, and how often these were held down for heat. */
typedef struct rates {
    double sum;
    unsigned count;
    uint64_t due;  /* the next reading */
    uint64_t step; /* in which the last one was: it is usual, unless it is late yet */
    double last;   /* what was read then; 0: nothing */
} rates;

static struct {
    uint64_t late_after; /* ns, after a step's beginning; 0: it is not known. Drain lock */
    uint32_t tid;        /* who makes steps; the same */

    /* the collector's */
    uint64_t step;     /* ticks: the beginning of the step that is looked at; 0: none is */
    uint64_t given_up; /* the same, of one whose thread is gone */
    uint64_t first, last;
    uint32_t of, processor;
    uint64_t faults_before[2], faults[2];             /* then, and since the first look */
    uint64_t pressure_before, pressure;               /* the same, ns */
    uint64_t pages_before[OF_PAGES], pages[OF_PAGES]; /* as it was found late, and ended */
    bool has_processor;
    unsigned looks, count;
    pki_wait all[SEEN_MOST];
    account latest, before, inside; /* the last one; around the beginning of... */
    uint64_t counted;               /* ...this step, ticks */
    account begun, seen;       /* of the late step: as it began, and when it was seen to wait */
    uint64_t began;            /* ns: the late step */
    uint64_t ticks, in_kernel; /* at its first look, and since */
    bool unreadable;           /* that was not told of it */
    bool left_out;             /* a step was late, and was not looked at for what that takes */
    double credit;             /* ns that looks may take... */
    uint64_t credited;         /* ...as of then */
    uint64_t written;          /* ns that writing captures has taken, and has been paid for */
    bool nothing_left;         /* perfkit has taken what it may */
    uint64_t running;          /* ns, of the thread, at the last look; 0: it was not asked */
    scan processes, threads;
    uint64_t scanned_first, scanned; /* 0: not at all */
    uint64_t scan_took;              /* ns, the last one */
    uint64_t waited;                 /* ns that it had no processor since the first scan */
    bool ended;                      /* a late step, of which the history knows nothing yet */
    rates usual, late;
    uint32_t heat_at;           /* the processor that it had as it was found late... */
    uint64_t heat_before, heat; /* ...and of that, then, and since */
    uint64_t quota_asked;       /* when */
    pki_quota quota;            /* as of then */
} x;

void pki_looks_expect(uint32_t tid, uint64_t late_after)
{
    pki_store(&x.tid, tid);
    pki_store(&x.late_after, late_after);
}

/* ---- who has its processor ---- */

static consumer *consumer_of(scan *at, uint32_t id)
{
    for (unsigned i = 0; i < at->count; i++) {
        consumer *c = &at->of[(at->next + i) % at->count];
        if (c->id == id) {
            at->next = (unsigned)(c - at->of) + 1;
            return c;
        }
    }
    return NULL;
}

/* ns on a processor: of a process in the kernel's ticks, of a thread of ours to the ns, since many
 * may share what is missing. */
static uint64_t used_by(bool own, uint32_t id, const pki_thread_stat *stat)
{
    pki_thread_cpu cpu;
    if (own)
        return pki_thread_cpu_read("", id, false, &cpu) ? cpu.running : 0;
    return stat->ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* One process, or one thread of this one: by how much its time has grown since the scan before, if
 * it is where our thread wants to be (a process of many threads: the first of them). Who is new
 * since then has all of its time from then on, but for the kernel's own, which come to it. */
static void consider(const char *folder, uint32_t id, scan *at)
{
    pki_thread_stat stat;
    bool own = at == &x.threads;
    if (!pki_thread_stat_read(folder, id, &stat))
        return;
    if (stat.of_kernel && stat.processor != x.processor)
        return;
    consumer *c = consumer_of(at, id);
    if (!c && at->count == CONSUMERS_MOST)
        return;
    uint64_t used = used_by(own, id, &stat);
    if (!c) {
        c = &at->of[at->count++];
        *c = (consumer){.id = id, .used = at->scans && !stat.of_kernel ? 0 : used};
        snprintf(c->name, sizeof c->name, "%s", stat.name);
    }
    if (stat.processor == x.processor)
        c->grown += pki_saturating_sub(used, c->used);
    c->used = used;
}

static void scan_folder(const char *folder, scan *at, uint32_t not_this)
{
    DIR *d = opendir(folder);
    at->next = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        uint32_t id = (uint32_t)strtoul(e->d_name, NULL, 10);
        if (id && id != not_this)
            consider(folder, id, at);
    }
    if (d)
        closedir(d);
    at->scans++;
}

static void scan_all(void)
{
    uint64_t now = pki_monotonic_ns();
    if (!x.scanned)
        x.scanned_first = now;
    scan_folder("/proc", &x.processes, (uint32_t)getpid());
    scan_folder("/proc/self/task", &x.threads, x.of);
    x.scanned = pki_monotonic_ns();
    x.scan_took = x.scanned - now;
}

/* The process that has had most, or the program's own threads together; ns. */
static uint64_t who_had_most(char *name, size_t size)
{
    const consumer *most = NULL;
    uint64_t own = 0;
    for (unsigned i = 0; i < x.processes.count; i++)
        if (!most || x.processes.of[i].grown > most->grown)
            most = &x.processes.of[i];
    for (unsigned i = 0; i < x.threads.count; i++)
        own += x.threads.of[i].grown;
    uint64_t other = most ? most->grown : 0;
    if (own >= other)
        snprintf(name, size, PKI_BY_OWN_THREADS);
    else
        snprintf(name, size, "%s (pid %u)", most->name, most->id);
    return PKI_MAX(own, other);
}

static account account_of(uint32_t tid)
{
    pki_thread_cpu cpu;
    bool known = pki_thread_cpu_read("", tid, false, &cpu);
    return known ? (account){pki_monotonic_ns(), cpu.running, cpu.ready, tid} : (account){0};
}

/* ns between the two that it neither ran nor was ready. */
static uint64_t off_between(const account *from, const account *to)
{
    uint64_t had =
        pki_saturating_sub(to->running, from->running) + pki_saturating_sub(to->ready, from->ready);
    bool same = from->at && to->at && from->of == to->of;
    return same ? pki_saturating_sub(to->at - from->at, had) : 0;
}

/* ---- at which clock its processor runs ---- */

static pki_cpus only(uint32_t processor)
{
    pki_cpus one = {{0}};
    if (processor < PKI_CPUS_MOST)
        one.bits[processor / 64] |= (uint64_t)1 << processor % 64;
    return one;
}

/* Where the kernel tells: a virtual machine's does not. 0: not known. */
static double rate_of(uint32_t processor)
{
    pki_cpus one = only(processor);
    double now, most;
    return pki_clock_rates_read("", &one, &now, &most) ? now : 0;
}

static uint64_t heat_of(uint32_t processor)
{
    pki_cpus one = only(processor);
    return pki_heat_read("", &one);
}

static void add_rate(rates *to, double rate)
{
    to->sum += rate;
    to->count += rate > 0;
}

/* The last dozen or so of the readings count: what is usual changes with the hour. */
static void note_usual_rate(uint32_t tid, uint64_t step)
{
    rates *usual = &x.usual;
    pki_thread_stat stat;
    uint64_t now = pki_monotonic_ns();
    if (now < usual->due || !tid)
        return;
    if (usual->step != step) { /* it has ended, and was not late */
        add_rate(usual, usual->last);
        if (usual->count > 4 * RATES_LEAST)
            usual->sum -= usual->sum / usual->count--;
    }
    usual->step = step;
    bool runs = pki_thread_stat_read("/proc/self/task", tid, &stat) && stat.state == 'R';
    usual->last = runs ? rate_of(stat.processor) : 0;
    usual->due = now + (runs && usual->last <= 0 ? RATE_UNKNOWN : RATE_ASKED);
}

/* Now and then, so that there is one soon before and behind the beginning of a step. */
static void keep_account(uint64_t ticks)
{
    account now = account_of(pki_load(&x.tid));
    note_usual_rate(pki_load(&x.tid), ticks);
    if (x.counted != ticks) {
        x.counted = ticks;
        x.before = x.latest;
        x.inside = now;
    }
    x.latest = now;
}

/* So long of the time between the two: it was off as long as can be, since usual steps are seldom
 * so, and ready for its share; or all that is too long to have been in the rest. (What it is ready
 * is in the account once it runs.) */
static account part_of(const account *from, const account *to, uint64_t length)
{
    uint64_t all = PKI_MAX(pki_saturating_sub(to->at, from->at), 1), rest = all - length;
    uint64_t off = PKI_MIN(off_between(from, to), length);
    uint64_t ready = pki_saturating_sub(to->ready, from->ready);
    double share = (double)ready * (double)length / (double)all;
    uint64_t part = PKI_MIN((uint64_t)share, length - off);
    part = PKI_MAX(part, pki_saturating_sub(ready, rest));
    return (account){length, pki_saturating_sub(length, off + part), part, to->of};
}

static account account_at_begin(uint64_t began)
{
    account at = x.inside;
    if (!x.before.at || x.before.of != at.of || began >= at.at || began <= x.before.at)
        return at;
    account part = part_of(&x.before, &at, at.at - began);
    return (account){began, at.running - part.running, at.ready - part.ready, at.of};
}

/* The step after it began then; 0: not known. */
static account account_at_end(uint64_t ended)
{
    account from = x.latest, now = account_of(x.of);
    if (!now.at || ended <= from.at || ended >= now.at || from.of != now.of)
        return now;
    account part = part_of(&from, &now, ended - from.at);
    return (account){ended, from.running + part.running, from.ready + part.ready, now.of};
}

/* Without a processor for most of the time since the last look? A thread that gets none at all has
 * neither run nor, by its account, been ready: that is added up once it runs. */
static void note_runnable(uint64_t now)
{
    uint64_t running = x.latest.running;
    if (!x.latest.at)
        return;
    uint64_t ran = x.running ? pki_saturating_sub(running, x.running) : now - x.last;
    uint64_t waited = pki_saturating_sub(now - x.last, ran);
    bool short_of = waited >= (now - x.last) / 2 && waited;
    x.has_processor = x.running && !short_of;
    x.running = running;
    if (x.scanned)
        x.waited += waited;
    bool due = pki_saturating_sub(now, x.scanned) >= PKI_MAX(SCAN_LEAST, SCAN_SHARE * x.scan_took);
    if (short_of && due && x.processes.scans < SCANS_MOST)
        scan_all();
}

/* ---- what it waits for ---- */

static bool is_alike(const pki_wait *a, const pki_wait *b)
{
    return a->what == b->what && strcmp(a->object, b->object) == 0 &&
           strcmp(a->holder, b->holder) == 0 && strcmp(a->region, b->region) == 0;
}

/* All that it was off since it was last seen to wait is of this wait. */
static void note_blocked(const pki_session *s, uint32_t tid, uint64_t now)
{
    pki_wait is;
    account seen = x.latest;
    if (!pki_wait_see(s, tid, &is))
        return;
    is.off = off_between(&x.seen, &seen);
    is.from = now - is.off;
    is.until = now;
    x.seen = seen;
    pki_wait *before = x.count ? &x.all[x.count - 1] : NULL;
    if (before && is_alike(before, &is)) {
        before->until = now;
        before->off += is.off;
    } else if (x.count < SEEN_MOST)
        x.all[x.count++] = is;
}

/* Until the step ended the last wait went on. */
static void end_account(const pki_session *s)
{
    const pki_clock_map *clock = &s->arena->header->clock;
    uint64_t ticks = pki_load(&s->arena->header->live.step_ticks);
    bool next = ticks && ticks != x.step;
    account now =
        account_at_end(next ? pki_clock_monotonic_ns(clock, pki_clock_ns(clock, ticks)) : 0);
    pki_wait *last = x.count ? &x.all[x.count - 1] : NULL;
    uint64_t off = off_between(&x.seen, &now);
    if (last) {
        last->off += off;
        last->until += off;
    }
    x.seen = now;
}

/* ---- a late step ---- */

/* Of the machine, us: how long some task waited for memory (proc(5), pressure). */
static uint64_t read_pressure(void)
{
    char text[256];
    const char *total = pki_small_file_once("/proc/pressure/memory", text, sizeof text)
                            ? strstr(text, "total=")
                            : NULL;
    return total ? strtoull(total + 6, NULL, 10) : 0;
}

/* What the kernel did with pages of the whole machine, in this order. proc(5), vmstat. */
static const struct {
    const char *key, *state;
} of_pages[OF_PAGES] = {{"\nnuma_pages_migrated ", PKI_STATE_NUMA},
                        {"\ncompact_migrate_scanned ", PKI_STATE_COMPACTED},
                        {"\nthp_split_page ", PKI_STATE_SPLIT}};

static void read_pages(uint64_t counts[OF_PAGES])
{
    char text[8192];
    bool known = pki_small_file_once("/proc/vmstat", text, sizeof text);
    for (unsigned i = 0; i < OF_PAGES; i++) {
        const char *at = known ? strstr(text, of_pages[i].key) : NULL;
        counts[i] = at ? strtoull(at + strlen(of_pages[i].key), NULL, 10) : 0;
    }
}

static bool look(const pki_session *s, uint64_t now)
{
    pki_thread_stat stat;
    if (!pki_thread_stat_read("/proc/self/task", x.of, &stat))
        return false;
    x.latest = account_of(x.of);
    if (x.looks == 0) {
        x.ticks = stat.in_kernel;
        memcpy(x.faults_before, stat.faults, sizeof stat.faults);
        x.pressure_before = read_pressure();
        read_pages(x.pages_before);
        x.late = (rates){.sum = 0};
        x.heat_at = stat.processor;
        x.heat_before = x.usual.count ? heat_of(x.heat_at) : 0;
    }
    x.in_kernel = stat.in_kernel - x.ticks;
    for (int i = 0; i < 2; i++)
        x.faults[i] = stat.faults[i] - x.faults_before[i];
    if (stat.state == 'R') {
        x.processor = stat.processor;
        if (x.usual.count)
            add_rate(&x.late, rate_of(stat.processor));
        note_runnable(now);
    } else {
        x.has_processor = false;
        x.running = 0;
        note_blocked(s, x.of, now);
    }
    x.last = now;
    x.looks++;
    return true;
}

static uint64_t next_look(uint64_t now)
{
    uint64_t least = x.has_processor ? LOOK_RUNNING : LOOK_FIRST;
    uint64_t pause = x.looks < LOOKS_DENSE ? least : (now - x.first) / 10;
    return now + PKI_MIN(PKI_MAX(pause, least), LOOK_MOST);
}

static void begin_late(uint64_t ticks, uint64_t began, uint64_t now)
{
    if (x.counted != ticks)
        keep_account(ticks);
    x.began = began;
    x.begun = x.seen = account_at_begin(began);
    x.step = ticks;
    x.first = x.last = now;
    x.of = pki_load(&x.tid);
    x.looks = 0;
    pki_stacks_late(x.of);
    x.running = 0;
}

/* Once more who had the processor, unless that takes long. */
static void end_late(const pki_session *s, bool scans)
{
    if (scans && x.scanned && x.scan_took < SCAN_LEAST)
        scan_all();
    pki_stacks_late(0);
    end_account(s);
    read_pages(x.pages);
    x.pressure = 1000 * pki_saturating_sub(read_pressure(), x.pressure_before);
    x.heat = x.usual.count ? pki_saturating_sub(heat_of(x.heat_at), x.heat_before) : 0;
    x.step = 0;
    x.ended = true;
}

/* A thread that has ended makes no step that is late. */
static uint64_t give_up(uint64_t ticks)
{
    pki_stacks_late(0);
    x.step = 0;
    x.given_up = ticks;
    x.unreadable = true;
    return 0;
}

static uint64_t poll_ns(uint64_t now)
{
    return now - x.last < POLL_RESTS ? POLL_LEAST : POLL_AT_REST;
}

/* The thread that makes the step; and when that is late, 0: it is not known. */
static uint64_t late_at(const pki_session *s, uint64_t ticks)
{
    const pki_clock_map *clock = &s->arena->header->clock;
    const pki_thread *stepper = pki_load(&s->registry->stepper);
    uint64_t late_after = pki_load(&x.late_after);
    if (!s->history || !late_after || !ticks || ticks == x.given_up || !stepper ||
        pki_load(&stepper->tid) != pki_load(&x.tid))
        return 0;
    return pki_clock_monotonic_ns(clock, pki_clock_ns(clock, ticks)) + late_after;
}

/* ---- what looks take ---- */

static double burst = BURST_NS;

void pk_looks_burst_(uint64_t ms)
{
    burst = PKI_MIN((double)ms * 1e6, BURST_NS);
}

static double share_of(const pki_session *s)
{
    return OVERHEAD_PART * s->config.overhead_max;
}

static bool may_look(const pki_session *s, uint64_t now)
{
    double most = BURST_NS * share_of(s);
    double passed = x.credited ? (double)(now - x.credited)
                               : burst + (double)(now - s->arena->header->clock.origin_ns);
    x.credit = PKI_MIN(x.credit + passed * share_of(s), most);
    x.credited = now;
    return share_of(s) <= 0 || (x.credit > 0 && !x.nothing_left);
}

/* What else is taken, by all threads. Under the drain lock. */
static void note_toll(const pki_session *s)
{
    pki_toll all = pki_toll_now(s);
    uint64_t passed = pki_monotonic_ns() - s->arena->header->clock.origin_ns;
    uint64_t sum = all.collector + all.callers + all.captures + all.readings + all.backends;
    x.credit -= (double)(all.captures - x.written);
    x.written = all.captures;
    x.nothing_left = (double)sum > s->config.overhead_max * ((double)passed + burst);
}

static bool look_and_pay(const pki_session *s, uint64_t now)
{
    account before = x.latest;
    bool seen = look(s, now);
    if (before.of == x.latest.of)
        x.credit -= SAMPLES_TAKE * (double)pki_saturating_sub(x.latest.running, before.running);
    return seen;
}

/* Of a step that is late already, later. */
static uint64_t leave_out(const pki_session *s, uint64_t ticks, uint64_t now)
{
    if (x.step)
        return now + PKI_MIN((uint64_t)(-x.credit / share_of(s)) + LOOK_FIRST, LOOK_MOST);
    x.given_up = ticks;
    x.of = pki_load(&x.tid);
    x.first = x.last = now;
    x.left_out = true;
    return 0;
}

static uint64_t look_again(const pki_session *s, uint64_t ticks, uint64_t late, uint64_t now)
{
    x.usual.last = x.usual.step == ticks ? 0 : x.usual.last;
    if (!may_look(s, now))
        return leave_out(s, ticks, now);
    if (!x.step)
        begin_late(ticks, late - pki_load(&x.late_after), now);
    return look_and_pay(s, now) ? next_look(now) : give_up(ticks);
}

/* If it was rung for, there is a round to be made. What looks read is no I/O of the program's. */
static uint64_t watch(pki_session *s, uint64_t slept, uint64_t due)
{
    uint64_t now = s->woke, ticks = pki_load(&s->arena->header->live.step_ticks);
    (void)slept;
    if (now < due)
        return s->watch;
    bool over = x.step && x.step != ticks;
    uint64_t late = late_at(s, ticks);
    bool looks = late && now >= late && !x.ended && !over;
    if (!looks && !over && late) {
        pki_io_works();
        keep_account(ticks);
        pki_io_rests();
    }
    if (!looks && !over) /* once one has ended, the round tells what is known of it */
        return !late || x.ended ? 0 : PKI_MAX(late, now + poll_ns(now));
    pki_io_works();
    uint64_t next = 0, began = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
    if (over)
        end_late(s, true);
    else
        next = look_again(s, ticks, late, now);
    x.credit -= (double)(pki_read_clock(CLOCK_THREAD_CPUTIME_ID) - began);
    pki_io_rests();
    return next;
}

/* ---- into the history ---- */

static void tell(const pki_session *s, const char *name, uint64_t from, uint64_t until,
                 const pki_activity_arg *args, size_t count)
{
    pki_track track = {s->config.world.pid, pki_track_apart(TRACK_LOOKS), NULL,
                       "what late steps waited for", 0};
    uint32_t id = pki_track_unwritten(&track);
    pki_activity a = {.kind = PKI_ACTIVITY_STATE,
                      .track = id,
                      .name = name,
                      .name_length = strlen(name),
                      .start = pki_activity_ns(from),
                      .end = pki_activity_ns(PKI_MAX(until, from + 1000)),
                      .device = PKI_NO_DEVICE,
                      .args = args,
                      .arg_count = count};
    if (id)
        pki_history_activity(s->history, &a, &track);
}

static void tell_seen(const pki_session *s, const pki_wait *w)
{
    pki_activity_arg args[6] = {{"thread", NULL, x.of}, {"off_ns", NULL, (int64_t)w->off}};
    size_t n = 2;
    const struct {
        const char *key, *text;
    } more[] = {
        {"call", w->call}, {"object", w->object}, {"by", w->holder}, {"by_region", w->region}};
    for (size_t i = 0; i < PKI_COUNT_OF(more); i++)
        if (more[i].text[0])
            args[n++] = (pki_activity_arg){more[i].key, more[i].text, 0};
    tell(s, w->what, w->from, w->until, args, n);
}

static void tell_neighbour(const pki_session *s)
{
    char who[80];
    uint64_t ran = who_had_most(who, sizeof who);
    pki_activity_arg args[] = {{"thread", NULL, x.of},
                               {"by", who, 0},
                               {"ran_ns", NULL, (int64_t)ran},
                               {"ready_ns", NULL, (int64_t)x.waited}};
    if (ran)
        pki_states_neighbour(who, ran);
    if (ran)
        tell(s, PKI_STATE_NEIGHBOUR, x.scanned_first, x.scanned, args, PKI_COUNT_OF(args));
}

/* How long its cgroup's quota held all of the process up since it was asked last: each round where
 * there is one, and behind each late step, since there may be one by now. */
static void tell_quota(const pki_session *s, bool late)
{
    pki_quota now;
    uint64_t then = x.quota_asked;
    if (then && !late && x.quota.processors == 0)
        return;
    pki_quota_read("", &now);
    uint64_t held = pki_saturating_sub(now.throttled_ns, x.quota.throttled_ns);
    uint64_t times = pki_saturating_sub(now.throttled, x.quota.throttled);
    held = PKI_MIN(held, times * QUOTA_PERIOD); /* it is of all processors */
    pki_activity_arg args[] = {{"thread", NULL, pki_load(&x.tid)}, {"off_ns", NULL, (int64_t)held}};
    x.quota_asked = pki_monotonic_ns();
    if (held && late)
        pki_states_neighbour(PKI_BY_QUOTA, held);
    if (held && then && x.quota_asked - then < QUOTA_KNOWN)
        tell(s, PKI_STATE_QUOTA, then, x.quota_asked, args, PKI_COUNT_OF(args));
    x.quota = now;
}

static void tell_amount(const pki_session *s, const char *name, const char *key, uint64_t amount)
{
    pki_activity_arg args[] = {{"thread", NULL, x.of}, {key, NULL, (int64_t)amount}};
    if (amount)
        tell(s, name, x.first, x.last, args, PKI_COUNT_OF(args));
}

/* By its account: from the round before the step was late to where it ended. */
static void tell_time(const pki_session *s)
{
    const account *from = &x.begun, *to = &x.seen;
    uint64_t kernel = x.in_kernel * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    pki_activity_arg args[] = {
        {"thread", NULL, x.of},
        {"ran_ns", NULL, (int64_t)pki_saturating_sub(to->running, from->running)},
        {"ready_ns", NULL, (int64_t)pki_saturating_sub(to->ready, from->ready)},
        {"kernel_ns", NULL, (int64_t)kernel}};
    if (from->at && to->at && from->of == to->of)
        tell(s, PKI_STATE_TIME, from->at, to->at, args, PKI_COUNT_OF(args));
}

/* Lower by more than clocks are from moment to moment. */
static void tell_rate(const pki_session *s)
{
    double usual = x.usual.count ? x.usual.sum / x.usual.count : 0;
    double now = x.late.count ? x.late.sum / x.late.count : 0;
    pki_activity_arg args[] = {{"thread", NULL, x.of},
                               {"khz", NULL, (int64_t)now},
                               {"usual_khz", NULL, (int64_t)usual},
                               {"by", PKI_BY_HEAT, 0}};
    if (now > 0 && x.usual.count >= RATES_LEAST && now < RATE_LOWER * usual)
        tell(s, PKI_STATE_CLOCK, x.first, x.last, args, x.heat ? 4 : 3);
}

static void tell_untold(const pki_session *s, const char *what, const char *why)
{
    pki_activity_arg args[] = {{"thread", NULL, x.of}, {"call", what, 0}, {"object", why, 0}};
    tell(s, PKI_STATE_UNTOLD, x.first, x.last, args, PKI_COUNT_OF(args));
}

/* What was seen; of a step that is late still, the last wait goes on. */
static void tell_waits(const pki_session *s)
{
    unsigned keep = x.step && x.count ? 1 : 0;
    for (unsigned i = 0; i + keep < x.count; i++)
        tell_seen(s, &x.all[i]);
    if (keep)
        x.all[0] = x.all[x.count - 1];
    x.count = keep;
}

static void tell_unreadable(const pki_session *s)
{
    if (access("/proc/self/stat", R_OK) != 0)
        tell_untold(s, "/proc", strerror(errno));
    x.unreadable = false;
}

/* ---- the service ---- */

/* As states.c: at pk_stop there is no collector. */
static void drain(pki_session *s)
{
    uint32_t collector = pki_load(&s->collector_tid);
    if (!s->history || !pki_load(&x.late_after) ||
        (collector && collector != (uint32_t)syscall(SYS_gettid)))
        return;
    if (x.step && x.step != pki_load(&s->arena->header->live.step_ticks))
        end_late(s, false);
    if (s->config.overhead_max > 0)
        note_toll(s);
    tell_waits(s);
    tell_quota(s, x.ended);
    keep_account(pki_load(&s->arena->header->live.step_ticks));
    if (x.unreadable)
        tell_unreadable(s);
    if (x.left_out)
        tell_untold(s, "looks", "overhead_max");
    x.left_out = false;
    if (!x.ended)
        return;
    x.ended = false;
    tell_time(s);
    if (x.scanned && access("/sys/fs/cgroup/cgroup.controllers", F_OK) != 0 &&
        access("/sys/fs/cgroup/cpu", F_OK) != 0)
        tell_untold(s, "/sys/fs/cgroup", strerror(errno));
    tell_amount(s, PKI_STATE_FAULTS, "count", x.faults[0]);
    tell_amount(s, PKI_STATE_MAJOR_FAULTS, "count", x.faults[1]);
    tell_amount(s, PKI_STATE_PRESSURE, "off_ns", x.pressure);
    tell_rate(s);
    for (unsigned i = 0; i < OF_PAGES; i++)
        tell_amount(s, of_pages[i].state, "count",
                    pki_saturating_sub(x.pages[i], x.pages_before[i]));
    if (x.scanned)
        tell_neighbour(s);
    x.processes.scans = x.processes.count = x.threads.scans = x.threads.count = 0;
    x.scanned = x.waited = 0;
}

/* Without a step there is nothing, and pages that nobody has touched stay so. */
static void clear(void)
{
    if (!x.tid)
        return;
    memset(&x, 0, sizeof x);
}

const pki_service pki_service_looks = {
    .name = "looks",
    .reset = clear,
    .drain = drain,
    .watch = watch,
    .forget = clear,
    .after_fork = clear,
};
