/* lib/core/step.c - the end of a training step, as records.
 *
 * Who folds the ring knows the self time of every call that has ended in the step. The rest is told
 * here: calls that found no room, and regions that are open across the step's end, an outer
 * "training" say, whose self time so far belongs to this step; it is credited then and taken off
 * the region's at its end, as if it were a child's.
 */
#include <pk/private.h>
#include <pk/step.h>

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/files.h"
#include "core/join.h"
#include "core/names.h"
#include "core/overhead.h"
#include "core/ready.h"
#include "core/registry.h"
#include "core/seats.h"

/* ---- when it was ready to run and had no processor ---- */

/* Where the calling thread is. PKI_SEAT_UNKNOWN: the system does not tell. */
static uint32_t pki_seat_now(void)
{
    int before = errno, processor = sched_getcpu();
    errno = before;
    return processor < 0 ? PKI_SEAT_UNKNOWN : (uint32_t)processor;
}

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
    r->own = r->away = r->mine = r->off = r->switches = 0;
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
        r->away += PKI_MIN(off, r->mine);
        r->unread = true;
    }
    read_if_due(r, t, now);
    r->checked = now;
    r->mine = 0;
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

/* Ends a step of this thread: what of it was so (pki_ready_pack); PKI_READY_UNKNOWN where nobody
 * announces borders. seat: where it was. */
static uint64_t pki_ready_step(pki_ready *r, const pki_thread *t, pki_seat *seat)
{
    uint64_t own = PKI_READY_UNKNOWN;
    *seat = 0;
    if (pki_exchange_acquire(&r->busy, 1u))
        return own;
    if (pki_load(&r->of) == t)
        close_stretch(r, t, true);
    if (pki_load(&r->of) == t) {
        own = pki_ready_pack(r->own, r->away);
        r->own = r->away = 0;
    } else {
        pki_store(&r->of, NULL); /* of another thread: the next border of this one begins anew */
    }
    *seat = read_seat(r);
    pki_store_release(&r->busy, 0u);
    return own;
}

/* ---- the step's end ---- */

/* False if the ring has no room for it. */
static bool push_part(pki_thread *t, uint64_t now, uint64_t what, uint64_t ns, uint64_t lost)
{
    pki_record r = {now, ns, what, lost};
    if (!ns)
        return true;
    if (!pki_push(t, &r, 1, 0))
        return false;
    pki_bump(&t->others, 1);
    return true;
}

static bool push_open_regions(pki_thread *t, uint64_t now)
{
    uint64_t inner = now; /* where the region inside began */
    bool pushed = true;
    for (unsigned depth = pki_depth_in(pki_load(&t->state)); depth > 0; depth--) {
        const pki_frame *f = &t->frames[depth];
        pushed &= push_part(t, now, PKI_WHAT(f->id & PKI_FRAME_ID, PKI_RECORD_STEP_OPEN, depth),
                            pki_thread_ns(t, f->start, pki_not_negative(inner - f->start)),
                            t->lost_inside[depth]);
        inner = f->start;
    }
    return pushed;
}

static bool push_lost_calls(pki_thread *t, uint64_t now)
{
    bool pushed = !t->starved || !t->lost_since_step;
    for (pki_slot *s = t->lost.first; s && t->lost_since_step; s = pki_table_next(s)) {
        pushed &=
            push_part(t, now, PKI_WHAT(s->id, PKI_RECORD_STEP_SELF, 0), s->self - s->self_mark, 0);
        s->self_mark = s->self;
    }
    t->lost_since_step = 0;
    return pushed;
}

/* The step's duration counts whether or not its record finds room. */
static void count_dropped_step(pki_thread *t, uint64_t start, uint64_t ticks)
{
    pki_slot *slot = pki_lost_slot(t, PKI_NAME_STEP);
    if (slot->id == PKI_NAME_STEP)
        pki_table_count(&t->registry->arena->spans, &t->lost, slot, pki_thread_ns(t, start, ticks));
}

/* What ends here: a step, or the time between two, which belongs to none. */
typedef struct part {
    unsigned flags; /* PKI_FLAG_BETWEEN */
    uint64_t items;
    uint32_t kind; /* a name's id; 0: the usual one */
    double model, hardware;
} part;

static void call_listeners(pki_registry *r, pki_thread *t, uint64_t now, bool between)
{
    for (int i = 0; i < PKI_AT_STEPS; i++) {
        pki_at_step *at_step = pki_load_acquire(&r->at_step[i]);
        if (at_step)
            at_step(t, now, between);
    }
}

static void end_part(pki_registry *r, pki_thread *t, const part *p)
{
    pki_seat seat;
    uint64_t no_processor = pki_ready_step(&r->ready, t, &seat);
    uint64_t now = pki_ticks(t->monotonic), *made = &r->arena->header->steps;
    uint64_t start = r->step_start, ticks = pki_not_negative(now - start);
    const pki_thread *before = pki_load(&r->stepper);
    bool same_thread = before == t || !r->stepped, between = p->flags & PKI_FLAG_BETWEEN;
    pki_store_release(&t->steps, t->steps + 1);
    bool open_pushed = push_open_regions(t, now);
    bool lost_pushed = push_lost_calls(t, now);
    unsigned unknown = same_thread && open_pushed && lost_pushed ? 0 : PKI_FLAG_UNKNOWN;
    pki_record step[2] = {
        {start, ticks, PKI_WHAT(PKI_NAME_STEP, PKI_RECORD_STEP, 0) | PKI_FLAGS(unknown | p->flags),
         no_processor},
        {*made, p->items, pki_float_bits(p->hardware) | PKI_STEP_SEAT(seat),
         p->kind | (uint64_t)pki_float_bits(p->model) << 32}};
    bool pushed = pki_push_point(t, step, 2);
    if (!pushed && !between)
        count_dropped_step(t, start, ticks);
    bool complete =
        pushed && open_pushed; /* else the next one's self times are those of two steps */
    pki_store(&r->stepper, complete ? t : NULL);
    r->stepped = true;
    r->step_start = now;
    pki_store(&r->arena->header->live.step_ticks, now);
    if (!between)
        pki_bump(made, 1);
    call_listeners(r, t, now, between);
}

/* Operations that the float of a record still holds. */
#define FLOPS_MOST 1e38

/* Any thread may add while another one takes. */
static void add_double(uint64_t *bits, double more)
{
    uint64_t before = pki_load(bits), after;
    double sum;
    do {
        memcpy(&sum, &before, sizeof sum);
        sum = sum + more < FLOPS_MOST ? sum + more : FLOPS_MOST;
        memcpy(&after, &sum, sizeof after);
    } while (!__atomic_compare_exchange_n(bits, &before, after, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
}

static double fetch_and_clear(uint64_t *bits)
{
    uint64_t was = pki_load(bits) ? __atomic_exchange_n(bits, 0, __ATOMIC_RELAXED) : 0;
    double value;
    memcpy(&value, &was, sizeof value);
    return value;
}

static void end_step(pki_registry *r, pki_thread *t, const void *items)
{
    const part step = {.items = *(const uint64_t *)items,
                       .kind = pki_load(&r->step_kind),
                       .model = fetch_and_clear(&r->step_model),
                       .hardware = fetch_and_clear(&r->step_hardware)};
    end_part(r, t, &step);
    pki_store(&r->step_kind, 0u);
}

static void end_between(pki_registry *r, pki_thread *t, const void *none)
{
    const part between = {.flags = PKI_FLAG_BETWEEN};
    (void)none;
    end_part(r, t, &between);
}

/* Another thread's may be under way: this one is dropped, and counted if it is a step. */
static void with_steps(void (*act)(pki_registry *, pki_thread *, const void *), const void *what)
{
    pki_thread *t = pki_thread_join();
    if (!t) {
        pki_registry_refuse_point();
        return;
    }
    pki_registry *r = t->registry;
    if (pki_exchange_acquire(&r->stepping, 1u) == 0) { /* pairs with the release below */
        act(r, t, what);
        pki_store_release(&r->stepping, 0u);
    } else {
        pki_fetch_add(&r->steps_missed, 1);
    }
}

static void record(void (*act)(pki_registry *, pki_thread *, const void *), const void *what)
{
    if (!pki_enter()) {
        pki_registry_refuse_point();
        return;
    }
    with_steps(act, what);
    pki_leave();
}

void pk_step_on_(uint64_t items)
{
    record(end_step, &items);
}

void pk_step_begin_on_(void)
{
    record(end_between, NULL);
}

void pk_step_kind_on_(const char *kind)
{
    if (!pki_enter())
        return;
    pki_thread *t = pki_thread_join();
    if (t)
        pki_store(&t->registry->step_kind,
                  kind && *kind ? pki_name_internal(kind, "", 0) : (uint32_t)0);
    pki_leave();
}

void pk_step_number_(uint64_t number)
{
    if (!pki_enter())
        return;
    pki_thread *t = pki_thread_join();
    if (t && !pki_load(&t->registry->arena->header->steps)) {
        pki_store(&t->registry->first_step, number);
        pki_store(&t->registry->arena->header->steps, number);
    }
    pki_leave();
}

static bool is_number(double flops)
{
    return flops > 0 && flops <= FLOPS_MOST;
}

void pk_step_add_flops_on_(double model, double hardware)
{
    model = is_number(model) ? model : 0;
    hardware = is_number(hardware) ? hardware : model;
    if (hardware == 0 || !pki_enter())
        return;
    pki_thread *t = pki_thread_join();
    if (t && model > 0)
        add_double(&t->registry->step_model, model);
    if (t)
        add_double(&t->registry->step_hardware, hardware);
    pki_leave();
}

double pk_transformer_flops(uint64_t parameters, uint64_t layers, uint64_t heads,
                            uint64_t head_size, uint64_t sequence)
{
    return 6.0 * (double)parameters +
           12.0 * (double)layers * (double)heads * (double)head_size * (double)sequence;
}
