#include "session/captures/history.h"

#include <errno.h>

#include "base/log.h"
#include "session/captures/captures.h"

void pki_session_history_open(pki_session *s)
{
    if (!s->config.history_steps)
        return;
    s->history = pki_history_create(s->arena, s->config.history_steps, s->config.history_bytes);
    if (s->history)
        pki_captures_open(s);
    else
        pki_log(PK_LOG_WARNING, "no history of the last steps: %s",
                pki_own_why(s->arena->spans.refused ? s->arena->spans.refused : ENOMEM));
}

void pki_session_history_close(pki_session *s)
{
    pki_captures_forget();
    pki_history_destroy(s->history);
    s->history = NULL;
}

static void note_step(pki_session *s, const pki_record *r, const pki_record *more)
{
    uint32_t kind = (uint32_t)more->extra;
    if (pki_what_flags(r->what) & PKI_FLAG_BETWEEN)
        return; /* time between two steps */
    pki_history_step_ended(s->history, r, more, kind);
    pki_captures_step(s, r, more, kind);
}

void pki_session_history_record(pki_session *s, uint32_t tid, const pki_record *r,
                                const pki_record *more)
{
    if (!s->history)
        return;
    pki_history_record(s->history, tid, r, more);
    if (pki_what_type(r->what) == PKI_RECORD_STEP)
        note_step(s, r, more);
}
