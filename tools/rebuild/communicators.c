/* tools/rebuild/communicators.c - what was done on communicators, as the session would have found
 * it (comm/figures/figures.h). */
#include "rebuild/state.h"

#include "base/compiler.h"
#include "comm/model/communicator.h"
#include "memory.h"

#include <stdio.h>
#include <string.h>

static uint32_t comm_of(rebuild *r, const event_comm *c)
{
    char key[512];
    snprintf(key, sizeof key, "%.200s\x1f%.300s", c->library, c->name);
    if (r->comms.count >= PKI_COMMS_MAX && table_find(&r->comms, key) == TABLE_NONE)
        snprintf(key, sizeof key, "\x1f(too many communicators)");
    uint32_t id = table_add(&r->comms, key);
    memory_fit(&r->comm_facts, &r->comm_room, id + (size_t)1, sizeof *r->comm_facts);
    rebuilt_comm *facts = &r->comm_facts[id];
    facts->rank = c->rank;
    facts->size = (int32_t)PKI_MIN(c->ranks, (uint32_t)INT32_MAX);
    facts->last = PKI_MAX(facts->last, c->sequence);
    facts->under_way -= facts->under_way > 0 && c->sequence && c->sequence <= facts->enqueued;
    return id;
}

static pki_timed_operation read_operation(rebuild *r, const event *e)
{
    return (pki_timed_operation){.comm = comm_of(r, &e->comm),
                                 .ranks = e->comm.ranks,
                                 .region = rebuild_launcher(r, e),
                                 .op = pki_comm_op_named(e->comm.op),
                                 .bytes = e->bytes,
                                 .sequence = e->comm.sequence,
                                 .start = e->start - e->lacks,
                                 .end = e->end,
                                 .exposed = e->comm.exposed,
                                 .in_flight = e->comm.in_flight,
                                 .unrated = e->comm.unrated,
                                 .algorithm = e->comm.algorithm,
                                 .protocol = e->comm.protocol,
                                 .channels = e->comm.channels,
                                 .sharers = e->comm.calls * e->comm.sharers,
                                 .on_stream = e->comm.on_stream};
}

/* perfkit writes the two events of a pair one behind the other. */
static void end_operation(rebuild *r, const event *e)
{
    if (r->begun_id && r->begun_id == e->comm.id) {
        r->begun.end = e->start;
        pki_comm_figures_add(r->collectives, &r->begun);
        r->points++;
    }
    r->begun_id = 0;
}

void rebuild_comm(rebuild *r, const event *e)
{
    if (e->type == EVENT_COMM_END) {
        end_operation(r, e);
        return;
    }
    if (e->type == EVENT_COMM)
        rebuild_activity(r, e);
    if (!e->comm.op || e->comm.unfinished)
        return;
    pki_timed_operation op = read_operation(r, e);
    if (e->type == EVENT_COMM_BEGIN) {
        r->begun = op;
        r->begun.algorithm = r->begun.protocol = NULL; /* the event's */
        r->begun_id = e->comm.id;
    } else {
        if (e->type == EVENT_REGION) /* all of it is waited for */
            op.exposed = op.end - op.start;
        pki_comm_figures_add_calls(r->collectives, &op, e->comm.calls);
    }
}

void rebuild_progress(rebuild *r, const event *e)
{
    uint32_t id = comm_of(r, &e->comm);
    rebuilt_comm *c = &r->comm_facts[id];
    c->enqueued = PKI_MAX(c->enqueued, e->comm.enqueued);
    c->started = PKI_MAX(c->started, e->comm.started);
    c->completed = PKI_MAX(c->completed, e->comm.completed);
    c->under_way = e->comm.under_way;
}

static bool facts_of(void *user, uint32_t comm, pki_comm_facts *facts)
{
    const rebuild *r = user;
    if (comm >= r->comms.count)
        return false;
    const char *text = r->comms.texts[comm], *name = strchr(text, '\x1f');
    static _Thread_local char library[256]; /* until the next call */
    snprintf(library, sizeof library, "%.*s", (int)(name - text), text);
    const rebuilt_comm *c = &r->comm_facts[comm];
    *facts = (pki_comm_facts){.library = library,
                              .name = name + 1,
                              .rank = c->rank,
                              .size = c->size,
                              .enqueued = PKI_MAX(c->last, c->enqueued),
                              .started = PKI_MAX(c->last, c->started),
                              .completed = PKI_MAX(c->last, c->completed),
                              .under_way = c->under_way};
    return true;
}

void rebuild_fill_comms(rebuild *r, pki_summary *out)
{
    memory_needed(
        pki_comm_figures_build_rows(r->collectives, facts_of, rebuild_launcher_name, r, out));
}
