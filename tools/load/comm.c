/* tools/load/comm.c - the report file's "comm". */
#include "load/parts.h"

#include "core/comms.h"

#include <stdlib.h>
#include <string.h>

/* An operation that a later version may know and this one does not is PK_COMM_OTHER. */
static void read_op(json_reader *j, json_t *row, uint32_t *op)
{
    char *name = NULL;
    json_read_text(j, row, "operation", &name);
    *op = 0;
    while (*op < PK_COMM_OTHER && (!name || strcmp(name, pki_comm_op_name(*op)) != 0))
        ++*op;
    free(name);
}

static void read_index(json_reader *j, json_t *row, size_t *index)
{
    uint64_t n = 0;
    json_read_uint(j, row, "communicator", &n);
    *index = (size_t)n;
}

static void read_id(json_reader *j, json_t *row, uint64_t *id)
{
    char *text = NULL;
    json_read_text(j, row, "id", &text);
    *id = text ? strtoull(text, NULL, 16) : 0;
    free(text);
}

static void read_comm(json_reader *j, json_t *from, void *row)
{
    pki_comm_row *c = row;
    json_read_text(j, from, "library", &c->library);
    json_read_text(j, from, "name", &c->name);
    read_id(j, from, &c->id);
    json_read_i32(j, from, "rank", &c->rank);
    json_read_i32(j, from, "size", &c->size);
    json_read_uint(j, from, "calls", &c->calls);
    json_read_uint(j, from, "bytes", &c->bytes);
    json_read_uint(j, from, "time", &c->time);
    json_read_uint(j, from, "exposed", &c->exposed);
    json_read_uint(j, from, "enqueued", &c->enqueued);
    json_read_uint(j, from, "started", &c->started);
    json_read_uint(j, from, "completed", &c->completed);
    json_read_u32(j, from, "in_flight", &c->in_flight);
}

static void read_collective(json_reader *j, json_t *from, void *row)
{
    pki_collective_row *r = row;
    read_index(j, from, &r->comm);
    read_op(j, from, &r->op);
    json_read_uint(j, from, "size", &r->size);
    json_read_uint(j, from, "bytes", &r->bytes);
    json_read_uint(j, from, "exposed", &r->exposed);
    load_dist(j, from, "time", &r->time);
    load_dist(j, from, "algbw", &r->algbw);
    load_dist(j, from, "busbw", &r->busbw);
}

static void read_region(json_reader *j, json_t *from, void *row)
{
    pki_comm_region_row *r = row;
    json_read_text(j, from, "region", &r->region);
    read_index(j, from, &r->comm);
    read_op(j, from, &r->op);
    json_read_uint(j, from, "bytes", &r->bytes);
    json_read_uint(j, from, "exposed", &r->exposed);
    load_dist(j, from, "time", &r->time);
}

static void read_call(json_reader *j, json_t *from, void *row)
{
    pki_comm_call_row *r = row;
    json_read_text(j, from, "region", &r->region);
    read_index(j, from, &r->comm);
    read_op(j, from, &r->op);
    json_read_uint(j, from, "bytes", &r->bytes);
    json_read_uint(j, from, "sequence", &r->sequence);
    json_read_uint(j, from, "start", &r->start);
    json_read_uint(j, from, "duration", &r->duration);
    json_read_uint(j, from, "exposed", &r->exposed);
}

/* Rows of a communicator that the file does not have would lead nowhere. */
static bool all_known(const pki_comm_summary *c)
{
    bool known = true;
    for (size_t i = 0; i < c->collective_count; i++)
        known &= c->collectives[i].comm < c->comm_count;
    for (size_t i = 0; i < c->region_count; i++)
        known &= c->regions[i].comm < c->comm_count;
    for (size_t i = 0; i < c->slowest_count; i++)
        known &= c->slowest[i].comm < c->comm_count;
    return known;
}

void load_comm(json_reader *j, json_t *from, pki_comm_summary *c)
{
    json_read_uint(j, from, "unmeasured", &c->unmeasured);
    json_read_rows(j, from, "communicators", sizeof *c->comms, read_comm, &c->comms,
                   &c->comm_count);
    json_read_rows(j, from, "collectives", sizeof *c->collectives, read_collective, &c->collectives,
                   &c->collective_count);
    json_read_rows(j, from, "regions", sizeof *c->regions, read_region, &c->regions,
                   &c->region_count);
    json_read_rows(j, from, "slowest", sizeof *c->slowest, read_call, &c->slowest,
                   &c->slowest_count);
    if (!j->failed && !all_known(c)) {
        complaint_set(j->why, "has operations on a communicator that is not in it");
        j->failed = true;
    }
}
