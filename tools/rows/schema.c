/* tools/rows/schema.c - the tables and their columns: names, where they lie, and what stands in a
 * cell */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "out/emit.h"
#include "rows/rows.h"

/* ---- the tables and their columns: names, and where they lie ---- */

#define AT(type, member) offsetof(type, member)
#define OF_FILE                                                                                    \
    {"file", "number of the file on the command line, from 1", FORM_FILE, 0, 0},                   \
    {                                                                                              \
        "rank", "rank of the process in its job", FORM_RANK, 0, 0                                  \
    }
#define TIMES                                                                                      \
    {"start_ns", "since the start of its run", FORM_U64, 0, 0}, {"end_ns", "", FORM_END, 0, 0},    \
        {"duration_ns", "", FORM_KNOWN, 0, 8}, {"duration_us", "", FORM_US, 0, 8},                 \
        {"start_unix_ns", "since 1970, by the host's clock", FORM_UNIX, 0, 0},                     \
    {                                                                                              \
        "step", "the step in which it began", FORM_STEP, 0, 0                                      \
    }
#define MOMENT                                                                                     \
    {"time_ns", "since the start of its run", FORM_U64, 0, 0},                                     \
        {"time_unix_ns", "since 1970, by the host's clock", FORM_UNIX, 0, 0},                      \
    {                                                                                              \
        "step", "the step in which it was", FORM_STEP, 0, 0                                        \
    }

static const rows_column files[] = {
    {"file", "its number on the command line, from 1", FORM_FILE, 0, 0},
    {"path", "", FORM_NAME, 0, AT(file_row, path)},
    {"rank", "", FORM_RANK, 0, 0},
    {"ranks", "processes in the job", FORM_I32, 0, AT(file_row, ranks)},
    {"host", "", FORM_NAME, 0, AT(file_row, host)},
    {"pid", "", FORM_U32, 0, AT(file_row, pid)},
    {"program", "", FORM_NAME, 0, AT(file_row, program)},
    {"start_unix_ns", "the moment of start_ns 0, since 1970", FORM_COUNT, 0,
     AT(file_row, start_unix)},
    {"complete", "1: the run ended with pk_stop", FORM_BOOL, 0, AT(file_row, complete)},
    {"cut", "1: the file ends amid its events", FORM_BOOL, 0, AT(file_row, cut)},
    {"events", "that were read; NULL: it is a report", FORM_COUNT, 0, AT(file_row, events)},
    {"perfkit", "version that wrote it; NULL: others", FORM_NAME, 0, AT(file_row, version)},
};

static const rows_column steps[] = {
    OF_FILE,
    {"step", "its index, from 0", FORM_U64, 0, AT(step_row, step)},
    {"start_ns", "since the start of its run", FORM_U64, 0, 0},
    {"end_ns", "", FORM_END, 0, 0},
    {"duration_ns", "", FORM_U64, 0, 8},
    {"duration_us", "", FORM_US, 0, 8},
    {"start_unix_ns", "since 1970, by the host's clock", FORM_UNIX, 0, 0},
    {"items", "as given to pk_step", FORM_U64, 0, AT(step_row, items)},
    {"thread", "that called pk_step", FORM_U32, 0, AT(step_row, thread)},
    {"warmup", "1: recognised as warm-up", FORM_BOOL, 0, AT(step_row, warmup)},
    {"kind", "as given to pk_step_kind; \"\": the usual one", FORM_NAME, 0, AT(step_row, kind)},
};

static const rows_column regions[] = {
    OF_FILE,
    {"name", "", FORM_TEXT, 0, AT(pki_region_row, name)},
    {"kind", "compute, data, comm, io, wait or other", FORM_KIND, 0, AT(pki_region_row, kind)},
    {"calls", "", FORM_U64, 0, AT(pki_region_row, time.count)},
    {"total_ns", "", FORM_WHOLE, 0, AT(pki_region_row, time.sum)},
    {"self_ns", "without the regions inside", FORM_U64, 0, AT(pki_region_row, self)},
    {"mean_ns", "of a call", FORM_REAL, 0, AT(pki_region_row, time.mean)},
    {"stddev_ns", "", FORM_REAL, 0, AT(pki_region_row, time.stddev)},
    {"min_ns", "", FORM_REAL, 0, AT(pki_region_row, time.min)},
    {"p50_ns", "within 1 %, as all percentiles here", FORM_REAL, 0, AT(pki_region_row, time.p50)},
    {"p90_ns", "", FORM_REAL, 0, AT(pki_region_row, time.p90)},
    {"p95_ns", "", FORM_REAL, 0, AT(pki_region_row, time.p95)},
    {"p99_ns", "", FORM_REAL, 0, AT(pki_region_row, time.p99)},
    {"max_ns", "", FORM_REAL, 0, AT(pki_region_row, time.max)},
    {"step_share", "self time as a share of the steady steps", FORM_REAL, 0,
     AT(pki_region_row, step_share)},
    {"bytes", "", FORM_COUNT, 0, AT(pki_region_row, bytes)},
    {"flops", "", FORM_COUNT, 0, AT(pki_region_row, flops)},
    {"spans", "on GPU streams", FORM_COUNT, 0, AT(pki_region_row, gpu.count)},
    {"span_ns", "", FORM_SOME, 0, AT(pki_region_row, gpu.sum)},
    {"kernels", "launched in it", FORM_COUNT, 0, AT(pki_region_row, kernels.count)},
    {"kernel_ns", "", FORM_SOME, 0, AT(pki_region_row, kernels.sum)},
};

static const rows_column calls[] = {
    OF_FILE,
    {"id", "of the call, over all files", FORM_ID, 0, 0},
    {"parent", "id of the call around it", FORM_PARENT, 2, AT(call_nest, parent)},
    {"depth", "0: in no other", FORM_U32, 2, AT(call_nest, depth)},
    {"thread", "the kernel's number of it", FORM_TRACK, 0, AT(call_row, track)},
    {"name", "of the region", FORM_REGION, 0, AT(call_row, region)},
    {"kind", "compute, data, comm, io, wait or other", FORM_REGION_KIND, 0, AT(call_row, region)},
    TIMES,
    {"self_ns", "without the calls inside", FORM_U64, 2, AT(call_nest, self)},
    {"bytes", "", FORM_COUNT, 1, AT(call_work, bytes)},
    {"flops", "", FORM_COUNT, 1, AT(call_work, flops)},
    {"unbalanced", "1: closed by another region's end", FORM_UNBALANCED, 0, AT(call_row, track)},
};

static const rows_column kernels[] = {
    OF_FILE,
    {"device", "its ordinal", FORM_U32, 0, AT(device_row, device)},
    {"stream", "", FORM_U32, 0, AT(device_row, stream)},
    {"name", "", FORM_NAME, 0, AT(device_row, name)},
    TIMES,
    {"region", "that launched it", FORM_NAME, 0, AT(device_row, region)},
    {"correlation", "the same as of its launch", FORM_COUNT, 0, AT(device_row, correlation)},
    {"queued_ns", "when it was handed to the driver", FORM_COUNT, 1, AT(kernel_more, queued)},
    {"registers", "per thread", FORM_U32, 1, AT(kernel_more, registers)},
    {"shared_bytes", "shared memory per block", FORM_U32, 1, AT(kernel_more, shared)},
};

static const rows_column memcpys[] = {
    OF_FILE,
    {"device", "its ordinal", FORM_U32, 0, AT(device_row, device)},
    {"stream", "", FORM_U32, 0, AT(device_row, stream)},
    {"name", "", FORM_NAME, 0, AT(device_row, name)},
    {"direction", "h2d, d2h, d2d, h2h, p2p or set", FORM_NAME, 0, AT(device_row, direction)},
    TIMES,
    {"bytes", "divide by duration_ns for GB/s", FORM_U64, 0, AT(device_row, bytes)},
    {"region", "that asked for it", FORM_NAME, 0, AT(device_row, region)},
    {"correlation", "the same as of its call", FORM_COUNT, 0, AT(device_row, correlation)},
};

static const rows_column collectives[] = {
    OF_FILE,
    {"communicator", "", FORM_NAME, 0, AT(collective_row, communicator)},
    {"library", "MPI, NCCL ...", FORM_NAME, 0, AT(collective_row, library)},
    {"operation", "all_reduce ...", FORM_NAME, 0, AT(collective_row, operation)},
    {"name", "of the region or event", FORM_NAME, 0, AT(collective_row, name)},
    {"sequence",
     "from 1, on its communicator: the same on all its ranks for the same collective of MPI, if "
     "perfkit was started at the same place of the program; of NCCL, whose messages are counted "
     "along, if all ranks sent and received equally often",
     FORM_COUNT, 0, AT(collective_row, sequence)},
    {"ranks", "in the communicator", FORM_U32, 0, AT(collective_row, ranks)},
    {"root", "its rank in the communicator", FORM_I32, 0, AT(collective_row, peer)},
    TIMES,
    {"bytes", "as given to the call", FORM_U64, 0, AT(collective_row, bytes)},
    {"dtype", "of the elements", FORM_NAME, 0, AT(collective_row, type)},
    {"calls", "alike that this row is of: of a group, else 1", FORM_U32, 0,
     AT(collective_row, calls)},
    {"exposed_ns", "that the program waited; NULL: unknown", FORM_KNOWN, 0,
     AT(collective_row, exposed)},
    {"algbw_gbps", "algorithm bandwidth, 10^9 bytes/s", FORM_REAL, 0, AT(collective_row, algbw)},
    {"busbw_gbps", "bus bandwidth, as nccl-tests count it", FORM_REAL, 0,
     AT(collective_row, busbw)},
    {"in_flight", "on its communicator, this one included", FORM_U32, 0,
     AT(collective_row, in_flight)},
    {"algorithm", "", FORM_NAME, 0, AT(collective_row, algorithm)},
    {"protocol", "", FORM_NAME, 0, AT(collective_row, protocol)},
    {"region", "around the call", FORM_NAME, 0, AT(collective_row, region)},
};

static const rows_column messages[] = {
    OF_FILE,
    {"communicator", "", FORM_NAME, 0, AT(collective_row, communicator)},
    {"library", "MPI, NCCL ...", FORM_NAME, 0, AT(collective_row, library)},
    {"operation", "send, recv or send_recv (of which this is the send)", FORM_NAME, 0,
     AT(collective_row, operation)},
    {"name", "of the region or event", FORM_NAME, 0, AT(collective_row, name)},
    {"peer", "rank in the communicator that it goes to or comes from", FORM_I32, 0,
     AT(collective_row, peer)},
    {"tag", "NULL: it has none", FORM_I32, 0, AT(collective_row, tag)},
    {"sequence", "from 1, on its communicator and this rank: no other rank's is meant to match",
     FORM_COUNT, 0, AT(collective_row, sequence)},
    {"ranks", "in the communicator", FORM_U32, 0, AT(collective_row, ranks)},
    TIMES,
    {"bytes", "of a receive those that came", FORM_U64, 0, AT(collective_row, bytes)},
    {"dtype", "of the elements", FORM_NAME, 0, AT(collective_row, type)},
    {"calls", "alike that this row is of: of a group, else 1", FORM_U32, 0,
     AT(collective_row, calls)},
    {"exposed_ns", "that the program waited; NULL: unknown", FORM_KNOWN, 0,
     AT(collective_row, exposed)},
    {"gbps", "bytes by duration, 10^9 bytes/s", FORM_REAL, 0, AT(collective_row, algbw)},
    {"in_flight", "on its communicator, this one included", FORM_U32, 0,
     AT(collective_row, in_flight)},
    {"region", "around the call", FORM_NAME, 0, AT(collective_row, region)},
};

static const rows_column counters[] = {
    OF_FILE,
    {"name", "", FORM_NAME, 0, AT(counter_row, name)},
    {"unit", "", FORM_NAME, 0, AT(counter_row, unit)},
    MOMENT,
    {"value", "", FORM_REAL, 0, AT(counter_row, value)},
    {"thread", "that set it", FORM_U32, 0, AT(counter_row, thread)},
};

static const rows_column marks[] = {
    OF_FILE,
    {"name", "", FORM_NAME, 0, AT(mark_row, name)},
    MOMENT,
    {"thread", "", FORM_U32, 0, AT(mark_row, thread)},
};

static const rows_column notes[] = {
    OF_FILE,
    {"name", "of the region", FORM_REGION, 0, AT(note_row, region)},
    TIMES,
    {"key", "the note's, or the variant's", FORM_NAME, 0, AT(note_row, key)},
    {"value", "", FORM_BITS, 0, AT(note_row, value)},
    {"string", "", FORM_NAME, 0, AT(note_row, words)},
    {"thread", "", FORM_U32, 0, AT(note_row, thread)},
};

static const rows_column activities[] = {
    OF_FILE,
    {"kind", "span (on a stream), runtime, driver, sync, overhead or range", FORM_NAME, 0,
     AT(activity_row, kind)},
    {"name", "", FORM_NAME, 0, AT(activity_row, name)},
    {"track", "of the viewer", FORM_TRACK_NAME, 0, AT(activity_row, track)},
    {"device", "", FORM_U32, 0, AT(activity_row, device)},
    TIMES,
    {"region", "that asked for it", FORM_NAME, 0, AT(activity_row, region)},
    {"correlation", "the same as of what it launched", FORM_COUNT, 0,
     AT(activity_row, correlation)},
};

static const rows_column spans[] = {
    OF_FILE,
    {"span", "perfkit's number of it", FORM_U64, 0, AT(span_row, span)},
    {"id", "the program's; from 2^63 on less 2^64", FORM_BITS, 0, AT(span_row, id)},
    {"name", "of the region", FORM_REGION, 0, AT(span_row, region)},
    {"kind", "compute, data, comm, io, wait or other", FORM_REGION_KIND, 0, AT(span_row, region)},
    {"thread", "that began it", FORM_U32, 0, AT(span_row, thread)},
    {"end_thread", "that ended it; NULL: it was open as the file ended", FORM_U32, 0,
     AT(span_row, end_thread)},
    TIMES,
};

static const rows_column span_marks[] = {
    OF_FILE,
    {"span", "that it is of", FORM_U64, 0, AT(span_mark_row, span)},
    {"name", "of the region", FORM_REGION, 0, AT(span_mark_row, region)},
    {"kind", "compute, data, comm, io, wait or other", FORM_REGION_KIND, 0,
     AT(span_mark_row, region)},
    {"thread", "", FORM_U32, 0, AT(span_mark_row, thread)},
    MOMENT,
    {"since_ns", "since the mark before it, or the beginning", FORM_U64, 0,
     AT(span_mark_row, since)},
};

static const rows_column requests[] = {
    OF_FILE,
    {"span", "perfkit's number of it, as in spans", FORM_U64, 0, AT(request_row, span)},
    {"id", "the program's; NULL: it began before the file", FORM_BITS, 0, AT(request_row, id)},
    {"name", "of the region", FORM_REGION, 0, AT(request_row, region)},
    TIMES,
    {"outcome", "finished, cancelled or failed", FORM_NAME, 0, AT(request_row, outcome)},
    {"good", "1: finished within the limits", FORM_BOOL, 0, AT(request_row, good)},
    {"tokens", "", FORM_U64, 0, AT(request_row, tokens)},
    {"preemptions", "", FORM_U64, 0, AT(request_row, preemptions)},
    {"first_step", "that it rode in", FORM_U64, 0, AT(request_row, first_step)},
    {"steps", "so many", FORM_U64, 0, AT(request_row, steps)},
    {"ttft_ns", "time to first token; NULL: there was none", FORM_COUNT, 0, AT(request_row, ttft)},
    {"tpot_ns", "time per output token; NULL: fewer than two", FORM_REAL, 0, AT(request_row, tpot)},
    {"queued_ns", "what its time went to (pk/request.h) ...", FORM_U64, 0, AT(request_row, queued)},
    {"preempted_ns", "", FORM_U64, 0, AT(request_row, preempted)},
    {"prefill_ns", "", FORM_U64, 0, AT(request_row, prefill)},
    {"crowded_ns", "", FORM_U64, 0, AT(request_row, crowded)},
    {"decode_ns", "", FORM_U64, 0, AT(request_row, decode)},
    {"behind_ns", "... these six sum up to it", FORM_U64, 0, AT(request_row, behind)},
};

static const rows_column threads[] = {
    OF_FILE,
    {"thread", "the kernel's number of it", FORM_U32, 0, AT(pki_thread_row, tid)},
    {"name", "", FORM_TEXT, 0, AT(pki_thread_row, name)},
    {"recorded", "regions", FORM_U64, 0, AT(pki_thread_row, recorded)},
    {"dropped", "regions", FORM_U64, 0, AT(pki_thread_row, dropped)},
    {"compute_ns", "self time of its regions, by kind", FORM_U64, 0,
     AT(pki_thread_row, kinds[PK_COMPUTE])},
    {"data_ns", "", FORM_U64, 0, AT(pki_thread_row, kinds[PK_DATA])},
    {"comm_ns", "", FORM_U64, 0, AT(pki_thread_row, kinds[PK_COMM])},
    {"io_ns", "", FORM_U64, 0, AT(pki_thread_row, kinds[PK_IO])},
    {"wait_ns", "", FORM_U64, 0, AT(pki_thread_row, kinds[PK_WAIT])},
    {"other_ns", "", FORM_U64, 0, AT(pki_thread_row, kinds[PK_OTHER])},
};

static const rows_column devices[] = {
    OF_FILE,
    {"device", "its ordinal", FORM_U32, 0, AT(pki_gpu_row, device)},
    {"measured", "1: by CUPTI; 0: by stream spans", FORM_BOOL, 0, AT(pki_gpu_row, measured)},
    {"streams", "", FORM_U64, 0, AT(pki_gpu_row, streams)},
    {"kernels", "in the whole run, as the next ones", FORM_U64, 0, AT(pki_gpu_row, kernels)},
    {"kernel_ns", "", FORM_U64, 0, AT(pki_gpu_row, kernel_time)},
    {"short_kernels", "of less than 10 us", FORM_U64, 0, AT(pki_gpu_row, short_kernels)},
    {"h2d_bytes", "", FORM_U64, 0, AT(pki_gpu_row, copies[PKI_H2D].bytes)},
    {"d2h_bytes", "", FORM_U64, 0, AT(pki_gpu_row, copies[PKI_D2H].bytes)},
    {"d2d_bytes", "", FORM_U64, 0, AT(pki_gpu_row, copies[PKI_D2D].bytes)},
    {"p2p_bytes", "", FORM_U64, 0, AT(pki_gpu_row, copies[PKI_P2P].bytes)},
    {"step_ns", "mean of the steady steps, as the next ones", FORM_REAL, 0,
     AT(pki_gpu_row, per_step[PKI_GPU_STEP].mean)},
    {"busy_ns", "", FORM_REAL, 0, AT(pki_gpu_row, per_step[PKI_GPU_BUSY].mean)},
    {"idle_ns", "", FORM_REAL, 0, AT(pki_gpu_row, per_step[PKI_GPU_IDLE].mean)},
    {"launch_gaps_ns", "", FORM_REAL, 0, AT(pki_gpu_row, per_step[PKI_GPU_LAUNCH_GAPS].mean)},
    {"sync_gaps_ns", "", FORM_REAL, 0, AT(pki_gpu_row, per_step[PKI_GPU_SYNC_GAPS].mean)},
    {"memory_bytes", "in use at the steps' ends", FORM_REAL, 0,
     AT(pki_gpu_row, per_step[PKI_GPU_MEMORY].mean)},
};

static const rows_column verdicts[] = {
    OF_FILE,
    {"name", "input-bound ... (docs/internals/report-format.md)", FORM_NAME, 0,
     AT(verdict_row, name)},
    {"severity", "good, note or warning", FORM_NAME, 0, AT(verdict_row, severity)},
    {"value", "what was compared ...", FORM_REAL, 0, AT(verdict_row, value)},
    {"threshold", "... with what", FORM_REAL, 0, AT(verdict_row, threshold)},
    {"text", "", FORM_NAME, 0, AT(verdict_row, text)},
};

#define COLUMNS(of) .columns = of, .count = PKI_COUNT_OF(of)

static const rows_about tables[ROWS_TABLES] = {
    [ROWS_FILES] = {"files", "the files that were given", COLUMNS(files)},
    [ROWS_STEPS] = {"steps", "each step; of a report, its series", COLUMNS(steps)},
    [ROWS_REGIONS] = {"regions", "each region, with dropped calls too", COLUMNS(regions)},
    [ROWS_CALLS] = {"calls", "each recorded call of a region", COLUMNS(calls)},
    [ROWS_KERNELS] = {"kernels", "each kernel that CUPTI measured", COLUMNS(kernels)},
    [ROWS_MEMCPYS] = {"memcpys", "each copy and memset on a device", COLUMNS(memcpys)},
    [ROWS_COLLECTIVES] = {"collectives", "each collective of a communicator", COLUMNS(collectives)},
    [ROWS_MESSAGES] = {"messages", "each message that a rank sent or received", COLUMNS(messages)},
    [ROWS_COUNTERS] = {"counters", "each sample", COLUMNS(counters)},
    [ROWS_MARKS] = {"marks", "each moment that was marked", COLUMNS(marks)},
    [ROWS_NOTES] = {"notes", "what is noted of calls, each an argument of one", COLUMNS(notes)},
    [ROWS_ACTIVITIES] = {"activities", "what else devices and libraries did", COLUMNS(activities)},
    [ROWS_SPANS] = {"spans", "each pk_span that began, requests too", COLUMNS(spans)},
    [ROWS_SPAN_MARKS] = {"span_marks", "each mark of a pk_span", COLUMNS(span_marks)},
    [ROWS_REQUESTS] = {"requests", "each request that has ended", COLUMNS(requests)},
    [ROWS_THREADS] = {"threads", "each thread that recorded", COLUMNS(threads)},
    [ROWS_DEVICES] = {"devices", "each GPU", COLUMNS(devices)},
    [ROWS_VERDICTS] = {"verdicts", "what the report says", COLUMNS(verdicts)},
};

const rows_about *rows_about_table(rows_table of)
{
    return &tables[of];
}

cell_type rows_column_type(const rows_column *column)
{
    switch (column->form) {
    case FORM_NAME:
    case FORM_TEXT:
    case FORM_KIND:
    case FORM_REGION:
    case FORM_REGION_KIND:
    case FORM_TRACK_NAME:
        return CELL_TEXT;
    case FORM_REAL:
    case FORM_US:
        return CELL_REAL;
    default:
        return CELL_INTEGER;
    }
}

void rows_write_sql(rows_table of, const char *name, char sql[ROWS_SQL])
{
    static const char *const types[] = {
        [CELL_INTEGER] = "INTEGER", [CELL_REAL] = "REAL", [CELL_TEXT] = "TEXT"};
    const rows_about *about = rows_about_table(of);
    size_t used = (size_t)snprintf(sql, ROWS_SQL, "CREATE TABLE %s(", name);
    for (size_t i = 0; i < about->count; i++)
        used += (size_t)snprintf(sql + used, ROWS_SQL - used, "%s %s%s", about->columns[i].name,
                                 types[rows_column_type(&about->columns[i])],
                                 i + 1 < about->count ? ", " : ")");
}

const size_t rows_widths[ROWS_TABLES][ROWS_PARTS] = {
    [ROWS_FILES] = {sizeof(file_row)},
    [ROWS_STEPS] = {sizeof(step_row)},
    [ROWS_REGIONS] = {sizeof(pki_region_row)},
    [ROWS_CALLS] = {sizeof(call_row), sizeof(call_work), sizeof(call_nest)},
    [ROWS_KERNELS] = {sizeof(device_row), sizeof(kernel_more)},
    [ROWS_MEMCPYS] = {sizeof(device_row)},
    [ROWS_COLLECTIVES] = {sizeof(collective_row)},
    [ROWS_MESSAGES] = {sizeof(collective_row)},
    [ROWS_COUNTERS] = {sizeof(counter_row)},
    [ROWS_MARKS] = {sizeof(mark_row)},
    [ROWS_NOTES] = {sizeof(note_row)},
    [ROWS_ACTIVITIES] = {sizeof(activity_row)},
    [ROWS_SPANS] = {sizeof(span_row)},
    [ROWS_SPAN_MARKS] = {sizeof(span_mark_row)},
    [ROWS_REQUESTS] = {sizeof(request_row)},
    [ROWS_THREADS] = {sizeof(pki_thread_row)},
    [ROWS_DEVICES] = {sizeof(pki_gpu_row)},
    [ROWS_VERDICTS] = {sizeof(verdict_row)},
};

/* ---- what stands in a row's column ---- */

static cell integer(int64_t value)
{
    return (cell){.type = CELL_INTEGER, .integer = value};
}

/* SQL has no number above 2^63 - 1. */
static cell count(uint64_t value)
{
    return integer((int64_t)PKI_MIN(value, (uint64_t)INT64_MAX));
}

static cell real(double value)
{
    return (cell){.type = isfinite(value) ? CELL_REAL : CELL_NULL, .real = value};
}

static cell text(const char *value)
{
    return (cell){.type = value ? CELL_TEXT : CELL_NULL, .text = value};
}

static cell optional(uint32_t value)
{
    return value == ROWS_NONE ? (cell){.type = CELL_NULL} : integer(value);
}

static uint64_t u64_at(const char *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static uint32_t u32_at(const char *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static const rows_region *region_of(const rows *r, uint32_t id)
{
    return rows_at(&r->regions, sizeof(rows_region), id);
}

static const rows_track *track_of(const rows *r, uint32_t id)
{
    return rows_at(&r->tracks, sizeof(rows_track), id & TRACK_MASK);
}

/* ---- where a row belongs ---- */

static size_t file_of(rows *r, rows_table of, size_t row)
{
    size_t *file = &r->memo[of].file, last = r->files.count - 1;
    if (rows_first(r, of, *file) > row)
        *file = 0;
    while (*file < last && rows_first(r, of, *file + 1) <= row)
        ++*file;
    return *file;
}

static const step_row *step_at(const rows *r, size_t i)
{
    return rows_at(&r->parts[ROWS_STEPS][0], sizeof(step_row), i);
}

static bool is_in(const step_row *s, uint64_t moment)
{
    return s->start <= moment && moment - s->start < s->duration;
}

/* The first step of [first, end) that begins after that moment, all being one process's. */
static size_t search(const rows *r, size_t first, size_t end, uint64_t moment)
{
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (step_at(r, middle)->start <= moment)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* The end of those of one process, which are in order. */
static size_t end_of_process(const rows *r, size_t first, size_t end)
{
    uint32_t process = step_at(r, first)->process;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (step_at(r, middle)->process == process)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* The process of what has a track; ROWS_NONE: any. */
static uint32_t process_of(const rows *r, rows_table of, size_t row)
{
    if (of != ROWS_CALLS && of != ROWS_ACTIVITIES)
        return ROWS_NONE;
    const part *p = &r->parts[of][0];
    const char *at = rows_at(p, rows_widths[of][0], row);
    size_t offset = of == ROWS_CALLS ? offsetof(call_row, track) : offsetof(activity_row, track);
    return track_of(r, u32_at(at + offset))->process;
}

/* In a file that several processes were joined into, a step of the process; if it has none, as a
 * device has none, of any. False: it was in none. */
static bool find_step(rows *r, rows_table of, size_t row, uint64_t moment, size_t *found)
{
    size_t file = file_of(r, of, row), first = rows_first(r, ROWS_STEPS, file);
    size_t end = rows_first(r, ROWS_STEPS, file + 1);
    uint32_t process = process_of(r, of, row);
    bool any = false;
    for (size_t next; first < end; first = next) {
        bool own = step_at(r, first)->process == process;
        next = end_of_process(r, first, end);
        size_t at = search(r, first, next, moment);
        bool in = at > first && is_in(step_at(r, at - 1), moment);
        if (in && (own || !any))
            *found = at - 1;
        if (own)
            return in;
        any |= in;
    }
    return any;
}

static cell step_of(rows *r, rows_table of, size_t row, uint64_t moment)
{
    size_t *at = &r->memo[of].step, file = file_of(r, of, row);
    uint32_t process = process_of(r, of, row);
    bool near = *at >= rows_first(r, ROWS_STEPS, file) &&
                *at < rows_first(r, ROWS_STEPS, file + 1) && is_in(step_at(r, *at), moment) &&
                (process == ROWS_NONE || process == step_at(r, *at)->process);
    if (near || find_step(r, of, row, moment, at))
        return count(step_at(r, *at)->step);
    return (cell){.type = CELL_NULL};
}

static cell file_cell(rows *r, rows_table of, size_t row, rows_form form, uint64_t start)
{
    const file_row *f = rows_file(r, file_of(r, of, row));
    if (form == FORM_FILE)
        return integer(f->file);
    if (form == FORM_RANK)
        return f->rank < 0 ? (cell){.type = CELL_NULL} : integer(f->rank);
    return f->start_unix ? count(f->start_unix + start) : (cell){.type = CELL_NULL};
}

/* ---- what it says ---- */

static cell signed_or_none(const char *p)
{
    int32_t value = (int32_t)u32_at(p);
    return value < 0 ? (cell){.type = CELL_NULL} : integer(value);
}

static double real_at(const char *p)
{
    double value;
    memcpy(&value, p, sizeof value);
    return value;
}

static uint64_t whole_at(const char *p)
{
    return real_at(p) > 0 ? (uint64_t)real_at(p) : 0;
}

static const char *text_at(const char *p)
{
    const char *value;
    memcpy(&value, p, sizeof value);
    return value;
}

static cell named_cell(const rows *r, rows_form form, const char *p)
{
    uint32_t id = u32_at(p);
    switch (form) {
    case FORM_REGION:
        return text(rows_name_of(r, region_of(r, id)->name));
    case FORM_REGION_KIND:
        return text(pki_kind_names[region_of(r, id)->kind]);
    case FORM_TRACK:
        return track_of(r, id)->tid ? integer(track_of(r, id)->tid) : (cell){.type = CELL_NULL};
    case FORM_TRACK_NAME:
        return text(rows_name_of(r, track_of(r, id)->name));
    case FORM_UNBALANCED:
        return integer(id > TRACK_MASK);
    case FORM_PARENT:
        return id ? count(r->calls_before + id) : (cell){.type = CELL_NULL};
    default:
        return text(rows_name_of(r, id));
    }
}

static cell member_cell(const rows *r, rows_form form, const char *p)
{
    switch (form) {
    case FORM_U64:
        return count(u64_at(p));
    case FORM_COUNT:
        return u64_at(p) ? count(u64_at(p)) : (cell){.type = CELL_NULL};
    case FORM_KNOWN:
        return u64_at(p) == UINT64_MAX ? (cell){.type = CELL_NULL} : count(u64_at(p));
    case FORM_U32:
        return optional(u32_at(p));
    case FORM_I32:
        return signed_or_none(p);
    case FORM_BOOL:
        return integer(*p != 0);
    case FORM_US:
        return u64_at(p) == UINT64_MAX ? (cell){.type = CELL_NULL} : real((double)u64_at(p) / 1000);
    case FORM_REAL:
        return real(real_at(p));
    case FORM_BITS:
        return u64_at(p + sizeof(uint64_t)) ? integer((int64_t)u64_at(p))
                                            : (cell){.type = CELL_NULL};
    case FORM_WHOLE:
        return count(whole_at(p));
    case FORM_SOME:
        return whole_at(p) ? count(whole_at(p)) : (cell){.type = CELL_NULL};
    case FORM_KIND:
        return text(pki_kind_names[u32_at(p)]);
    case FORM_TEXT:
        return text(text_at(p));
    default:
        return named_cell(r, form, p);
    }
}

static cell end_cell(uint64_t start, uint64_t duration)
{
    return duration == UINT64_MAX ? (cell){.type = CELL_NULL} : count(start + duration);
}

cell rows_cell(rows *r, rows_table of, uint64_t row, unsigned column)
{
    const rows_column *c = &rows_about_table(of)->columns[column];
    size_t width = rows_widths[of][c->part], i = (size_t)row;
    const part *p = &r->parts[of][c->part];
    if (i >= p->count)
        return (cell){.type = CELL_NULL}; /* nobody wished for this part */
    const char *at = rows_at(p, width, i);
    switch ((rows_form)c->form) {
    case FORM_FILE:
    case FORM_RANK:
        return file_cell(r, of, i, (rows_form)c->form, 0);
    case FORM_UNIX:
        return file_cell(r, of, i, FORM_UNIX, u64_at(at));
    case FORM_STEP:
        return step_of(r, of, i, u64_at(at));
    case FORM_END:
        return end_cell(u64_at(at), u64_at(at + sizeof(uint64_t)));
    case FORM_ID:
        return count(r->calls_before + row + 1);
    default:
        return member_cell(r, (rows_form)c->form, at + c->offset);
    }
}

/* ---- a cell in a file: as CSV (RFC 4180), as JSON ---- */

static void write_number(FILE *to, const cell *c)
{
    char text[32], *end;
    if (c->type == CELL_REAL && !isfinite(c->real)) { /* SQLite's names */
        fputs(c->real > 0 ? "Inf" : "-Inf", to);
        return;
    }
    end = c->type == CELL_REAL ? pki_put_double(text, c->real) : pki_put_i64(text, c->integer);
    fwrite(text, 1, (size_t)(end - text), to);
}

void csv_write_text(FILE *to, const char *text)
{
    size_t length = strlen(text);
    if (strcspn(text, ",\"\r\n") == length) {
        fwrite(text, 1, length, to);
        return;
    }
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', to);
        putc(*text, to);
    }
    putc('"', to);
}

void cell_write_csv(FILE *to, const cell *c)
{
    if (c->type == CELL_TEXT)
        csv_write_text(to, c->text);
    else if (c->type != CELL_NULL)
        write_number(to, c);
}

void cell_write_json(pki_json *to, const char *key, const cell *c)
{
    if (c->type == CELL_TEXT)
        pki_json_text(to, key, c->text);
    else if (c->type == CELL_INTEGER)
        pki_json_int(to, key, c->integer);
    else
        pki_json_real(to, key, c->type == CELL_REAL ? c->real : NAN);
}
