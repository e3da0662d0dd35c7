#include "session/captures/capture_queue.h"

#include <string.h>

#include "base/compiler.h"

#include "session/activity.h"

#define DEVICE_PATIENCE_NS 3000000000u /* for kernels of its steps */

/* ---- what a wish means ---- */

static void keep_figures(pki_waiting_capture *w, const pki_history_step *step)
{
    if (w->around_count == PKI_CAPTURE_AROUND)
        memmove(w->around, w->around + 1, --w->around_count * sizeof *w->around);
    w->around[w->around_count++] = *step;
}

static void note_step(pki_waiting_capture *w, const pki_history_view *view,
                      const pki_history_step *step)
{
    if (step->number > w->wish.last)
        return;
    keep_figures(w, step);
    if (step->number < w->wish.first)
        return;
    if (!w->begun || step->start < w->from) {
        w->begun = true;
        w->number = step->number;
        w->at = step->at;
        w->from = step->start;
        w->pin = PKI_MIN(w->pin, PKI_MAX(step->at, view->head->first));
    }
    w->until = step->start + step->ticks;
}

static const pki_history_step *step_at(const pki_history_view *view, uint64_t n)
{
    return &view->head->steps[n % view->head->step_room];
}

/* What the history holds at that moment: from its oldest step that is kept, or all of it. */
static void begin_now(pki_waiting_capture *w, const pki_history_view *view)
{
    const pki_history_head *h = view->head;
    w->pin = h->first;
    if (h->step_first < h->step_end)
        w->wish.first = step_at(view, h->step_first)->number;
}

static void note_known(pki_waiting_capture *w, const pki_history_view *view)
{
    const pki_history_head *h = view->head;
    uint64_t n = h->step_end - PKI_MIN(h->step_end, (uint64_t)h->step_room);
    w->around_count = 0;
    for (; n < h->step_end; n++)
        note_step(w, view, step_at(view, n));
}

void pki_capture_queue_step(pki_capture_queue *q, const pki_history_view *view)
{
    const pki_history_head *h = view->head;
    for (unsigned i = 0; i < q->count && h->step_end; i++)
        note_step(&q->waiting[i], view, step_at(view, h->step_end - 1));
}

/* ---- when it is due ---- */

/* When its last step ended, or now: all that there is. */
static uint64_t end_of(const pki_session *s, const pki_waiting_capture *w)
{
    return w->until && w->wish.last != UINT64_MAX ? pki_clock_ns(&s->arena->header->clock, w->until)
                                                  : pki_activity_ns(pki_monotonic_ns());
}

void pki_capture_queue_due(const pki_session *s, pki_waiting_capture *w, unsigned rounds_later)
{
    w->due = pki_history_rounds(s->history) + rounds_later;
    w->end = end_of(s, w);
    w->latest = pki_monotonic_ns() + (rounds_later ? DEVICE_PATIENCE_NS : 0);
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
static bool merge(pki_capture_queue *q, const pki_history_view *view, const pki_wish *wish)
{
    for (unsigned i = 0; i < q->count; i++) {
        if (!pki_wish_merge(&q->waiting[i].wish, wish))
            continue;
        q->waiting[i].due = 0;
        note_known(&q->waiting[i], view);
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

static void append(pki_capture_queue *q, const pki_history_view *view, const pki_wish *wish)
{
    pki_waiting_capture *w = &q->waiting[q->count++];
    memset(w, 0, sizeof *w);
    w->wish = *wish;
    w->pin = PKI_HISTORY_FREE;
    if (pki_capture_is_of_now(wish->reason))
        begin_now(w, view);
    note_known(w, view);
}

bool pki_capture_queue_add(pki_capture_queue *q, const pki_history_view *view, const pki_wish *wish,
                           pki_wish *refused)
{
    bool full = q->count == PKI_CAPTURES_WAITING;
    if (merge(q, view, wish))
        return true;
    if (full) {
        unsigned least = least_worth(q);
        *refused = *wish;
        if (q->waiting[least].wish.worth >= wish->worth)
            return false;
        *refused = q->waiting[least].wish;
        pki_capture_queue_remove(q, least);
    }
    append(q, view, wish);
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
