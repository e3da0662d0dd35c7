#include "core/frames.h"

#include <errno.h>
#include <time.h>

#include "base/log.h"
#include "comm/model/communicator.h"
#include "core/events.h"
#include "core/mirror.h"
#include "core/registry.h"
#include "core/ring.h"
#include "core/thin.h"
#include "core/thread.h"

/* ---- where the calling thread is, for libraries that count for it ---- */

/* A call that is counted and not timed has no frame; it lies in the one that is innermost. */
static uint32_t untimed_in(const pki_thread *t, uint64_t state, const pki_frame *top)
{
    uint32_t open = pki_load(&t->untimed_open);
    const pki_untimed *u = &t->untimed[open ? open - 1 : 0];
    bool inside = open && u->place == (uint32_t)state && u->start == pki_load(&top->start);
    return inside ? u->id : 0;
}

uint32_t pki_innermost_region(void)
{
    const pki_thread *t = pki_own;
    uint64_t state = pki_load(&t->state);
    if ((uint32_t)state < PKI_FRAME_OFFSET(0) || pki_load(&t->ended))
        return 0;
    const pki_frame *top = &t->frames[pki_depth_in(state)];
    uint32_t id = (uint32_t)state < PKI_FRAME_OFFSET(1) ? 0 : pki_load(&top->id) & PKI_FRAME_ID;
    if (PKI_UNLIKELY(pki_load(&t->untimed_open))) {
        uint32_t untimed = untimed_in(t, state, top);
        id = untimed ? untimed : id;
    }
    return id;
}

/* ---- is this thread within a call of ours that waits for locks? ---- */

static _Thread_local bool inside_inside;

bool pki_inside_enter(void)
{
    if (inside_inside || pki_is_amid())
        return false;
    inside_inside = true;
    pki_compiler_fence();
    return true;
}

void pki_inside_leave(void)
{
    pki_compiler_fence();
    inside_inside = false;
}

pk_status pki_fail_inside(void)
{
    return pki_fail_unheard(PK_EBUSY,
                            "a signal handler made this call amid another one of perfkit's");
}

bool pki_lock_within(pthread_mutex_t *mutex, uint64_t ns)
{
    const struct timespec pause = {0, 200000};
    uint64_t until = pki_monotonic_ns() + ns;
    int saved = errno;
    bool locked;
    while (!(locked = pthread_mutex_trylock(mutex) == 0) && pki_monotonic_ns() < until)
        nanosleep(&pause, NULL);
    errno = saved;
    return locked;
}

/* ---- what a thread has open, seen by another one of its process ---- */

#define TRIES 100

static unsigned depth_in(uint64_t state)
{
    return (uint32_t)state < PKI_FRAME_OFFSET(0) ? 0 : pki_depth_in(state);
}

static void copy(const pki_thread *t, unsigned depth, pki_open_frames *look)
{
    look->depth = depth;
    for (unsigned d = 0; d < depth; d++) {
        look->open[d].start = pki_load(&t->frames[d + 1].start);
        look->open[d].id = pki_load(&t->frames[d + 1].id) & PKI_FRAME_ID;
    }
}

/* Twice the same, with the same state around: a ring that is full pops frames and leaves the place
 * of the next record, so the state alone would not tell that one has come and gone. */
static bool is_same(const pki_open_frames *a, const pki_open_frames *b)
{
    if (a->depth != b->depth)
        return false;
    for (unsigned d = 0; d < a->depth; d++)
        if (a->open[d].start != b->open[d].start || a->open[d].id != b->open[d].id)
            return false;
    return true;
}

bool pki_open_frames_of(const pki_thread *t, pki_open_frames *look)
{
    pki_open_frames again;
    for (int i = 0; i < TRIES; i++) {
        uint64_t state = pki_thread_seen(t); /* acquires what the owner released with it */
        copy(t, depth_in(state), look);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        bool stayed = pki_thread_seen(t) == state;
        copy(t, depth_in(state), &again);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (stayed && pki_thread_seen(t) == state && is_same(look, &again))
            return true;
    }
    look->depth = 0;
    return false;
}
