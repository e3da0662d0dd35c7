#include "core/phase.h"

#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "core/join.h"

#define DEEPEST 8
#define WAITING 256       /* ended parts; the collector takes them within 500 ms */
#define PATIENCE 1000000u /* looks at the lock: some ms */

static struct {
    uint32_t lock;
    uint64_t gave_up; /* outside the lock, which they had no luck with */
    pki_phases now;
    unsigned depth;
    uint32_t stack[DEEPEST];
    size_t waiting;
    pki_phase_part parts[WAITING];
} x = {.now.saved = -1};

static bool lock(void)
{
    for (unsigned i = 0; i < PATIENCE; i++)
        if (!pki_load(&x.lock) && pki_exchange_acquire(&x.lock, 1u) == 0) /* pairs with unlock */
            return true;
    pki_fetch_add(&x.gave_up, 1);
    return false;
}

static void unlock(void)
{
    pki_store_release(&x.lock, 0u); /* pairs with the exchange in lock */
}

/* The part that runs ends here; what is open then begins another one. */
static void turn(uint64_t at)
{
    if (x.now.open && at > x.now.since) {
        x.now.time[x.now.open] += at - x.now.since;
        if (x.waiting < WAITING)
            x.parts[x.waiting++] = (pki_phase_part){x.now.since, at, x.now.open};
        else
            x.now.missed++;
    }
    x.now.open = x.depth ? x.stack[x.depth - 1] : 0;
    x.now.since = at;
}

static void begin(uint32_t phase, uint64_t at)
{
    x.now.count[phase]++;
    if (x.depth == DEEPEST)
        return;
    x.stack[x.depth++] = phase;
    turn(at);
}

static void end(uint32_t phase, uint64_t at)
{
    unsigned depth = x.depth;
    while (depth && x.stack[depth - 1] != phase)
        depth--;
    if (!depth)
        return;
    x.depth = depth - 1;
    turn(at);
}

static void announce(void (*what)(uint32_t, uint64_t), pk_phase phase)
{
    uint64_t now;
    if ((unsigned)phase - 1u >= PKI_PHASES - 1u || !pki_enter())
        return;
    now = pki_monotonic_ns();
    if (lock()) {
        what((uint32_t)phase, now);
        unlock();
    }
    pki_leave();
}

void pk_phase_begin_on_(pk_phase phase)
{
    announce(begin, phase);
}

void pk_phase_end_on_(pk_phase phase)
{
    announce(end, phase);
}

void pk_checkpoint_done_on_(uint64_t step, uint64_t bytes)
{
    if (!pki_enter())
        return;
    if (lock()) {
        x.now.saves++;
        x.now.save_bytes += bytes;
        x.now.saved = step > INT64_MAX ? INT64_MAX : (int64_t)step;
        unlock();
    }
    pki_leave();
}

void pk_training_set_step_on_(uint64_t step)
{
    if (!pki_enter())
        return;
    pki_thread *t = pki_thread_join();
    if (t && lock()) {
        x.now.training_at = step;
        x.now.training_index = pki_load(&t->registry->arena->header->steps);
        x.now.training_calls++;
        unlock();
    }
    pki_leave();
}

void pki_phases_reset(void)
{
    memset(&x, 0, sizeof x);
    x.now.saved = -1;
}

pki_phases pki_phases_now(void)
{
    pki_phases now = {.saved = -1};
    if (lock()) {
        now = x.now;
        now.missed += pki_load(&x.gave_up);
        now.known = true;
        unlock();
    }
    return now;
}

size_t pki_phases_drain(pki_phase_part *out, size_t most)
{
    size_t n = 0;
    if (!lock())
        return 0;
    n = x.waiting < most ? x.waiting : most;
    memcpy(out, x.parts, n * sizeof *out);
    x.waiting -= n;
    memmove(x.parts, x.parts + n, x.waiting * sizeof *out);
    unlock();
    return n;
}

void pki_phases_after_fork(void)
{
    pki_phases_reset();
}
