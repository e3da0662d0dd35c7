#include "backend/cupti/tracks.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "session/activity.h"
#include "session/session.h"

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

void pki_cupti_tracks_after_fork(void)
{
    lanes = NULL;
    count = 0;
    room = 0;
}

void pki_cupti_tracks_forget(void)
{
    free(lanes);
    pki_cupti_tracks_after_fork();
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

uint32_t pki_cupti_stream_track(uint32_t device, uint32_t context, uint32_t stream, uint64_t start,
                                uint64_t end)
{
    return lay(device == PKI_NO_DEVICE ? 0 : device, context, stream, start, end);
}

uint32_t pki_cupti_overhead_track(uint64_t start, uint64_t end)
{
    return lay(OVERHEADS, 0, 0, start, end);
}

uint32_t pki_cupti_wait_track(uint64_t start, uint64_t end)
{
    return lay(WAITS, 0, 0, start, end);
}

uint32_t pki_cupti_device_wait_track(uint32_t device, uint64_t start, uint64_t end)
{
    return lay(device, 0, DEVICE_WAITS, start, end);
}

uint32_t pki_cupti_event_track(uint32_t device, uint64_t at)
{
    return lay(device, 0, DEVICE_EVENTS, at, at);
}

uint32_t pki_cupti_thread_track(uint32_t tid)
{
    return lay(CALLS, 0, tid, UINT64_MAX, 0);
}
