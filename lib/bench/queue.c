#include "bench/queue.h"

#include "base/compiler.h"
#include "bench/case.h"

#include <stdio.h>

static const pki_bench_watchdog *watchdog(const pki_bench_case *c)
{
    return c->engine->watchdog ? c->engine->watchdog : &pki_bench_system_watchdog;
}

/* On the watchdog's thread. */
static void bark(void *case_)
{
    const pki_bench_case *c = case_;
    c->device->release(c->timer);
}

static void note_off(pki_bench_case *c, const char *why)
{
    char text[176];
    snprintf(text, sizeof text, "launches are not queued (%s): gaps between them count", why);
    pki_bench_case_note(c, text);
}

void pki_bench_queue_open(pki_bench_case *c)
{
    pki_bench_queue *q = &c->queue;
    q->most = PKI_BENCH_QUEUED;
    if (c->options.unqueued)
        return;
    const char *why_not = c->device->cannot_hold(c->timer);
    if (!why_not) {
        q->dog = watchdog(c)->open(bark, c);
        why_not = q->dog ? NULL : "no thread for its watchdog";
    }
    q->on = !why_not;
    if (why_not)
        note_off(c, why_not);
}

void pki_bench_queue_close(pki_bench_case *c)
{
    if (c->queue.dog)
        watchdog(c)->close(c->queue.dog);
    c->queue.dog = NULL;
}

bool pki_bench_queue_hold(pki_bench_case *c)
{
    pki_bench_queue *q = &c->queue;
    bool hold = q->on && q->loaded;
    q->loaded = true;
    q->forced = false;
    if (!hold)
        return true;
    q->held = c->device->hold(c->timer);
    if (q->held) /* behind it, so that a bark never comes before what it is to undo */
        watchdog(c)->set(q->dog, PKI_BENCH_HOLD);
    return q->held;
}

void pki_bench_queue_release(pki_bench_case *c, uint64_t iterations)
{
    pki_bench_queue *q = &c->queue;
    if (!q->held)
        return;
    q->held = false;
    q->forced = watchdog(c)->call_off(q->dog);
    c->device->release(c->timer);
    if (!q->forced)
        q->fits = PKI_MAX(q->fits, iterations);
}

void pki_bench_queue_disable(pki_bench_case *c)
{
    if (!c->queue.on)
        return;
    c->queue.on = false;
    c->queue.waits = true;
    note_off(c, "its body waits for the device, or launches more than a queue takes");
}

void pki_bench_queue_shorten(pki_bench_case *c, uint64_t iterations)
{
    if (iterations <= 1) {
        pki_bench_queue_disable(c);
        return;
    }
    c->queue.most = PKI_MAX(PKI_MIN(c->queue.fits, iterations - 1), 1);
    c->iterations = PKI_MIN(c->iterations, c->queue.most);
}
