/* lib/out/report/json_comm.c - communicators and what was done on them. */
#include <inttypes.h>

#include "core/comms.h"
#include "out/report/json_parts.h"

/* As text: readers of JSON make doubles of large numbers. */
static void put_id(pki_json *j, uint64_t id)
{
    char text[17];
    snprintf(text, sizeof text, "%" PRIx64, id);
    pki_json_text(j, "id", text);
}

static void put_comm(pki_json *j, const pki_comm_row *c)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "library", c->library);
    pki_json_text(j, "name", c->name);
    put_id(j, c->id);
    pki_json_int(j, "rank", c->rank);
    pki_json_int(j, "size", c->size);
    pki_json_uint(j, "calls", c->calls);
    pki_json_uint(j, "bytes", c->bytes);
    pki_json_uint(j, "time", c->time);
    pki_json_uint(j, "exposed", c->exposed);
    pki_json_uint(j, "enqueued", c->enqueued);
    pki_json_uint(j, "started", c->started);
    pki_json_uint(j, "completed", c->completed);
    pki_json_uint(j, "in_flight", c->in_flight);
    pki_json_close(j, '}');
}

static void put_collective(pki_json *j, const pki_collective_row *r)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_uint(j, "communicator", r->comm);
    pki_json_text(j, "operation", pki_comm_op_name(r->op));
    pki_json_uint(j, "size", r->size);
    pki_json_uint(j, "bytes", r->bytes);
    pki_json_uint(j, "exposed", r->exposed);
    pki_report_json_dist(j, "time", &r->time);
    if (r->algbw.count)
        pki_report_json_dist(j, "algbw", &r->algbw);
    if (r->busbw.count)
        pki_report_json_dist(j, "busbw", &r->busbw);
    pki_json_close(j, '}');
}

static void put_region(pki_json *j, const pki_comm_region_row *r)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "region", r->region);
    pki_json_uint(j, "communicator", r->comm);
    pki_json_text(j, "operation", pki_comm_op_name(r->op));
    pki_json_uint(j, "bytes", r->bytes);
    pki_json_uint(j, "exposed", r->exposed);
    pki_report_json_dist(j, "time", &r->time);
    pki_json_close(j, '}');
}

static void put_call(pki_json *j, const pki_comm_call_row *r)
{
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "region", r->region);
    pki_json_uint(j, "communicator", r->comm);
    pki_json_text(j, "operation", pki_comm_op_name(r->op));
    pki_json_uint(j, "bytes", r->bytes);
    pki_json_uint(j, "sequence", r->sequence);
    pki_json_uint(j, "start", r->start);
    pki_json_uint(j, "duration", r->duration);
    pki_json_uint(j, "exposed", r->exposed);
    pki_json_close(j, '}');
}

void pki_report_json_comm(pki_json *j, const pki_comm_summary *s)
{
    pki_json_row(j);
    pki_json_open(j, "comm", '{');
    pki_json_uint(j, "unmeasured", s->unmeasured);
    PKI_REPORT_ROWS(j, "communicators", s->comms, s->comm_count, put_comm);
    PKI_REPORT_ROWS(j, "collectives", s->collectives, s->collective_count, put_collective);
    PKI_REPORT_ROWS(j, "regions", s->regions, s->region_count, put_region);
    PKI_REPORT_ROWS(j, "slowest", s->slowest, s->slowest_count, put_call);
    pki_json_close(j, '}');
}
