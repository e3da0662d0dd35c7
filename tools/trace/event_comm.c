/* tools/trace/event_comm.c - operations on communicators, from a trace's events. */
#include "trace/event.h"

#include <string.h>

#include "comm/model/communicator.h"

static uint64_t number(object o, const char *key)
{
    int64_t n = object_integer(o, key);
    return n > 0 ? (uint64_t)n : 0;
}

static uint32_t at_most_32(uint64_t n)
{
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

#define SHARERS_MOST 65536 /* of a file that may say anything */

static uint32_t sharers(object args, const char *key)
{
    uint32_t n = at_most_32(number(args, key));
    return n == 0 ? 1 : n < SHARERS_MOST ? n : SHARERS_MOST;
}

/* A rank or a tag. */
static int32_t number_or_none(object args, const char *key)
{
    member v = object_get(args, key);
    bool fits = v.type == VALUE_INTEGER && v.integer >= 0 && v.integer <= INT32_MAX;
    return fits ? (int32_t)v.integer : -1;
}

static int32_t read_peer(object args)
{
    static const char *const keys[] = {"Dst Rank", "Src Rank", "Root"};
    int32_t peer = -1;
    for (size_t i = 0; peer < 0 && i < sizeof keys / sizeof *keys; i++)
        peer = number_or_none(args, keys[i]);
    return peer;
}

static void read_who(event *e)
{
    event_comm *c = &e->comm;
    member rank = object_get(e->args, "Rank");
    c->name = object_text(e->args, "Process Group Name");
    c->library = object_text(e->args, "Process Group Description");
    c->ranks = at_most_32(number(e->args, "Group size"));
    c->rank = rank.type == VALUE_INTEGER ? (int32_t)rank.integer : -1;
}

void event_read_progress(event *e)
{
    read_who(e);
    e->comm.enqueued = number(e->args, "enqueued");
    e->comm.started = number(e->args, "started");
    e->comm.completed = number(e->args, "completed");
    e->comm.under_way = number(e->args, "under way");
}

void event_read_comm(event *e, object o)
{
    event_comm *c = &e->comm;
    c->id = number(o, "id");
    c->op = object_get(e->args, "Collective name").text;
    if (!c->op)
        return;
    read_who(e);
    c->peer = read_peer(e->args);
    c->tag = number_or_none(e->args, "Tag");
    c->sequence = number(e->args, "Seq");
    c->exposed = number(e->args, "exposed_ns");
    c->in_flight = at_most_32(number(e->args, "in flight"));
    c->in_flight += c->in_flight == 0;
    c->calls = sharers(e->args, PKI_COMM_CALLS);
    c->sharers = sharers(e->args, PKI_COMM_SHARERS);
    const char *timed = object_text(e->args, PKI_COMM_TIMED);
    c->on_stream = strcmp(timed, PKI_COMM_BY_STREAM) == 0;
    c->unrated = *timed && !c->on_stream && strcmp(timed, PKI_COMM_BY_KERNEL) != 0;
    c->algorithm = object_text(e->args, "algorithm");
    c->protocol = object_text(e->args, "protocol");
    c->channels = at_most_32(number(e->args, "channels"));
    c->unfinished = number(e->args, "unfinished") > 0;
}
