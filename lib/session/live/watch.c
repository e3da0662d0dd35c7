#include "session/live/watch.h"

#include "base/compiler.h"

uint64_t pki_watch_quiet(const pki_watch *w, uint64_t now)
{
    return pki_saturating_sub(now, w->since);
}

uint64_t pki_watch_limit(const pki_watch *w, const pki_watch_input *s)
{
    return s->limit ? s->limit : PKI_MAX(w->hang, PKI_WATCH_USUAL * s->usual);
}

/* Of the time since the last look only two periods and a second count: a thread may be late. */
static void forget_absence(pki_watch *w, uint64_t now)
{
    uint64_t passed = now - w->last, most = 2 * w->period + 1000000000;
    if (passed > most)
        w->since += passed - most;
    w->last = now;
}

static bool is_hang(const pki_watch *w, const pki_watch_input *s)
{
    uint64_t quiet = pki_watch_quiet(w, s->now);
    if (!s->any || s->excused)
        return false;
    if (s->limit) /* of this call: what ended before it does not make it shorter */
        quiet = PKI_MIN(quiet, pki_saturating_sub(s->now, s->since));
    return quiet >= pki_watch_limit(w, s);
}

pki_watch_event pki_watch_update(pki_watch *w, const pki_watch_input *s)
{
    if (!w->begun || s->ended != w->ended) {
        bool was_raised = w->raised;
        w->ended = s->ended;
        w->since = w->last = s->now;
        w->begun = true;
        w->raised = false;
        return was_raised ? PKI_WATCH_GOES_ON : PKI_WATCH_NOTHING;
    }
    forget_absence(w, s->now);
    if (w->raised || !is_hang(w, s))
        return PKI_WATCH_NOTHING;
    w->raised = true;
    return PKI_WATCH_HANG;
}
