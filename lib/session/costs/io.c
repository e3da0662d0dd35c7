#include "session/costs/io.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"
#include "core/counter.h"
#include "core/names.h"
#include "core/phase.h"
#include "core/registry.h"
#include "core/events.h"
#include "measure/costs/sums.h"
#include "measure/fold/fold.h"
#include "session/session.h"

/* ---- the process's I/O, read of the kernel in the collector's rounds (costs=io) ---- */

#define TRIES 4
#define TRIES_AT_FIRST 100 /* what it is wrong by stays */

#define STAT_BLOCKED 42 /* the field of /proc/PID/stat: clock ticks that it waited for disks */

const char *pki_io_folder = "/proc/self";

static struct {
    bool on, known;
    bool over; /* pk_stop has begun: what is read from then on is perfkit's */
    pki_io_account account;
    pki_io_counts own; /* of the collector's thread, as of its last look */
    uint64_t next;
    pki_own_reads quiet_before, events_before; /* the session */
    pki_phases phases;                         /* the last time that they were known */
    struct {
        uint32_t tid;
        uint64_t other_exposed, other_blocked; /* by those that made steps before it */
        uint64_t blocked;
    } stepper;
} x;

/* What perfkit's thread says of itself. While it rests, its counts are told here, which saves
 * whoever ends a step half of the work: opening a file takes longer than anything else. */
static struct {
    uint32_t tid;   /* 0: there is none, or not yet */
    uint32_t round; /* odd: it is at work; the counts are of before it */
    uint64_t counts[sizeof(pki_io_counts) / sizeof(uint64_t)];
} own;

static bool read_counts(const char *name, pki_io_counts *counts)
{
    char text[512];
    return pki_small_file_in(pki_io_folder, name, text, sizeof text) && pki_io_parse(text, counts);
}

/* Readings of our own on the program's threads, since the session began: a fork's child has its
 * parent's sums, and the kernel counts for it from 0. */
static void take_off(pki_io_counts *c, const pki_own_reads *reads, const pki_own_reads *before)
{
    pki_io_counts ours = {.read_chars = reads->bytes - before->bytes,
                          .read_calls = reads->calls - before->calls};
    *c = pki_io_more(c, &ours);
}

static void take_off_events(pki_io_counts *c)
{
    pki_own_reads events = pki_samplers_reads();
    take_off(c, &events, &x.events_before);
}

/* ---- perfkit's thread, seen by the program's ---- */

typedef size_t read_file(const char *path, char *out, size_t size);

static bool read_by(read_file *read, const char *name, pki_io_counts *counts, size_t *bytes)
{
    char path[512], text[512];
    int n = snprintf(path, sizeof path, "%s/%s", pki_io_folder, name);
    *bytes = n > 0 && (size_t)n < sizeof path ? read(path, text, sizeof text) : 0;
    return *bytes && pki_io_parse(text, counts);
}

void pki_io_works(void)
{
    __atomic_fetch_or(&own.round, 1u, __ATOMIC_SEQ_CST); /* before anything that it does */
}

/* The file does not have its own reading yet. */
void pki_io_rests(void)
{
    pki_io_counts counts;
    uint64_t all[PKI_COUNT_OF(own.counts)];
    size_t bytes;
    char name[64];
    snprintf(name, sizeof name, "task/%u/io", pki_load(&own.tid));
    if (!x.on || !read_by(pki_small_file_once, name, &counts, &bytes))
        return;
    counts.read_chars += bytes;
    counts.read_calls++;
    memcpy(all, &counts, sizeof all);
    for (size_t i = 0; i < PKI_COUNT_OF(all); i++)
        pki_store(&own.counts[i], all[i]);
    pki_store_release(&own.round, pki_load(&own.round) + 1); /* pairs with counts_at_rest */
}

void pki_io_on_collector(void)
{
    pki_io_works();
    pki_store(&own.tid, (uint32_t)syscall(SYS_gettid));
    pki_io_rests();
}

/* The number of the round before which they were read. */
static uint32_t counts_at_rest(pki_io_counts *counts)
{
    uint64_t all[PKI_COUNT_OF(own.counts)];
    uint32_t round = pki_load_acquire(&own.round); /* pairs with pki_io_rests */
    for (size_t i = 0; i < PKI_COUNT_OF(all); i++)
        all[i] = pki_load_acquire(&own.counts[i]);
    memcpy(counts, all, sizeof all);
    return round;
}

/* Of perfkit's thread while it is at work; what they were if it has ended. */
static void read_own(pki_io_counts *mine)
{
    char name[64];
    pki_io_counts now;
    size_t bytes;
    snprintf(name, sizeof name, "task/%u/io", pki_load(&own.tid));
    if (read_by(pki_small_file_quiet, name, &now, &bytes))
        *mine = now;
}

/* exact: it has done nothing between the two files. */
static bool read_both(pki_io_counts *counts, bool *exact)
{
    pki_io_counts all, mine, before;
    size_t bytes;
    uint32_t round = counts_at_rest(&mine);
    if (round % 2)
        read_own(&mine);
    before = mine;
    pki_own_reads quiet = pki_small_file_quiet_so_far();
    if (!read_by(pki_small_file_quiet, "io", &all, &bytes))
        return false;
    if (round % 2 || round != pki_load(&own.round))
        read_own(&mine);
    *exact = memcmp(&mine, &before, sizeof mine) == 0;
    *counts = pki_io_more(&all, &mine);
    take_off(counts, &quiet, &x.quiet_before);
    take_off_events(counts); /* of other threads, too: one too many now is read again, or is the
                                next reading's; one too few would be the program's for ever */
    return true;
}

/* On any thread, without a lock: all that the process has done less what perfkit's thread and its
 * readings on the program's threads have. False: it cannot be read. */
static bool pki_io_of_program(pki_io_counts *counts, int tries)
{
    bool exact = false;
    for (int i = 0; i < tries && !exact; i++) {
        if (i)
            sched_yield();
        if (!read_both(counts, &exact))
            return false;
    }
    return true;
}

/* ---- the run ---- */

static bool of_program_by_collector(pki_io_counts *counts)
{
    char name[64];
    pki_io_counts all;
    if (!read_counts("io", &all))
        return false;
    snprintf(name, sizeof name, "task/%u/io", pki_load(&own.tid));
    read_counts(name, &x.own);
    *counts = pki_io_more(&all, &x.own);
    pki_own_reads quiet = pki_small_file_quiet_so_far();
    take_off(counts, &quiet, &x.quiet_before);
    take_off_events(counts);
    return true;
}

/* Who stops the session, or flushes it, reads as the program's threads do. */
static void look(int tries)
{
    pki_io_counts counts;
    bool collector = pki_load(&own.tid) == (uint32_t)syscall(SYS_gettid);
    if (!(collector ? of_program_by_collector(&counts) : pki_io_of_program(&counts, tries)))
        return;
    pki_io_add(&x.account, &counts, pki_monotonic_ns());
    pki_store(&x.known, true);
}

/* All has been opened: from here on what is read and written is the program's. The collector waits:
 * what it read meanwhile would be taken off the first reading, and be the program's for ever. */
static void pki_io_begin(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    memset(&x.account, 0, sizeof x.account);
    if (x.on)
        look(TRIES_AT_FIRST);
    pthread_mutex_unlock(&pki_drain_lock);
}

static pk_status open_io(pki_session *s)
{
    memset(&x, 0, sizeof x);
    pki_store(&own.tid, 0u);
    pki_store(&own.round, 0u);
    for (size_t i = 0; i < PKI_COUNT_OF(own.counts); i++)
        pki_store(&own.counts[i], (uint64_t)0);
    x.on = s->config.costs_io;
    x.quiet_before = pki_small_file_quiet_so_far();
    x.events_before = pki_samplers_reads();
    return PK_OK;
}

static void look_in_time(pki_session *s)
{
    (void)s;
    uint64_t now = x.on && pki_load(&x.known) ? pki_monotonic_ns() : 0;
    if (!now || now < x.next || x.over)
        return;
    x.next = now + PKI_IO_WINDOW;
    look(TRIES);
}

/* Before the backends stop: what they read then is not the program's. */
static void look_last(pki_session *s)
{
    (void)s;
    pthread_mutex_lock(&pki_drain_lock);
    if (x.on && pki_load(&x.known))
        look(TRIES);
    x.over = true; /* the collector may have a round yet */
    pthread_mutex_unlock(&pki_drain_lock);
}

bool pki_io_so_far(pki_io_counts *counts)
{
    *counts = pki_io_more(&x.account.last, &x.account.first);
    return x.on && pki_load(&x.known);
}

/* ---- the report ---- */

/* The kernel counts it only where it is told to (delay accounting), in clock ticks. */
static bool read_blocked(uint32_t tid, uint64_t *blocked)
{
    char name[64], text[1024], on[8];
    long hz = sysconf(_SC_CLK_TCK);
    snprintf(name, sizeof name, "task/%u/stat", tid);
    if (!pki_small_file("/proc/sys/kernel/task_delayacct", on, sizeof on) || *on != '1' ||
        !pki_small_file_in(pki_io_folder, name, text, sizeof text) || hz <= 0)
        return false;
    const char *ticks = pki_proc_stat_field(text, STAT_BLOCKED);
    *blocked = ticks ? strtoull(ticks, NULL, 10) * (uint64_t)(1000000000 / hz) : 0;
    return ticks != NULL;
}

/* Of a thread that has ended it is what it was. */
static void fill_blocked(uint32_t tid, pki_io_summary *out)
{
    out->blocked_known = read_blocked(tid, &x.stepper.blocked) || x.stepper.blocked;
    out->blocked = x.stepper.other_blocked + x.stepper.blocked;
}

static uint64_t io_of(const pki_summary *s, uint32_t tid)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < s->thread_count; i++)
        if (s->threads[i].tid == tid)
            ns += s->threads[i].kinds[PK_IO];
    return ns;
}

static uint64_t io_of_all(const pki_summary *s)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < s->thread_count; i++)
        ns += s->threads[i].kinds[PK_IO];
    return ns;
}

/* Another thread makes the steps from here on: what was exposed stays so (windows are differences).
 * Its own I/O until now was hidden; modulo 2^64, as the sum of both is what counts. */
static void follow_stepper(uint32_t tid, const pki_summary *s)
{
    uint64_t blocked = 0;
    if (x.stepper.tid && x.stepper.tid != tid) {
        read_blocked(tid, &blocked);
        x.stepper.other_exposed += io_of(s, x.stepper.tid) - io_of(s, tid);
        x.stepper.other_blocked += x.stepper.blocked - blocked;
        x.stepper.blocked = blocked;
    }
    x.stepper.tid = tid;
}

static void fill_exposed(uint32_t tid, const pki_summary *s, pki_io_summary *out)
{
    follow_stepper(tid, s);
    out->exposed = x.stepper.other_exposed + io_of(s, tid);
    out->hidden = io_of_all(s) - out->exposed;
}

bool pki_io_summarise(const pki_session *s, pki_summary *out)
{
    pki_io_summary *io = &out->io;
    pki_phases phases = pki_phases_now();
    uint32_t tid = s->stepper_tid ? s->stepper_tid : s->config.world.pid;
    if (!x.on)
        return true;
    io->asked = 1;
    io->why_not =
        strdup(pki_load(&x.known) ? "" : "the kernel does not tell (/proc/self/io cannot be read)");
    pki_io_fill(&x.account, io);
    fill_exposed(tid, out, io);
    fill_blocked(tid, io);
    if (phases.known)
        x.phases = phases;
    io->saves = x.phases.saves;
    io->save_time = x.phases.time[PK_PHASE_CHECKPOINT];
    io->save_bytes = x.phases.save_bytes;
    return io->why_not != NULL;
}

const pki_service pki_service_io = {
    .name = "io",
    .open = open_io,
    .round = look_in_time,
    .halt = look_last,
    .summarise = pki_io_summarise,
};

/* ---- what the process read and wrote in each step, as counters (costs=io) ---- */

#define PKI_IO_STEP_LEAST 1000000u /* ns */
#define PKI_IO_STEP_SHARE 100u

#define IO_STEPS_TRIES 3

/* The first ones as a pki_io_reading has them. */
enum { READ = PKI_IO_READ, STEPS = PKI_IO_FIGURES, COUNTERS };

static pk_counter counters[COUNTERS] = {
    PK_COUNTER("io.read", "bytes"),        PK_COUNTER("io.written", "bytes"),
    PK_COUNTER("io.device_read", "bytes"), PK_COUNTER("io.device_written", "bytes"),
    PK_COUNTER("io.operations", "calls"),  PK_COUNTER("io.steps", "steps")};

/* A thread may be amid a step's end as its session ends. */
static struct {
    uint32_t serial; /* of the session's registry */
    uint32_t ids[COUNTERS];
    uint64_t last;               /* ticks of the last reading; 0: none */
    uint64_t least;              /* ns between two */
    uint64_t recorded[COUNTERS]; /* as of the last one that was recorded, since the process began */
    uint64_t looks;              /* of this session... */
    uint64_t each;               /* ...and what one takes, ns */
} of_steps;

/* What is folded of it, under the fold lock. */
static struct {
    uint64_t at;  /* ticks of the reading that is being put together... */
    unsigned has; /* ...a bit for each that is there */
    pki_io_reading reading;
    pki_io_course course;
} folded;

static void sum_up(const pki_io_counts *c, uint64_t steps, uint64_t all[COUNTERS])
{
    const uint64_t sums[COUNTERS] = {c->read_chars,
                                     c->write_chars,
                                     c->read_device,
                                     c->write_device,
                                     c->read_calls + c->write_calls,
                                     steps};
    memcpy(all, sums, sizeof sums);
}

/* Less than before in anything: perfkit's thread was at work between the two files, or the kernel's
 * counts of one have not met yet. */
static bool falls(const uint64_t all[COUNTERS])
{
    for (int i = 0; i < COUNTERS; i++)
        if (all[i] < pki_load(&of_steps.recorded[i]))
            return true;
    return false;
}

static bool io_steps_look(uint64_t steps, uint64_t all[COUNTERS])
{
    pki_io_counts counts;
    for (int i = 0; i < IO_STEPS_TRIES; i++) {
        if (!pki_io_of_program(&counts, TRIES))
            return false;
        sum_up(&counts, steps, all);
        if (!falls(all))
            break;
    }
    return true;
}

static void record(pki_thread *t, uint64_t now, const uint64_t all[COUNTERS])
{
    uint32_t ids[COUNTERS];
    double values[COUNTERS];
    for (int i = 0; i < COUNTERS; i++) {
        ids[i] = pki_load(&of_steps.ids[i]);
        values[i] = (double)pki_saturating_sub(all[i], pki_load(&of_steps.recorded[i]));
    }
    if (!pki_counters_record(t, ids, values, COUNTERS, now, all[STEPS]))
        return;
    for (int i = 0; i < COUNTERS; i++)
        pki_store(&of_steps.recorded[i], PKI_MAX(all[i], pki_load(&of_steps.recorded[i])));
}

/* One thread at a time: whoever ends a step. */
static void at_step(pki_thread *t, uint64_t now, bool between)
{
    uint64_t last = pki_load(&of_steps.last), all[COUNTERS];
    (void)between;
    if (pki_thread_ns(t, last, pki_not_negative(now - last)) < pki_load(&of_steps.least))
        return;
    pki_store(&of_steps.last, now);
    pki_store(&of_steps.looks, pki_load(&of_steps.looks) + 1);
    if (io_steps_look(pki_load(&t->registry->arena->header->steps), all) &&
        t->registry->serial == pki_load(&of_steps.serial))
        record(t, now, all);
}

/* The first of the session is of all that comes behind its start. */
static bool measure(const pki_session *s)
{
    uint64_t least = UINT64_MAX, all[COUNTERS] = {0};
    for (int i = 0; i < IO_STEPS_TRIES; i++) {
        uint64_t before = pki_monotonic_ns();
        if (!io_steps_look(pki_load(&s->arena->header->steps), all))
            return false;
        least = PKI_MIN(least, pki_monotonic_ns() - before);
    }
    pki_store(&of_steps.each, least);
    pki_store(&of_steps.least, PKI_MAX(least * PKI_IO_STEP_SHARE, PKI_IO_STEP_LEAST));
    pki_store(&of_steps.last, pki_ticks(s->config.monotonic));
    for (int i = 0; i < COUNTERS; i++)
        pki_store(&of_steps.recorded[i], all[i]);
    return true;
}

/* A reading's records come in one piece, and that of its steps is the last. */
static void on_value(pki_fold *fold, const pki_record *r, double value)
{
    uint32_t id = pki_what_id(r->what);
    int i = 0;
    (void)fold;
    while (i < COUNTERS && id != pki_load(&of_steps.ids[i]))
        i++;
    if (i == COUNTERS)
        return;
    if (i == READ) {
        folded.at = r->start;
        folded.has = 0;
    }
    folded.has |= r->start == folded.at ? 1u << i : 0;
    if (i < STEPS)
        folded.reading.values[i] = value;
    else if (folded.has == (1u << COUNTERS) - 1) {
        folded.reading.last = pki_saturating_sub(r->extra, 1);
        folded.reading.steps = (uint64_t)value;
        pki_io_course_add(&folded.course, &folded.reading);
    }
}

/* In the fold of this session. */
static void listen(void)
{
    pki_fold_lock();
    pki_fold_now()->on_value = on_value;
    pki_fold_unlock();
}

static void forget(void)
{
    pki_fold_lock();
    pki_io_course_finish(&folded.course);
    pki_fold_unlock();
    pki_store(&of_steps.each, (uint64_t)0);
    pki_store(&of_steps.looks, (uint64_t)0);
    for (int i = 0; i < COUNTERS; i++)
        pki_store(&of_steps.recorded[i], (uint64_t)0);
}

static bool intern_names(void)
{
    bool all = true;
    for (int i = 0; i < COUNTERS; i++) {
        pki_store(&of_steps.ids[i], pki_counter_id(&counters[i]));
        all &= pki_load(&of_steps.ids[i]) > 0;
    }
    return all;
}

/* Does nothing but forget the session before where costs=io is not asked for. */
static void start_steps(pki_session *s)
{
    forget();
    pki_io_begin();
    pki_store(&of_steps.serial, s->registry->serial);
    if (!s->config.costs_io || !intern_names() || !measure(s))
        return;
    listen();
    pki_registry_lock();
    pki_registry_on_step(s->registry, PKI_AT_STEP_IO, at_step);
    pki_registry_unlock();
}

/* What the parent's collector may have been amid is neither trusted nor freed in the child. Whoever
 * looks for leaks there finds it here. */
static pki_io_course left __attribute__((used));

static void after_fork(void)
{
    left = folded.course;
    memset(&folded, 0, sizeof folded);
}

uint64_t pki_io_steps_least(void)
{
    return pki_load(&of_steps.least);
}

uint64_t pki_io_steps_spent(void)
{
    return pki_load(&of_steps.looks) * pki_load(&of_steps.each);
}

static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    out->io.steps = pki_io_course_summary(&folded.course);
    return true;
}

const pki_service pki_service_io_steps = {
    .name = "io_steps",
    .start = start_steps,
    .summarise = summarise,
    .after_fork = after_fork,
    .spent = pki_io_steps_spent,
};
