#include "session/captures/capture_queue.h"

#include <string.h>

#include "session/activity.h"

#define DEVICE_PATIENCE_NS 3000000000u /* for kernels of its steps */

/* Where a wish begins in the history. */
static uint64_t begin_of(const pki_history_view *view, const pki_wish *wish)
{
    const pki_history_step *step =
        pki_capture_is_of_now(wish->reason) ? NULL : pki_history_find(view, wish->first);
    return step ? PKI_MAX(step->at, view->head->first) : view->head->first;
}

/* When its last step ended, or now: all that there is. */
static uint64_t end_of(const pki_session *s, const pki_history_view *view, const pki_wish *wish)
{
    const pki_history_step *step = pki_history_find(view, wish->last);
    return step ? pki_clock_ns(&s->arena->header->clock, step->start + step->ticks)
                : pki_activity_ns(pki_monotonic_ns());
}

void pki_capture_queue_due(const pki_session *s, pki_waiting_capture *w, unsigned rounds_later)
{
    pki_history_view view;
    if (!pki_history_view_now(s->history, &view))
        return;
    w->due = pki_history_rounds(s->history) + rounds_later;
    w->end = end_of(s, &view, &w->wish);
    w->latest = pki_monotonic_ns() + (rounds_later ? DEVICE_PATIENCE_NS : 0);
    w->pin = PKI_MIN(w->pin, begin_of(&view, &w->wish));
}

bool pki_capture_queue_is_ready(const pki_session *s, const pki_waiting_capture *w)
{
    bool devices = w->end <= pki_activity_known_until() || pki_monotonic_ns() >= w->latest;
    return w->due && w->due <= pki_history_rounds(s->history) && devices;
}

/* ---- the queue ---- */

uint64_t pki_capture_queue_pin(const pki_capture_queue *q)
{
    uint64_t first = PKI_HISTORY_FREE;
    for (unsigned i = 0; i < q->count; i++)
        first = PKI_MIN(first, q->waiting[i].pin);
    return first;
}

void pki_capture_queue_remove(pki_capture_queue *q, unsigned i)
{
    memmove(&q->waiting[i], &q->waiting[i + 1], (--q->count - i) * sizeof *q->waiting);
}

/* Slow steps in a row, as one. */
static bool merge(pki_capture_queue *q, const pki_wish *wish)
{
    for (unsigned i = 0; i < q->count; i++) {
        if (!pki_wish_merge(&q->waiting[i].wish, wish))
            continue;
        q->waiting[i].due = 0;
        return true;
    }
    return false;
}

static unsigned least_worth(const pki_capture_queue *q)
{
    unsigned least = 0;
    for (unsigned i = 1; i < q->count; i++)
        if (q->waiting[i].wish.worth < q->waiting[least].wish.worth)
            least = i;
    return least;
}

bool pki_capture_queue_add(pki_capture_queue *q, const pki_wish *wish, pki_wish *refused)
{
    bool full = q->count == PKI_CAPTURES_WAITING;
    if (merge(q, wish))
        return true;
    if (full) {
        unsigned least = least_worth(q);
        *refused = *wish;
        if (q->waiting[least].wish.worth >= wish->worth)
            return false;
        *refused = q->waiting[least].wish;
        pki_capture_queue_remove(q, least);
    }
    q->waiting[q->count++] = (pki_waiting_capture){.wish = *wish, .pin = PKI_HISTORY_FREE};
    return !full;
}

bool pki_capture_queue_pop(pki_capture_queue *q, const pki_session *s, pki_waiting_capture *taken)
{
    unsigned best = q->count;
    for (unsigned i = 0; i < q->count; i++)
        if (pki_capture_queue_is_ready(s, &q->waiting[i]) &&
            (best == q->count || q->waiting[i].wish.worth > q->waiting[best].wish.worth))
            best = i;
    if (best == q->count)
        return false;
    *taken = q->waiting[best];
    pki_capture_queue_remove(q, best);
    return true;
}
