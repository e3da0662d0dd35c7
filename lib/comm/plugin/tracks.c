/* lib/comm/plugin/tracks.c - where in the trace: a track for each communicator, more where its
 * operations overlap; below it its channels, and beside each thread what it called in NCCL. Slices
 * of a track have to nest, so what overlaps even so begins where the one before ends.
 */
#include <stdio.h>

#include "comm/plugin/plugin.h"
#include "session/activity.h"
#include "session/session.h"

#define FIRST (1u << 21) /* among the tracks that are no thread's */
#define DETAILS 512      /* tracks of channels and threads; what has none is not in the trace */
#define SORT (1u << 22)

static uint32_t made, details, threads;
static struct {
    uint32_t tid, track;
} calls[DETAILS];

void pki_nccl_tracks_start(void)
{
    made = details = threads = 0;
}

static uint32_t add(const char *name)
{
    pki_track t = {pki_the_session.config.world.pid, pki_track_apart(FIRST + made), NULL, name,
                   SORT + made};
    made++;
    return pki_track_add(&t);
}

static uint32_t add_detail(const char *name)
{
    if (details == DETAILS)
        return 0;
    details++;
    return add(name);
}

/* ---- lanes ---- */

static pki_nccl_lane *free_lane(pki_nccl_communicator *t, uint64_t start)
{
    pki_nccl_lane *best = &t->lanes[0];
    for (unsigned i = 0; i < PKI_NCCL_LANES; i++) {
        if (t->lanes[i].end <= start)
            return &t->lanes[i];
        if (t->lanes[i].end < best->end)
            best = &t->lanes[i];
    }
    return best;
}

static uint32_t use(pki_nccl_lane *lane, uint64_t *start, uint64_t end)
{
    *start = PKI_MAX(*start, lane->end);
    lane->end = PKI_MAX(lane->end, end);
    return lane->track;
}

uint32_t pki_nccl_track_of_operation(pki_nccl_communicator *t, uint64_t *start, uint64_t end)
{
    pki_nccl_lane *lane = free_lane(t, *start);
    unsigned number = (unsigned)(lane - t->lanes) + 1;
    char name[PKI_COMM_TEXT + 32];
    if (number == 1)
        snprintf(name, sizeof name, "NCCL %s", t->comm->title);
    else
        snprintf(name, sizeof name, "NCCL %s (%u)", t->comm->title, number);
    if (!lane->track)
        lane->track = add(name);
    return use(lane, start, end);
}

uint32_t pki_nccl_track_of_channel(pki_nccl_communicator *t, unsigned direction, uint32_t channel,
                                   uint64_t *start, uint64_t end)
{
    static const char *const words[PKI_NCCL_DIRECTIONS] = {"receives", "sends", "kernels"};
    pki_nccl_lane *lane = &t->channels[direction][channel % PKI_NCCL_CHANNELS];
    char name[PKI_COMM_TEXT + 48];
    snprintf(name, sizeof name, "NCCL %s %s, channel %u", t->comm->title, words[direction],
             channel % PKI_NCCL_CHANNELS);
    if (!lane->track)
        lane->track = add_detail(name);
    return use(lane, start, end);
}

/* ---- threads ---- */

uint32_t pki_nccl_track_of_thread(uint32_t tid)
{
    char name[48];
    for (uint32_t i = threads; i > 0; i--)
        if (calls[i - 1].tid == tid)
            return calls[i - 1].track;
    snprintf(name, sizeof name, "NCCL on thread %u", tid);
    uint32_t track = add_detail(name);
    if (track) {
        calls[threads].tid = tid;
        calls[threads++].track = track;
    }
    return track;
}
