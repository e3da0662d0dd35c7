#include "core/ready.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/files.h"
#include "core/overhead.h"
#include "core/registry.h"

/* Of the time that lies between two reads of the account, a read may take this share. */
#define SHARE 100

/* ns; who has no account is not asked at every border. */
#define RETRY 1000000000u

/* The clocks of a thread and of the machine differ by less than this share. */
#define DRIFT 1000

static bool read_switches(uint64_t *switches)
{
    struct rusage used;
    if (getrusage(RUSAGE_THREAD, &used) != 0)
        return false;
    *switches = (uint64_t)used.ru_nvcsw + (uint64_t)used.ru_nivcsw;
    return true;
}

/* The second number of schedstat. */
static bool read_waited(uint64_t *ns)
{
    char text[128], *end;
    *ns = 0;
    if (!pki_small_file_quiet("/proc/thread-self/schedstat", text, sizeof text))
        return false; /* of a text without a number strtoull may set errno, which is the program's
                       */
    strtoull(text, &end, 10);
    *ns = strtoull(end, NULL, 10);
    return true;
}

static uint64_t since(const pki_thread *t, uint64_t then, uint64_t now)
{
    return pki_thread_ns(t, then, pki_not_negative(now - then));
}

/* How long it had waited by now. False, and of nobody, if that is not to be had. */
static bool read_account(pki_ready *r, const pki_thread *t, uint64_t *waited)
{
    uint64_t began = pki_ticks(t->monotonic);
    bool known = read_waited(waited);
    r->read = pki_ticks(t->monotonic);
    r->pause = PKI_MIN(since(t, began, r->read), PKI_READY_LEAST) * SHARE;
    r->failed = !known;
    r->unread = false;
    pki_store(&r->of, known ? t : NULL);
    return known;
}

static void begin(pki_ready *r, const pki_thread *t)
{
    if (r->failed && since(t, r->read, pki_ticks(t->monotonic)) < RETRY)
        return;
    r->own = r->mine = r->off = r->switches = 0;
    read_switches(&r->switches);
    r->running = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
    read_account(r, t, &r->waited);
    r->border = r->checked = r->asked = r->read;
}

/* Has sat there and here since the last border, half and half: of its own time so long. */
static void note_seat(pki_ready *r, uint64_t own)
{
    uint32_t here = pki_seat_now(), there = r->processor ? r->processor - 1 : here;
    pki_seats_add(&r->seats, there, own - own / 2);
    pki_seats_add(&r->seats, here, own / 2);
    r->processor = here + 1;
}

/* Has it been switched out since that was asked? If so, how long it was off its processor, or a
 * little more. Without a switch it was not. */
static bool was_off(pki_ready *r, const pki_thread *t, uint64_t *off)
{
    uint64_t switches = 0;
    if (read_switches(&switches) && switches && switches == r->switches)
        return false;
    uint64_t now = pki_ticks(t->monotonic), passed = since(t, r->asked, now);
    uint64_t running = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
    *off = pki_saturating_sub(passed + passed / DRIFT, running - r->running);
    if (!switches && *off < PKI_READY_LEAST + passed / DRIFT)
        return false; /* a system that counts none, or there was none so far */
    r->asked = now;
    r->switches = switches;
    r->running = running;
    return true;
}

/* As much of it as can be is of its own time. */
static void read_if_due(pki_ready *r, const pki_thread *t, uint64_t now)
{
    uint64_t waited, before = r->waited;
    if (!r->unread || since(t, r->read, now) < r->pause || !read_account(r, t, &waited))
        return;
    r->own += PKI_MIN(pki_saturating_sub(waited, before), r->off);
    r->waited = waited;
    r->off = 0;
}

/* The stretch that ends here was the program's own time, or it waited. */
static void close_stretch(pki_ready *r, const pki_thread *t, bool own)
{
    uint64_t now = pki_ticks(t->monotonic), mine = own ? since(t, r->border, now) : 0, off;
    note_seat(r, mine);
    r->mine += mine;
    r->border = now;
    if (since(t, r->checked, now) < PKI_READY_LEAST)
        return;
    if (was_off(r, t, &off)) {
        r->off += PKI_MIN(off, r->mine);
        r->unread = true;
    }
    read_if_due(r, t, now);
    r->checked = now;
    r->mine = 0;
}

void pki_ready_forget(pki_ready *r, const pki_thread *t)
{
    const pki_thread *gone = t;
    __atomic_compare_exchange_n(&r->of, &gone, NULL, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void pki_ready_border(pki_ready *r, const pki_thread *t, bool to_wait)
{
    if (pki_exchange_acquire(&r->busy, 1u))
        return; /* a thread that makes steps is amid one */
    const pki_thread *of = pki_load(&r->of);
    if (of == t)
        close_stretch(r, t, to_wait);
    else if (!of && pki_load(&t->steps))
        begin(r, t);
    pki_store_release(&r->busy, 0u);
}

/* Of a step in whose own time it was not looked at: where it is. */
static pki_seat read_seat(pki_ready *r)
{
    if (!r->seats.all)
        note_seat(r, 2);
    pki_seat seat = pki_seats_most(&r->seats);
    r->seats = (pki_seats){0};
    return seat;
}

uint64_t pki_ready_step(pki_ready *r, const pki_thread *t, pki_seat *seat)
{
    uint64_t own = PKI_READY_UNKNOWN;
    *seat = 0;
    if (pki_exchange_acquire(&r->busy, 1u))
        return own;
    if (pki_load(&r->of) == t)
        close_stretch(r, t, true);
    if (pki_load(&r->of) == t) {
        own = r->own;
        r->own = 0;
    } else {
        pki_store(&r->of, NULL); /* of another thread: the next border of this one begins anew */
    }
    *seat = read_seat(r);
    pki_store_release(&r->busy, 0u);
    return own;
}
