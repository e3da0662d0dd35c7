#include "comm/live/progress.h"

#include <string.h>

#include "comm/model/communicator.h"
#include "out/chrome/events.h"
#include "session/activity.h"
#include "session/trace/output.h"

#define SPANS (PKI_COMMS_MAX / PKI_COMMS_IN_SPAN + 1)

static pki_comms_span *spans[SPANS];
static uint64_t since[PKI_COMMS_MAX]; /* when it has changed last, ns of the session */
static bool reported[PKI_COMMS_MAX];  /* that it stands still */

void pki_progress_reset(void)
{
    if (spans[0]) { /* else none was looked at, and no page of these is touched */
        memset(spans, 0, sizeof spans);
        memset(since, 0, sizeof since);
        memset(reported, 0, sizeof reported);
    }
    pki_comms_forget_ends();
}

/* They are a list, in order. */
static pki_comms_span *add_span(pki_arena *arena, uint32_t i)
{
    pki_comms_span *span = pki_arena_claim(arena, sizeof *span);
    if (!span)
        return NULL;
    uint64_t *link = i ? &spans[i - 1]->next : &arena->header->comms;
    pki_store_release(link, pki_arena_offset(arena, span));
    return spans[i] = span;
}

static pki_comms_entry *entry_of(pki_session *s, uint32_t index)
{
    uint32_t i = index / PKI_COMMS_IN_SPAN;
    if (!spans[i] && (i == 0 || spans[i - 1]))
        add_span(s->arena, i);
    return spans[i] ? &spans[i]->entries[index % PKI_COMMS_IN_SPAN] : NULL;
}

static bool is_same(const pki_comms_entry *a, const pki_comms_entry *b)
{
    return a->enqueued == b->enqueued && a->started == b->started && a->completed == b->completed &&
           a->under_way == b->under_way;
}

static void write_stall(pki_session *s, const pki_comms_entry *e, uint64_t ns)
{
    if (pki_output_room(s))
        pki_output_wrote(s, pki_chrome_progress(&s->chrome, s->buffer + s->pending.buffered, ns, e),
                         0);
}

static void check_communicator(pki_session *s, const pk_comm *c, uint64_t now)
{
    pki_comms_entry is = pki_comm_progress(c), *was = entry_of(s, c->index);
    if (!was)
        return;
    if (!was->name || !is_same(was, &is)) {
        *was = is;
        since[c->index] = now;
        reported[c->index] = false;
        return;
    }
    if (reported[c->index] || !is.under_way || now - since[c->index] < PKI_PROGRESS_STALL_NS)
        return;
    reported[c->index] = true;
    write_stall(s, &is, now);
}

void pki_progress_round(pki_session *s)
{
    const pk_comm *c = pki_comm_at(0);
    uint64_t now = c ? pki_activity_ns_of_ticks(pki_activity_ticks()) : 0;
    for (uint32_t i = 0; i < PKI_COMMS_MAX && (c = pki_comm_at(i)); i++)
        if (pki_comm_enqueued(c))
            check_communicator(s, c, now);
    c = pki_comm_at(PKI_COMMS_MAX - 1); /* shared by those that are too many: after a gap */
    if (c && pki_comm_enqueued(c))
        check_communicator(s, c, now);
}
