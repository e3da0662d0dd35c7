/* lib/measure/shape_comm.c - what communication in a summary consists of. */
#include "measure/shape_words.h"

#include "comm/model/operation.h"

static const pki_choice operation = {pki_comm_op_name, PK_OP_GROUP + 1, PK_OP_OTHER};

static const pki_member comm_members[] = {
    PLAIN(pki_comm_row, library),
    PLAIN(pki_comm_row, name),
    {HEX(pki_comm_row, id)},
    PLAINS(pki_comm_row, rank, size, calls, bytes, time, exposed, on_stream, enqueued, started,
           completed, under_way, in_flight, busy, waited),
};
static const pki_shape comm = {SHAPE(pki_comm_row, comm_members)};

static const pki_member way_members[] = {
    PLAINS(pki_comm_way, algorithm, protocol, calls, channels),
};
static const pki_shape way = {SHAPE(pki_comm_way, way_members)};

static const pki_member collective_members[] = {
    PLAIN_AS("communicator", pki_operation_row, comm),
    {CHOICE("operation", pki_operation_row, op, operation)},
    PLAINS(pki_operation_row, size, bytes, exposed),
    {OBJECT(pki_operation_row, time, pki_dist_shape)},
    {OPTIONAL(pki_operation_row, algbw, pki_dist_shape)},
    {OPTIONAL(pki_operation_row, busbw, pki_dist_shape)},
    {ROWS("algorithms", pki_operation_row, ways, way_count, way), .optional = true},
};
static const pki_shape collective = {SHAPE(pki_operation_row, collective_members)};

static const pki_member comm_region_members[] = {
    PLAIN(pki_comm_region_row, region),
    PLAIN_AS("communicator", pki_comm_region_row, comm),
    {CHOICE("operation", pki_comm_region_row, op, operation)},
    PLAINS(pki_comm_region_row, bytes, exposed),
    {OBJECT(pki_comm_region_row, time, pki_dist_shape)},
};
static const pki_shape comm_region = {SHAPE(pki_comm_region_row, comm_region_members)};

static const pki_member call_members[] = {
    PLAIN(pki_comm_call_row, region),
    PLAIN_AS("communicator", pki_comm_call_row, comm),
    {CHOICE("operation", pki_comm_call_row, op, operation)},
    PLAINS(pki_comm_call_row, bytes, sequence, in_step, step, start, duration, exposed),
};
static const pki_shape comm_call = {SHAPE(pki_comm_call_row, call_members)};

static const pki_member partner_members[] = {
    PLAINS(pki_partner_row, rank, sent, sent_bytes, sent_time, received, received_bytes,
           received_time),
};
static const pki_shape partner = {SHAPE(pki_partner_row, partner_members)};

static const pki_member sequence_members[] = {
    PLAINS(pki_sequence_row, key, start, duration, waited, bytes, op, ranks, partner),
};
static const pki_shape sequence = {SHAPE(pki_sequence_row, sequence_members)};

static const pki_member sequences_members[] = {
    PLAINS(pki_sequences, operations, one_in, origin, clock),
    {TABLE("rows", pki_sequences, rows, row_count, sequence)},
};
static const pki_shape sequences = {SHAPE(pki_sequences, sequences_members)};

#define COMM_ROWS(name, m, n, of)                                                                  \
    ROWS(name, pki_comm_summary, m, n, of), .line = true, .lines = true

static const pki_member comms_members[] = {
    PLAIN(pki_comm_summary, unmeasured),
    {COMM_ROWS("communicators", comms, comm_count, comm)},
    {COMM_ROWS("collectives", collectives, collective_count, collective)},
    {COMM_ROWS("regions", regions, region_count, comm_region)},
    {COMM_ROWS("slowest", slowest, slowest_count, comm_call)},
    {TABLE("partners", pki_comm_summary, partners, partner_count, partner)},
    {OPTIONAL(pki_comm_summary, sequences, sequences)},
};
const pki_shape pki_comm_shape = {SHAPE(pki_comm_summary, comms_members)};
