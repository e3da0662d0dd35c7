/* lib/measure/device/overlap.c - collectives in flight on a device, and what computed beside them.
 */
#include "measure/device/state.h"

#include "base/compiler.h"

#define STREAMS 64 /* told apart; the last one is all others */

/* Of what has begun on a stream so far the last end is all that counts: something is under way as
 * long as that has not come. */
typedef struct stream {
    uint32_t number;
    uint64_t comm_until, work_until;
} stream;

typedef struct sweep {
    size_t count;
    stream streams[STREAMS];
    uint64_t comm_until; /* of all of them */
    pki_device_sums *into;
} sweep;

static stream *stream_of(sweep *s, uint32_t number)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->streams[i].number == number)
            return &s->streams[i];
    if (s->count < STREAMS)
        s->streams[s->count++] = (stream){.number = number};
    return &s->streams[s->count - 1];
}

static void begin(sweep *s, const pki_device_item *item)
{
    stream *on = stream_of(s, item->stream);
    uint64_t *until = item->comm ? &on->comm_until : &on->work_until;
    *until = PKI_MAX(*until, item->end);
    if (item->comm)
        s->comm_until = PKI_MAX(s->comm_until, item->end);
}

/* Does a stream compute that has no collective in flight itself? */
static bool is_hidden(const sweep *s, uint64_t at)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->streams[i].work_until > at && s->streams[i].comm_until <= at)
            return true;
    return false;
}

/* Until when nothing ends. */
static uint64_t next_end(const sweep *s, uint64_t at, uint64_t most)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->streams[i].work_until > at)
            most = PKI_MIN(most, s->streams[i].work_until);
        if (s->streams[i].comm_until > at)
            most = PKI_MIN(most, s->streams[i].comm_until);
    }
    return most;
}

/* Nothing begins meanwhile. */
static void pass(sweep *s, uint64_t at, uint64_t to)
{
    while (at < to && at < s->comm_until) {
        uint64_t end = next_end(s, at, to);
        double ns = (double)(end - at);
        s->into->of[PKI_GPU_COMM] += ns;
        s->into->of[is_hidden(s, at) ? PKI_GPU_COMM_HIDDEN : PKI_GPU_COMM_EXPOSED] += ns;
        at = end;
    }
}

void pki_device_overlap(const pki_device_one *one, int view, uint64_t from, uint64_t to,
                        pki_device_sums *into)
{
    sweep s = {.into = into};
    unsigned kinds = view == MEASURED ? ITEM_WORK : ITEM_SPAN;
    uint64_t at = from;
    if (!one->has_comm[view])
        return;
    for (size_t i = one->item_first; i < one->item_end && one->items[i].start < to; i++) {
        const pki_device_item *item = &one->items[i];
        if (!(item->kind & kinds) || item->end <= from)
            continue;
        if (item->start > at) {
            pass(&s, at, item->start);
            at = item->start;
        }
        begin(&s, item);
    }
    pass(&s, at, to);
}
