/* tools/rebuild/event_comm.c - operations on communicators, from a trace's events. */
#include "rebuild/event.h"

#include <string.h>

#include "core/comms.h"

static uint64_t number(json_t *object, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(object, key));
    return n > 0 ? (uint64_t)n : 0;
}

static const char *text(json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static uint32_t at_most_32(uint64_t n)
{
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

void event_read_comm(event *e, json_t *value)
{
    event_comm *c = &e->comm;
    json_t *rank = json_object_get(e->args, "Rank");
    c->id = number(value, "id");
    c->op = json_string_value(json_object_get(e->args, "Collective name"));
    if (!c->op)
        return;
    c->name = text(e->args, "Process Group Name");
    c->library = text(e->args, "Process Group Description");
    c->sequence = number(e->args, "Seq");
    c->exposed = number(e->args, "exposed_ns");
    c->ranks = at_most_32(number(e->args, "Group size"));
    c->in_flight = at_most_32(number(e->args, "in flight"));
    c->in_flight += c->in_flight == 0;
    const char *timed = text(e->args, PKI_COMM_TIMED);
    c->unrated = *timed && strcmp(timed, PKI_COMM_BY_KERNEL) != 0;
    c->unfinished = number(e->args, "unfinished") > 0;
    c->rank = json_is_integer(rank) ? (int32_t)json_integer_value(rank) : -1;
}
