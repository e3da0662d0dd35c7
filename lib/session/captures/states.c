#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/processors.h"
#include "history/history.h"
#include "out/chrome/events.h"
#include "session/activity.h"
#include "session/captures/captures.h"

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
 * that was from round to round, and it is shared among the ends of the waits between. A process
 * that is stopped or frozen stops perfkit's collector as well: if that wakes later than it should,
 * and not for want of a processor, what is blocked meanwhile is stopped.
 *
 * Without such records schedstat says from round to round how long it was ready.
 *
 * A thread that is off and on again takes 2 to 3 us more for it, in the kernel. So they are for
 * threads that are so a thousand times a second at most, 0.25 % of their time, or ten thousand
 * times in a burst; of others there are none for ten seconds.
 *
 * All of it on the collector, under the drain lock. */

#define THREADS 4u
#define PAGES_MOST 32u     /* of records, each of 16 bytes: 8,192 of them in a round */
#define READY_LEAST 50000u /* ns; shorter ones are no slice */
#define BLOCKED_LEAST 1000000u
#define LATE_LEAST 5000000u
#define WAITS 256u             /* of a round; of more it is not known how late they ended */
#define TRACK_FIRST (1u << 21) /* pki_track_apart */
#define SWITCH_NS 2600u        /* docs/internals/overhead.md */
#define SWITCHES_A_SECOND 1000.0
#define SWITCHES_MOST 10000.0 /* in a burst */
#define PAUSE_NS 10000000000u

typedef struct interval {
    uint64_t from, until; /* CLOCK_MONOTONIC, ns */
} interval;

typedef struct watched {
    uint32_t tid, track;
    struct perf_event_mmap_page *ring; /* NULL: there are no records of it */
    uint64_t data_bytes;
    bool gone;           /* the thread has ended */
    double switches;     /* that it may have before there is a pause... */
    uint64_t pause;      /* ...until then, CLOCK_MONOTONIC, ns; 0: there is none */
    bool off, ready;     /* it is off its processor, and could go on */
    uint64_t since;      /* ns; then */
    uint64_t ready_told; /* ns, in all: by records */
    uint64_t ready_sum;  /* by schedstat, at the last round */
    uint64_t looked;     /* ns; then. 0: not yet */
    unsigned wait_count;
    interval waits[WAITS]; /* of this round */
} watched;

static struct {
    watched threads[THREADS];
    unsigned count;
    bool refused;       /* the kernel has no records for us, which is said */
    uint64_t switches;  /* of all of them, away from a processor; any thread reads it */
    uint64_t own_ready; /* the collector's */
    interval late;      /* the last time that it slept so much longer than it should */
} x;

/* ---- records of switches ---- */

static int open_records(uint32_t tid)
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
    return (int)syscall(SYS_perf_event_open, &a, (pid_t)tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The mapping keeps the event, so no descriptor stays open that the program could close. */
static bool map_records(watched *w)
{
    int fd = open_records(w->tid);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (fd < 0)
        return false;
    void *ring = MAP_FAILED;
    for (size_t pages = PAGES_MOST; pages && ring == MAP_FAILED; pages /= 2) {
        w->data_bytes = pages * page;
        ring = mmap(NULL, w->data_bytes + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    int error = errno;
    close(fd);
    errno = error;
    w->ring = ring == MAP_FAILED ? NULL : ring;
    return w->ring != NULL;
}

static void unmap_records(watched *w)
{
    if (w->ring)
        munmap(w->ring, w->data_bytes + (size_t)sysconf(_SC_PAGESIZE));
    w->ring = NULL;
}

/* ---- what becomes a slice ---- */

static pki_track track_of(const pki_session *s, const watched *w)
{
    uint32_t n = TRACK_FIRST + (uint32_t)(w - x.threads);
    return (pki_track){s->config.world.pid, pki_track_apart(n), NULL,
                       "processor of the thread that makes steps", 0};
}

/* off: of it, where not all of it was so; 0: all. */
static void tell(const pki_session *s, const watched *w, const char *state, interval i,
                 uint64_t off)
{
    pki_track track = track_of(s, w);
    if (!w->track)
        return;
    pki_activity_arg args[] = {{"thread", NULL, w->tid}, {"off_ns", NULL, (int64_t)off}};
    pki_activity a = {.kind = PKI_ACTIVITY_STATE,
                      .track = w->track,
                      .name = state,
                      .name_length = strlen(state),
                      .start = pki_activity_ns(i.from),
                      .end = pki_activity_ns(i.until),
                      .device = PKI_NO_DEVICE,
                      .args = args,
                      .arg_count = off ? 2 : 1};
    pki_history_activity(s->history, &a, &track);
}

static void tell_ready(const pki_session *s, const watched *w, interval i)
{
    if (i.until - i.from >= READY_LEAST)
        tell(s, w, PKI_STATE_READY, i, 0);
}

/* Both were off for it, and neither wanted a processor. */
static bool is_stopped(interval i)
{
    uint64_t from = PKI_MAX(i.from, x.late.from), until = PKI_MIN(i.until, x.late.until);
    return until > from && until - from >= (x.late.until - x.late.from) / 5 * 4;
}

static void tell_wait(const pki_session *s, const watched *w, interval i)
{
    if (i.until - i.from >= BLOCKED_LEAST)
        tell(s, w, is_stopped(i) ? PKI_STATE_STOPPED : PKI_STATE_BLOCKED, i, 0);
}

/* How late it ended is known once the round is. */
static void keep_wait(const pki_session *s, watched *w, interval i)
{
    if (w->wait_count < WAITS)
        w->waits[w->wait_count++] = i;
    else
        tell_wait(s, w, i);
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
        interval i = {w->since, PKI_MAX(ns, w->since)};
        w->off = false;
        if (w->ready) {
            w->ready_told += i.until - i.from;
            tell_ready(s, w, i);
        } else {
            keep_wait(s, w, i);
        }
    }
}

static void read_records(const pki_session *s, watched *w)
{
    const char *data = (const char *)w->ring + sysconf(_SC_PAGESIZE);
    uint64_t head = __atomic_load_n(&w->ring->data_head, __ATOMIC_ACQUIRE); /* perf_event_open(2) */
    uint64_t tail = w->ring->data_tail;
    while (tail < head) {
        struct perf_event_header h;
        uint64_t ns;
        memcpy(&h, data + tail % w->data_bytes, sizeof h);
        memcpy(&ns, data + (tail + sizeof h) % w->data_bytes, sizeof ns);
        if (h.type == PERF_RECORD_SWITCH)
            note_switch(s, w, h.misc & PERF_RECORD_MISC_SWITCH_OUT,
                        h.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, ns);
        else
            w->off = false; /* some are lost, and what it is now is not known */
        tail += PKI_MAX(h.size, sizeof h);
    }
    __atomic_store_n(&w->ring->data_tail, head, __ATOMIC_RELEASE);
}

/* ---- what schedstat adds ---- */

static int shorter_first(const void *a, const void *b)
{
    const interval *i = a, *k = b;
    uint64_t one = i->until - i->from, other = k->until - k->from;
    return (one > other) - (one < other);
}

/* What it was ready, and no record says, was behind the waits of the round: of each an equal part,
 * since how late a thread comes back does not depend on how long it was away; but not more than it
 * lasted. */
static void end_waits(const pki_session *s, watched *w)
{
    uint64_t left = pki_saturating_sub(w->ready_sum, w->ready_told);
    if (w->wait_count)
        qsort(w->waits, w->wait_count, sizeof *w->waits, shorter_first);
    for (unsigned k = 0; k < w->wait_count; k++) {
        interval i = w->waits[k];
        uint64_t late = PKI_MIN(left / (w->wait_count - k), i.until - i.from);
        left -= late;
        w->ready_told += late;
        tell_ready(s, w, (interval){i.until - late, i.until});
        tell_wait(s, w, (interval){i.from, i.until - late});
    }
    w->wait_count = 0;
    w->ready_told = PKI_MAX(w->ready_told, w->ready_sum);
}

/* Are there records for it? Too many are none for a while. */
static void bound_records(watched *w, uint64_t now)
{
    uint64_t last = w->looked ? w->looked : now;
    w->switches += (double)(now - last) / 1e9 * SWITCHES_A_SECOND;
    w->switches = w->switches < SWITCHES_MOST ? w->switches : SWITCHES_MOST;
    if (w->ring && w->switches < 0) {
        unmap_records(w);
        w->off = false;
        w->pause = now + PAUSE_NS;
    } else if (w->pause && now >= w->pause) {
        w->pause = map_records(w) ? 0 : now + PAUSE_NS;
        w->ready_told = w->ready_sum;
    }
}

static void look_at(const pki_session *s, watched *w)
{
    pki_thread_cpu cpu;
    uint64_t now = pki_monotonic_ns(), ready = w->ready_sum;
    bool known = pki_thread_cpu_read("", w->tid, false, &cpu);
    if (known && !w->looked)
        w->ready_told = ready = cpu.ready;
    w->ready_sum = known ? cpu.ready : ready;
    w->gone = !known;
    if (w->ring) {
        read_records(s, w);
        end_waits(s, w);
    } else if (w->looked && w->ready_sum - ready >= BLOCKED_LEAST) {
        tell(s, w, PKI_STATE_READY, (interval){w->looked, now}, w->ready_sum - ready);
    }
    bound_records(w, now);
    w->looked = now;
}

/* The collector was to wake at due. What it was ready for since is no stop. */
static void look_at_collector(const pki_session *s)
{
    pki_thread_cpu cpu;
    if (!pki_thread_cpu_read("", (uint32_t)syscall(SYS_gettid), false, &cpu))
        return;
    uint64_t ready = cpu.ready - x.own_ready;
    x.own_ready = cpu.ready;
    if (s->woke > s->due + ready + LATE_LEAST)
        x.late = (interval){s->due, s->woke - ready};
}

/* ---- the service ---- */

/* A flush of another thread does not know whether the process was stopped: the next round does. */
static void drain(pki_session *s)
{
    uint32_t collector = pki_load(&s->collector_tid);
    bool mine = collector && collector == (uint32_t)syscall(SYS_gettid);
    if (!s->history || (collector && !mine))
        return;
    if (mine)
        look_at_collector(s);
    for (unsigned i = 0; i < x.count; i++)
        look_at(s, &x.threads[i]);
}

static watched *find(uint32_t tid)
{
    for (unsigned i = 0; i < x.count; i++)
        if (x.threads[i].tid == tid && !x.threads[i].gone)
            return &x.threads[i];
    return NULL;
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

void pki_states_follow(pki_session *s, uint32_t tid)
{
    watched *w = find(tid) ? NULL : find_place();
    int saved = errno;
    if (!w)
        return;
    *w = (watched){.tid = tid, .switches = SWITCHES_MOST};
    pki_track track = track_of(s, w);
    w->track = pki_track_unwritten(&track);
    if (!map_records(w) && !x.refused) {
        x.refused = true;
        pki_log(
            PK_LOG_INFO,
            "history: the kernel gives no records of switches (perf_event_open: %s): where in a "
            "step its thread had no processor is not known, only how long",
            strerror(errno));
    }
    errno = saved;
    look_at(s, w);
}

static void forget(void)
{
    for (unsigned i = 0; i < x.count; i++)
        unmap_records(&x.threads[i]);
    memset(&x, 0, sizeof x);
}

/* That the kernel takes longer for the program's threads. */
static uint64_t spent(void)
{
    return pki_load(&x.switches) * SWITCH_NS;
}

/* The kernel does not give such mappings to a child. */
static void after_fork(void)
{
    memset(&x, 0, sizeof x);
}

const pki_service pki_service_states = {
    .name = "states",
    .reset = forget,
    .drain = drain,
    .forget = forget,
    .after_fork = after_fork,
    .spent = spent,
};
