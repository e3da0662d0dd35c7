/* tools/load/read_report.c - the report file of docs/internals/report-format.md as a summary: what
 * pki_summary_shape says, in whatever order. */
#include "load/load.h"

#include "read/read_shape.h"

static bool check_schema(json_reader *j, json_t *report)
{
    uint64_t schema = 0;
    json_read_uint(j, report, "schema", &schema);
    if (j->failed)
        return false;
    if (schema == 0)
        return complaint_set(j->why, "is a report without its \"schema\" number");
    if (schema > PKI_REPORT_SCHEMA)
        return complaint_set(
            j->why, "is a report of schema %llu, and this pk reads up to %d: a newer pk can",
            (unsigned long long)schema, PKI_REPORT_SCHEMA);
    return true;
}

/* Rows of a communicator that the file does not have would lead nowhere. */
static void check_comms(json_reader *j, const pki_comm_summary *c)
{
    bool known = true;
    for (size_t i = 0; i < c->collective_count; i++)
        known &= c->collectives[i].comm < c->comm_count;
    for (size_t i = 0; i < c->region_count; i++)
        known &= c->regions[i].comm < c->comm_count;
    for (size_t i = 0; i < c->slowest_count; i++)
        known &= c->slowest[i].comm < c->comm_count;
    if (!j->failed && !known)
        j->failed = !complaint_set(j->why, "has operations on a communicator that is not in it");
}

bool load_report(json_t *report, pki_summary *out, complaint *why)
{
    json_reader j = {.why = why};
    pki_summary_init(out);
    if (!check_schema(&j, report))
        return false;
    read_shape(&j, report, &pki_summary_shape, out);
    out->counts.size = sizeof out->counts;
    check_comms(&j, &out->comm);
    if (!j.failed)
        return true;
    pki_summary_finish(out);
    return false;
}
