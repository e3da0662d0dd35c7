/* lib/backend/cupti/cupti.c - kernels, copies, CUDA's calls and waits, through CUPTI.
 *
 *     library.c   the library found, where it has several users, too; memory for records, from and
 *                 to its threads
 *     control.c   when it is on: taken, switched and given back; another tool that takes it
 *     records.c   on the program's threads: the region of each launch; what is in a buffer; what is
 *                 allocated, and where; the library's names of CUDA's calls
 *     join.c      names of kernels; what belongs to a correlation; records put together, in order
 *
 * Here they go into the trace: tracks, names, devices, what is missing.
 *
 * Calls that may wait for CUPTI's threads are made in flush, those of the driver in ask, without
 * the drain lock; records are read in collect and halt, with it. No callback takes a lock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cupti/control.h"
#include "backend/cupti/join.h"
#include "backend/cupti/records.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/loader.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/costs/gpu_memory.h"
#include "session/session.h"
#include "session/trace/output.h"

/* ---- which line of the viewer an activity goes to ---- */

/* A stream has a track of its own on its device; what overlaps there (graphs' branches, kernels
 * that start before their predecessor has quite ended) goes to further ones, "stream 7 (2)". Calls
 * of a thread lie on a track beside the thread's. What belongs to neither has tracks of the
 * process. Activities have to come in the order in which they begin, track by track.
 *
 * Threads: one at a time (the drain lock). */

#define LANES_MOST 64 /* of one stream; more share the last one */
#define PROCESS_SORT (1u << 20)

/* Lines that are no stream's: as devices beyond any. */
#define OVERHEADS (PKI_NO_DEVICE - 1)
#define WAITS (PKI_NO_DEVICE - 2)
#define CALLS (PKI_NO_DEVICE - 3) /* the thread in place of the stream */

/* Of a device: numbers that no stream has. */
#define DEVICE_WAITS UINT32_MAX
#define DEVICE_EVENTS (UINT32_MAX - 1)

typedef struct lane {
    uint32_t device, context, stream;
    uint32_t number; /* 1, 2, ... of its stream */
    uint32_t track;
    uint64_t end; /* of what lies last on it */
} lane;

static lane *lanes;
static uint32_t count;
static size_t room;

static void tracks_forget(bool whole)
{
    if (whole)
        free(lanes);
    lanes = NULL;
    count = 0;
    room = 0;
}

/* tid: the stream's number, as PyTorch has it, if no other context has a stream of that number. */
static uint32_t tid_of(const lane *l)
{
    bool other = l->number > 1 || l->stream == 0 || l->stream >= DEVICE_EVENTS;
    for (uint32_t i = 0; i < count; i++)
        other = other || (lanes[i].device == l->device && lanes[i].stream == l->stream);
    return other ? 1u << 24 | count : l->stream;
}

static uint32_t name_device(const lane *l)
{
    char process[32], thread[48];
    pki_track t = {pki_track_device_pid(l->device), tid_of(l), process, thread,
                   PKI_MIN(l->stream, 1u << 16) * LANES_MOST + l->number};
    char line[32];
    snprintf(process, sizeof process, "GPU %u", l->device);
    snprintf(line, sizeof line, "stream %u", l->stream);
    const char *what = l->stream == DEVICE_WAITS    ? "CUDA waits"
                       : l->stream == DEVICE_EVENTS ? "CUDA events"
                                                    : line;
    if (l->number == 1)
        snprintf(thread, sizeof thread, "%s", what);
    else
        snprintf(thread, sizeof thread, "%s (%u)", what, l->number);
    return pki_track_add(&t);
}

static uint32_t name_own(const lane *l)
{
    const char *what = l->device == OVERHEADS ? "CUPTI overhead" : "CUDA waits";
    char thread[48];
    pki_track t = {pki_the_session.config.world.pid, pki_track_apart(count), NULL, thread,
                   PROCESS_SORT + count};
    if (l->number == 1)
        snprintf(thread, sizeof thread, "%s", what);
    else
        snprintf(thread, sizeof thread, "%s (%u)", what, l->number);
    return pki_track_add(&t);
}

/* Where the thread's own track stands. */
static uint32_t sort_of(uint32_t tid)
{
    const pki_registry *r = pki_the_session.registry;
    uint32_t sort = PROCESS_SORT;
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(r) && sort == PROCESS_SORT; i++)
        if (pki_registry_block(r, i)->tid == tid)
            sort = pki_registry_block(r, i)->index + 1;
    pki_registry_unlock();
    return sort;
}

static uint32_t name_calls(const lane *l)
{
    char thread[48];
    pki_track t = {pki_the_session.config.world.pid, pki_track_beside(l->stream), NULL, thread,
                   sort_of(l->stream)};
    snprintf(thread, sizeof thread, "CUDA calls of thread %u", l->stream);
    return pki_track_add(&t);
}

static uint32_t name(const lane *l)
{
    if (l->device == CALLS)
        return name_calls(l);
    return l->device == OVERHEADS || l->device == WAITS ? name_own(l) : name_device(l);
}

static uint32_t add(lane l, uint64_t end)
{
    if (!pki_array_fit(&lanes, &room, count + (size_t)1, sizeof *lanes))
        return 0;
    l.track = name(&l);
    l.end = end;
    lanes[count++] = l;
    return l.track;
}

/* The first line of its kind where nothing is in the way. */
static uint32_t lay(uint32_t device, uint32_t context, uint32_t stream, uint64_t start,
                    uint64_t end)
{
    lane next = {device, context, stream, 1, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        lane *l = &lanes[i];
        if (l->device != device || l->context != context || l->stream != stream)
            continue;
        if (l->end <= start || l->number == LANES_MOST) {
            l->end = PKI_MAX(l->end, end);
            return l->track;
        }
        next.number = l->number + 1;
    }
    return add(next, end);
}

/* Ids of lib/session/activity.h's tracks; 0 without memory. */
/* Of a device's process: what waits for it, and events that were recorded on it. */
static uint32_t pki_cupti_stream_track(uint32_t device, uint32_t context, uint32_t stream,
                                       uint64_t start, uint64_t end)
{
    return lay(device == PKI_NO_DEVICE ? 0 : device, context, stream, start, end);
}

static uint32_t pki_cupti_overhead_track(uint64_t start, uint64_t end)
{
    return lay(OVERHEADS, 0, 0, start, end);
}

static uint32_t pki_cupti_wait_track(uint64_t start, uint64_t end)
{
    return lay(WAITS, 0, 0, start, end);
}

static uint32_t pki_cupti_device_wait_track(uint32_t device, uint64_t start, uint64_t end)
{
    return lay(device, 0, DEVICE_WAITS, start, end);
}

static uint32_t pki_cupti_event_track(uint32_t device, uint64_t at)
{
    return lay(device, 0, DEVICE_EVENTS, at, at);
}

static uint32_t pki_cupti_thread_track(uint32_t tid)
{
    return lay(CALLS, 0, tid, UINT64_MAX, 0);
}

/* ---- what the end of the trace says of devices and records ---- */

#define DEVICES_MOST 16 /* of a process; those beyond are not described */
#define DEVICE_BYTES 1536

static size_t describe(unsigned ordinal, const pki_driver_device *d, char *out, size_t size)
{
    char name[6 * sizeof d->name + 1];
    pki_json_escape(name, sizeof name, d->name, strnlen(d->name, sizeof d->name));
    int n = snprintf(out, size,
                     "%s{\"id\":%u,\"name\":\"%s\",\"totalGlobalMem\":%" PRIu64
                     ",\"computeMajor\":%d,\"computeMinor\":%d,\"maxThreadsPerBlock\":%d,"
                     "\"maxThreadsPerMultiprocessor\":%d,\"regsPerBlock\":%d,\"warpSize\":%d,"
                     "\"sharedMemPerBlock\":%d,\"numSms\":%d,\"regsPerMultiprocessor\":%d,"
                     "\"sharedMemPerBlockOptin\":%d,\"sharedMemPerMultiprocessor\":%d}",
                     ordinal ? "," : "", ordinal, name, d->memory_bytes, d->major, d->minor,
                     d->block_threads, d->processor_threads, d->block_registers, d->warp,
                     d->block_shared, d->processors, d->processor_registers, d->block_shared_most,
                     d->processor_shared);
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

/* "deviceProperties", in the words of PyTorch's profiler. */
static void pki_cupti_describe_devices(void)
{
    static char text[DEVICES_MOST * DEVICE_BYTES];
    uint64_t bytes[DEVICES_MOST] = {0};
    size_t at = 0;
    const unsigned devices = pki_driver_devices();
    text[at++] = '[';
    for (unsigned i = 0; i < DEVICES_MOST && i < devices; i++) {
        pki_driver_device device;
        if (!pki_driver_device_get(i, &device))
            continue;
        at += describe(i, &device, text + at, sizeof text - at - 2);
        bytes[i] = device.memory_bytes;
    }
    text[at++] = ']';
    text[at] = 0;
    if (!pki_activity_lock())
        return;
    pki_tail_set("deviceProperties", text);
    for (unsigned i = 0; i < DEVICES_MOST; i++)
        pki_gpu_memory_total(i, bytes[i]);
    if (devices > PKI_GPU_DEVICES)
        pki_gpu_memory_total(PKI_GPU_DEVICES - 1, 0); /* it has a place with others */
    pki_activity_unlock();
}

/* "cupti": the library's version and the accounting of its records. */
static void pki_cupti_describe_counts(const pki_cupti_counts *c, uint64_t dropped, uint64_t refused)
{
    char text[640];
    snprintf(text, sizeof text,
             "{\"version\":%" PRIu32 ",\"records\":%" PRIu64 ",\"dropped_by_cupti\":%" PRIu64
             ",\"buffers_refused\":%" PRIu64 ",\"unknown\":%" PRIu64 ",\"bad_time\":%" PRIu64
             ",\"other_clock\":%" PRIu64 ",\"broken_buffers\":%" PRIu64 ",\"outside\":%" PRIu64
             ",\"covered\":%" PRIu64 ",\"unlinked\":%" PRIu64 ",\"lost\":%" PRIu64 "}",
             pki_cupti_version(), c->records, dropped, refused, c->unknown, c->bad_time,
             c->other_clock, c->broken, c->outside, c->covered, c->unlinked, c->lost);
    pki_tail_set("cupti", text);
}

/* ---- names of what is no kernel, as PyTorch's tools know them ---- */

static const char *way_of(uint32_t copy)
{
    static const char *const ways[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                       "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
    return copy < PKI_COUNT_OF(ways) ? ways[copy] : ways[0];
}

static const char *memory_of(unsigned kind)
{
    static const char *const kinds[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                        "Array",   "Managed",  "Device Static", "Managed Static"};
    return kind < PKI_COUNT_OF(kinds) ? kinds[kind] : kinds[0];
}

static const char *wait_of(uint32_t type)
{
    static const char *const waits[] = {"Unknown Sync", "Event Sync", "Stream Wait Event",
                                        "Stream Sync", "Context Sync"};
    return type < PKI_COUNT_OF(waits) ? waits[type] : waits[0];
}

static const char *overhead_of(uint32_t kind)
{
    static const char *const cuptis[] = {"Unknown",
                                         "Activity Buffer Flush",
                                         "Instrumentation",
                                         "Resource",
                                         "Runtime Triggered Module Loading",
                                         "Lazy Function Loading",
                                         "Command Buffer Full",
                                         "Activity Buffer Request",
                                         "UVM Activity Init"};
    if (kind == CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER)
        return "Driver Compiler";
    return kind >> 16 < PKI_COUNT_OF(cuptis) ? cuptis[kind >> 16] : cuptis[0];
}

static void name_of(const pki_cupti_record *r, char *name, size_t size)
{
    switch (r->what) {
    case PKI_CUPTI_COPY:
        snprintf(name, size, "Memcpy %s (%s -> %s)", way_of(r->detail), memory_of(r->from),
                 memory_of(r->to));
        break;
    case PKI_CUPTI_SET:
        snprintf(name, size, "Memset (%s)", memory_of(r->to));
        break;
    case PKI_CUPTI_GRAPH:
        snprintf(name, size, "CUDA graph %" PRIu64, r->id);
        break;
    case PKI_CUPTI_SYNC:
        snprintf(name, size, "%s", wait_of(r->detail));
        break;
    case PKI_CUPTI_OVERHEAD:
        snprintf(name, size, "%s", overhead_of(r->detail));
        break;
    default:
        snprintf(name, size, "%s", r->name ? r->name : "");
    }
}

/* ---- joined records as activities of the session ---- */

#define ARGS 6

/* Of an id the region's name id; 0: none. */
static uint32_t pki_cupti_region_of(uint64_t id)
{
    return (uint32_t)(id & ((1u << PKI_CUPTI_ID_BITS) - 1));
}

/* When its region began: the lower bits of a tick that was not long ago, 26 hours at 3 GHz. */
static uint64_t began_of(uint64_t id)
{
    uint64_t now = pki_activity_ticks();
    uint64_t ago =
        (now - (id >> PKI_CUPTI_ID_BITS)) & (((uint64_t)1 << (64 - PKI_CUPTI_ID_BITS)) - 1);
    return pki_activity_ns_of_ticks(now - ago);
}

/* The id as the trace has it, below 2^53 and the same for all launches of one call of a region: the
 * microsecond in which it began, times 65536, plus the region's name id. */
static uint64_t pki_cupti_shown_id(uint64_t id)
{
    uint64_t us = began_of(id) / 1000;
    return pki_cupti_region_of(id) | (us & (((uint64_t)1 << (53 - PKI_CUPTI_ID_BITS)) - 1))
                                         << PKI_CUPTI_ID_BITS;
}

static pki_activity basics(const pki_cupti_record *r, const pki_cupti_tie *tie, const char *name)
{
    pki_activity a = {.name = name,
                      .name_length = strlen(name),
                      .start = r->start,
                      .end = r->end,
                      .device = r->device,
                      .context = r->context,
                      .stream = r->stream,
                      .flow = tie->flow,
                      .correlation = tie->correlation};
    if (tie->external) {
        a.region = pki_cupti_region_of(tie->external);
        a.external = pki_cupti_shown_id(tie->external);
    }
    return a;
}

static pki_copy copy_of(uint32_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
        return PKI_COPY_HTOD;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
        return PKI_COPY_DTOH;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
        return PKI_COPY_DTOD;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return PKI_COPY_HTOH;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return PKI_COPY_PTOP;
    default:
        return PKI_COPY_UNKNOWN;
    }
}

/* ---- on devices ---- */

static size_t describe_kernel(const pki_cupti_record *r, pki_activity *a, pki_activity_arg *args,
                              char *text, size_t size)
{
    a->kind = PKI_ACTIVITY_KERNEL;
    memcpy(a->grid, r->grid, sizeof a->grid);
    memcpy(a->block, r->block, sizeof a->block);
    a->registers = r->registers;
    a->shared_bytes = r->shared_bytes;
    if (r->cluster[0] * r->cluster[1] * r->cluster[2] <= 1)
        return 0;
    snprintf(text, size, "%ux%ux%u", r->cluster[0], r->cluster[1], r->cluster[2]);
    args[0] = (pki_activity_arg){"cluster", text, 0};
    return 1;
}

static size_t describe_copy(const pki_cupti_record *r, pki_activity *a, pki_activity_arg *args)
{
    a->kind = PKI_ACTIVITY_MEMCPY;
    a->copy = copy_of(r->detail);
    a->bytes = r->bytes;
    if (a->copy != PKI_COPY_PTOP || r->from_device == PKI_NO_DEVICE)
        return 0;
    args[0] = (pki_activity_arg){"fromDevice", NULL, r->from_device};
    args[1] = (pki_activity_arg){"toDevice", NULL, r->to_device};
    return 2;
}

static void emit_on_device(const pki_cupti_record *r, const pki_cupti_tie *tie)
{
    char name[128], text[48];
    pki_activity_arg args[ARGS];
    if (r->what != PKI_CUPTI_KERNEL)
        name_of(r, name, sizeof name);
    pki_activity a = basics(r, tie, r->what == PKI_CUPTI_KERNEL ? r->name : name);
    a.graph = r->id;
    a.graph_node = r->node;
    a.args = args;
    if (r->what == PKI_CUPTI_KERNEL)
        a.arg_count = describe_kernel(r, &a, args, text, sizeof text);
    else if (r->what == PKI_CUPTI_COPY)
        a.arg_count = describe_copy(r, &a, args);
    else
        a.kind = r->what == PKI_CUPTI_SET ? PKI_ACTIVITY_MEMSET : PKI_ACTIVITY_GRAPH;
    a.bytes = r->bytes;
    a.track = pki_cupti_stream_track(r->device, r->context, r->stream, r->start, r->end);
    pki_activity_add(&a);
}

/* ---- on threads ---- */

/* As PyTorch's profiler has it; CUPTI gives no time but the call's. */
static void emit_event(const pki_cupti_record *call, const pki_cupti_link *l)
{
    static const char name[] = "cudaEvent";
    pki_activity_arg id = {"event_id", NULL, l->event};
    pki_activity a = {.kind = PKI_ACTIVITY_EVENT,
                      .name = name,
                      .name_length = sizeof name - 1,
                      .start = call->end,
                      .end = call->end,
                      .device = pki_cupti_context_device(l->event_context),
                      .context = l->event_context,
                      .stream = l->event_stream,
                      .correlation = l->correlation,
                      .args = &id,
                      .arg_count = 1};
    a.track = pki_cupti_event_track(a.device, a.start);
    pki_activity_add(&a);
}

static void emit_call(const pki_cupti_record *r, const pki_cupti_tie *tie)
{
    bool runtime = r->what == PKI_CUPTI_RUNTIME;
    const pki_cupti_call *call = pki_cupti_call_of(
        runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, r->detail);
    pki_activity_arg failed = {"error", NULL, r->result};
    pki_activity a = basics(r, tie, call->name);
    a.kind = runtime ? PKI_ACTIVITY_RUNTIME : PKI_ACTIVITY_DRIVER;
    a.args = &failed;
    a.arg_count = r->result != 0;
    a.track = pki_cupti_thread_track(r->thread);
    pki_activity_add(&a);
    if (tie->record && r->result == 0)
        emit_event(r, tie->record);
}

/* Within the call that waited, and not as long as that: one slice has to be around the other. */
static void place_wait(const pki_cupti_tie *tie, pki_activity *a)
{
    bool within =
        tie->thread && a->start <= tie->end && a->end >= tie->start && tie->end - tie->start > 2;
    if (within) {
        a->start = PKI_MAX(a->start, tie->start + 1);
        a->end = PKI_MAX(a->start, PKI_MIN(a->end, tie->end - 1));
    }
    a->track =
        within ? pki_cupti_thread_track(tie->thread) : pki_cupti_wait_track(a->start, a->end);
}

/* For HTA's critical path: beside the device's kernels, with the stream that waits and the call
 * that recorded what it waits for. A stream's wait takes the host no longer than the call. */
static void place_beside_kernels(const pki_cupti_record *r, const pki_cupti_tie *tie,
                                 pki_activity *a, pki_activity_arg *args)
{
    a->stream_hidden = 0;
    a->track = pki_cupti_device_wait_track(pki_cupti_context_device(r->context), a->start, a->end);
    if (!tie->source.correlation)
        return;
    args[a->arg_count++] = (pki_activity_arg){"wait_on_stream", NULL, tie->source.stream};
    args[a->arg_count++] =
        (pki_activity_arg){"wait_on_cuda_event_record_corr_id", NULL, tie->source.correlation};
}

static void emit_wait(const pki_cupti_record *r, const pki_cupti_tie *tie)
{
    char name[32];
    name_of(r, name, sizeof name);
    pki_activity_arg args[ARGS] = {{"cuda_sync_kind", name, 0}};
    pki_activity a = basics(r, tie, name);
    a.kind = PKI_ACTIVITY_SYNC;
    a.stream_hidden = 1;
    a.args = args;
    a.arg_count = 1;
    if (r->id)
        args[a.arg_count++] = (pki_activity_arg){"wait_on_cuda_event_id", NULL, (int64_t)r->id};
    if (pki_load(&pki_cupti_sync_events))
        place_beside_kernels(r, tie, &a, args);
    else
        place_wait(tie, &a);
    pki_activity_add(&a);
}

static void emit_overhead(const pki_cupti_record *r, const pki_cupti_tie *tie)
{
    char name[48];
    name_of(r, name, sizeof name);
    pki_activity_arg thread = {"thread", NULL, r->thread};
    pki_activity a = basics(r, tie, name);
    a.kind = PKI_ACTIVITY_OVERHEAD;
    a.args = &thread;
    a.arg_count = r->thread != 0;
    a.track = pki_cupti_overhead_track(r->start, r->end);
    pki_activity_add(&a);
}

static void pki_cupti_emit(const pki_cupti_record *r, const pki_cupti_tie *tie)
{
    switch (r->what) {
    case PKI_CUPTI_RUNTIME:
    case PKI_CUPTI_DRIVER:
        emit_call(r, tie);
        break;
    case PKI_CUPTI_SYNC:
        emit_wait(r, tie);
        break;
    case PKI_CUPTI_OVERHEAD:
        emit_overhead(r, tie);
        break;
    case PKI_CUPTI_POOL:
        pki_cupti_pool_sample(r);
        break;
    default:
        emit_on_device(r, tie);
    }
}

/* ---- the backend ---- */

/* From then on to the first launch of a thread, also of one that waits. */
#define SETTLE_NS 250000000u

/* Under the drain lock. */
static pki_cupti_counts counts;
static uint64_t refused_before, finalised_for, given_for;
static enum { SILENT, BEGUN, MEASURES, MEASURED } emitted;
static bool described; /* by who asks */
static uint64_t since; /* when it began to record, ns and one, and is not measured yet; 0: it is */

static void forget(const pki_config *config)
{
    pki_store(&pki_cupti_sync_events, config->cupti_sync_events);
    memset(&counts, 0, sizeof counts);
    refused_before = pki_load(&pki_cupti_buffers.refused);
    described = false;
    emitted = SILENT;
    finalised_for = given_for = since = 0;
}

/* What an earlier session has left. */
static void discard_buffers(void)
{
    pki_cupti_buffers_walk();
    for (pki_cupti_buffer *b = pki_cupti_buffers_drain(), *next; b; b = next) {
        next = b->next;
        pki_cupti_buffer_release(b);
    }
}

extern const pki_backend pki_backend_cupti;

static bool start(const pki_config *config)
{
    bool listed = pki_backend_wanted(&pki_backend_cupti, config->backends);
    forget(config);
    pki_store(&pki_cupti_buffers.ended, false);
    discard_buffers();
    return pki_cupti_switch_start(config, listed);
}

/* ---- under the drain lock ---- */

static pki_cupti_standing stands; /* before the buffers were taken that were read last */

static pki_cupti_limits limits_at(uint64_t t, bool last)
{
    return (pki_cupti_limits){.begin = stands.begin,
                              .end = PKI_MIN(stands.end, stands.taken_at),
                              .decided = stands.windowed ? t : UINT64_MAX,
                              .complete = stands.complete,
                              .now = t,
                              .last = last};
}

/* Steps are not measured as long as what had been launched before may run, which has no record. How
 * long that was is known once the first buffers of those who launched early have come back. */
static void settle(uint64_t now)
{
    if (!since || now < since + SETTLE_NS)
        return;
    uint64_t queued = pki_cupti_join_queued(stands.armed);
    bool nothing = queued == UINT64_MAX;
    if (nothing && stands.armed && now < UINT64_MAX)
        return;
    if (queued >= since && (stands.armed || !nothing))
        pki_activity_measures(queued, true);
    since = 0;
}

/* On and off, as captures had it: at once, so that they wait for what is to come. Between two times
 * nobody waits for anything. */
static void emit_marks(void)
{
    for (pki_cupti_mark mark; pki_cupti_marks_pop(&mark);) {
        if (mark.on && emitted == SILENT)
            pki_activity_begins(PKI_SOURCE_CUPTI, mark.ns);
        emitted = mark.on ? MEASURES : MEASURED;
        if (!mark.on)
            settle(UINT64_MAX);
        pki_activity_measures(mark.ns, mark.on);
        since = mark.on ? mark.ns + 1 : 0;
    }
}

/* The same of one range of steps, or of the whole session. */
static void emit_range(const pki_cupti_limits *m)
{
    uint64_t from = stands.opened;
    if (!from)
        return;
    if (emitted == SILENT)
        pki_activity_begins(PKI_SOURCE_CUPTI, from);
    emitted = PKI_MAX(emitted, BEGUN);
    if (emitted == BEGUN && m->begin != UINT64_MAX) {
        pki_activity_measures(PKI_MAX(m->begin, from), true);
        emitted = MEASURES;
        since = stands.windowed ? 0 : from + 1; /* it is on long before its steps */
    }
    if (emitted == MEASURES && m->end != UINT64_MAX) {
        settle(UINT64_MAX);
        pki_activity_measures(m->end, false);
        emitted = MEASURED;
    }
}

/* Up to where everything is there. */
static void emit_finalised(const pki_cupti_limits *m)
{
    if (stands.opened)
        pki_activity_finalised(PKI_SOURCE_CUPTI, pki_cupti_join_finalised(m));
    if (stands.taken_at != UINT64_MAX)
        pki_activity_ends(PKI_SOURCE_CUPTI);
    if (!stands.armed || emitted != MEASURED || !stands.closed)
        return;
    pki_activity_ends(PKI_SOURCE_CUPTI);
    emitted = SILENT;
}

static void read_buffers(bool last)
{
    uint64_t t = pki_activity_ns(pki_monotonic_ns());
    stands = pki_cupti_standing_at(t);
    uint64_t opened_at = stands.opened, memory = stands.memory_opened;
    pki_cupti_span span = {memory ? memory : opened_at, t}; /* memory is opened first */
    pki_cupti_limits limits = limits_at(t, last);
    for (pki_cupti_buffer *b = pki_cupti_buffers_drain(), *next; b; b = next) {
        next = b->next;
        pki_cupti_read(b, &span, &counts, pki_cupti_join_record, &counts, memory != 0);
        pki_cupti_buffer_release(b);
    }
    if (memory && (last || stands.memory_complete != given_for))
        pki_cupti_memory_emit(stands.memory_complete, stands.dropped);
    given_for = stands.memory_complete;
    if (stands.armed)
        emit_marks();
    else
        emit_range(&limits);
    settle(last ? UINT64_MAX : limits.complete);
    if (last && opened_at && limits.complete != UINT64_MAX)
        pki_activity_untold(limits.complete);
    if (since) /* what tells how long that took is not handed over before */
        limits.complete = PKI_MIN(limits.complete, since - 1);
    if (!last && limits.complete == finalised_for && stands.taken_at == UINT64_MAX)
        return; /* nothing that is held can have become ready, but by chance */
    finalised_for = limits.complete;
    pki_cupti_join_finalise(&limits, &counts, pki_cupti_emit);
    emit_finalised(&limits);
}

static void collect(void)
{
    read_buffers(false);
}

static bool has_records(bool last)
{
    if (!pki_activity_lock())
        return false;
    if (last)
        read_buffers(false);
    bool any = counts.records > 0;
    pki_activity_unlock();
    return any;
}

/* ---- without the drain lock ---- */

/* A killed run's trace has them, too. */
static void ask(pki_flush why)
{
    if (described || !has_records(why == PKI_FLUSH_LAST))
        return;
    pki_cupti_describe_devices();
    described = true;
}

/* ---- the end ---- */

/* In the report, too: who has recorded nothing has not been within its steps. */
static void sum_up(uint64_t dropped, uint64_t refused)
{
    char text[192];
    uint64_t bad = counts.bad_time + counts.lost, missing = dropped + refused + bad + counts.broken;
    int n = snprintf(text, sizeof text, "%llu records", (unsigned long long)counts.records);
    if (missing && n > 0)
        snprintf(text + n, sizeof text - (size_t)n,
                 "; missing: %llu dropped by CUPTI, %llu without times or room, %llu buffers",
                 (unsigned long long)dropped, (unsigned long long)bad,
                 (unsigned long long)(refused + counts.broken));
    if (counts.other_clock)
        snprintf(
            text, sizeof text,
            "%llu of %llu records have no place in time: CUPTI has one clock per process, and another "
            "tool has given it its own",
            (unsigned long long)counts.other_clock, (unsigned long long)counts.records);
    if (missing || counts.other_clock)
        pki_log(PK_LOG_WARNING, "cupti: %s", text);
    pki_cupti_switch_over(text);
}

/* Calls go on being recorded where nobody has come to switch that off. */
static void leave(void)
{
    pki_store(&pki_cupti_buffers.ended, true);
    pki_cupti_attribute_off();
}

static void stop(void)
{
    read_buffers(true);
    uint64_t refused = pki_load(&pki_cupti_buffers.refused) - refused_before;
    if (stands.opened || stands.memory_opened) {
        pki_cupti_describe_counts(&counts, stands.dropped, refused);
        sum_up(stands.dropped, refused);
    }
    pki_cupti_join_forget(true);
    pki_cupti_memory_forget(true);
    tracks_forget(true);
    pki_cupti_buffers_trim();
}

/* ---- status ---- */

/* Before a session only the library is looked for: to ask the driver would start it. */
static void probe(pk_backend_info *info)
{
    if (pki_cupti_switch_status(info->reason, sizeof info->reason))
        info->live = pki_cupti_load(info->reason, sizeof info->reason);
    if (pki_cupti_version())
        pki_cupti_version_text(pki_cupti_version(), info->version, sizeof info->version);
}

static bool is_requested(const pki_config *config)
{
    return config->cupti_window || config->costs_memory;
}

static void after_fork(void)
{
    pki_cupti_switch_after_fork();
    pki_cupti_buffers_after_fork();
    pki_cupti_attribute_off();
    pki_cupti_join_forget(false);
    pki_cupti_memory_forget(false);
    tracks_forget(false);
}

const pki_backend pki_backend_cupti = {
    .name = "cupti",
    .by_default = false,
    .devices = true,
    .probe = probe,
    .start = start,
    .requested = is_requested,
    .flush = pki_cupti_switch_flush,
    .ask = ask,
    .collect = collect,
    .leave = leave,
    .stop = stop,
    .after_fork = after_fork,
};
