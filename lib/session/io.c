#include "session/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "base/small_file.h"
#include "core/phase.h"
#include "measure/costs/io.h"

#define STAT_BLOCKED 42 /* the field of /proc/PID/stat: clock ticks that it waited for disks */

const char *pki_io_folder = "/proc/self";

static struct {
    bool on, known;
    pki_io_account account;
    pki_io_counts own; /* of the collector's thread, as of the last look */
    uint64_t next;
    pki_phases phases; /* the last time that they were known */
    struct {
        uint32_t tid;
        uint64_t other_exposed, other_blocked; /* by those that made steps before it */
        uint64_t blocked;
    } stepper;
} x;

static uint32_t collector; /* its thread, as it has said itself; 0: none, or not yet */

static bool read_counts(const char *name, pki_io_counts *counts)
{
    char text[512];
    return pki_small_file_in(pki_io_folder, name, text, sizeof text) && pki_io_parse(text, counts);
}

static void look(void)
{
    char name[64];
    uint32_t thread = pki_load(&collector);
    pki_io_counts all, more;
    if (!read_counts("io", &all))
        return;
    snprintf(name, sizeof name, "task/%u/io", thread);
    if (thread)
        read_counts(name, &x.own); /* what it was if it has ended */
    more = pki_io_more(&all, &x.own);
    pki_io_add(&x.account, &more, pki_monotonic_ns());
    x.known = true;
}

void pki_io_on_collector(void)
{
    pki_store(&collector, (uint32_t)syscall(SYS_gettid));
}

void pki_io_begin(pki_session *s)
{
    memset(&x, 0, sizeof x);
    pki_store(&collector, 0u);
    x.on = s->config.costs_io;
    if (x.on)
        look();
}

void pki_io_round(pki_session *s)
{
    (void)s;
    uint64_t now = x.on && x.known ? pki_monotonic_ns() : 0;
    if (!now || now < x.next)
        return;
    x.next = now + PKI_IO_WINDOW;
    look();
}

void pki_io_end(pki_session *s)
{
    (void)s;
    if (x.on && x.known)
        look();
}

bool pki_io_so_far(pki_io_counts *counts)
{
    *counts = pki_io_more(&x.account.last, &x.account.first);
    return x.on && x.known;
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
    io->why_not = strdup(x.known ? "" : "the kernel does not tell (/proc/self/io cannot be read)");
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
