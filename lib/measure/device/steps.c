#include "measure/device/steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "measure/device/state.h"

/* ---- collectives in flight on a device, and what computed beside them ---- */

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

/* Of [from, to) how long a collective was in flight, and whether another stream
 * computed meanwhile; added. The items sorted. */
static void pki_device_overlap(const pki_device_one *one, int view, uint64_t from, uint64_t to,
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

/* ---- a step's window over the intervals of a device ---- */

/* The items of these kinds between two moments, united, in order: as long as next() says so,
 * nothing of them lies between one's end and the next one's start. */
typedef struct cover {
    const pki_device_one *one;
    unsigned kinds;
    uint64_t from, to;
    size_t at;
    uint64_t start, end; /* the current one */
} cover;

static bool counts(const cover *c, const pki_device_item *item)
{
    return (item->kind & c->kinds) && item->end > item->start && item->end > c->from;
}

static bool next(cover *c)
{
    const pki_device_item *items = c->one->items;
    size_t count = c->one->item_end;
    /* Not beyond the window: it may be one of many, and without any of these kinds. */
    while (c->at < count && items[c->at].start < c->to && !counts(c, &items[c->at]))
        c->at++;
    if (c->at == count || items[c->at].start >= c->to)
        return false;
    c->start = PKI_MAX(items[c->at].start, c->from);
    c->end = items[c->at].end;
    for (; c->at < count && items[c->at].start <= c->end; c->at++)
        if (counts(c, &items[c->at]))
            c->end = PKI_MAX(c->end, items[c->at].end);
    c->end = PKI_MIN(c->end, c->to);
    return true;
}

static double length_of(cover c)
{
    uint64_t sum = 0;
    while (next(&c))
        sum += c.end - c.start;
    return (double)sum;
}

/* ---- gaps ---- */

/* A gap after a wait of the host for the device: who waits launches nothing meanwhile, and the
 * device goes idle at the latest when the wait ends. */
static bool follows_wait(cover *waits, bool *more, uint64_t start, uint64_t end)
{
    while (*more && waits->end < start)
        *more = next(waits);
    return *more && waits->start <= end;
}

static void add_gap(pki_device_sums *into, int view, uint64_t length, bool waited)
{
    double *of = into->of, ns = (double)length;
    of[PKI_GPU_IDLE] += ns;
    of[PKI_GPU_GAPS]++;
    of[PKI_GPU_LONGEST_GAP] = PKI_MAX(of[PKI_GPU_LONGEST_GAP], ns);
    if (view != MEASURED)
        return;
    if (waited)
        of[PKI_GPU_SYNC_GAPS] += ns;
    else if (length <= PKI_GPU_LAUNCH_GAP_NS)
        of[PKI_GPU_LAUNCH_GAPS] += ns;
}

static void add_busy(cover work, cover waits, int view, pki_device_sums *into)
{
    uint64_t at = work.from;
    bool more = next(&waits);
    while (next(&work)) {
        into->of[PKI_GPU_BUSY] += (double)(work.end - work.start);
        if (work.start > at)
            add_gap(into, view, work.start - at, follows_wait(&waits, &more, at, work.start));
        at = work.end;
    }
    if (work.to > at)
        add_gap(into, view, work.to - at, follows_wait(&waits, &more, at, work.to));
}

/* ---- kernels and copies ---- */

static void add_copy(pki_device_sums *into, const pki_device_item *item)
{
    static const int time_of[PKI_COPY_KINDS] = {[PKI_COPY_HTOD] = PKI_GPU_H2D_TIME,
                                                [PKI_COPY_DTOH] = PKI_GPU_D2H_TIME,
                                                [PKI_COPY_DTOD] = PKI_GPU_D2D_TIME,
                                                [PKI_COPY_PTOP] = PKI_GPU_P2P_TIME};
    int figure = time_of[item->copy];
    if (!figure)
        return;
    into->of[figure] += (double)(item->end - item->start);
    into->of[figure + 1] += (double)item->bytes; /* ..._BYTES follows ..._TIME */
}

/* Each one belongs, whole, to the step in which it began. */
static void add_counts(const cover *work, pki_device_sums *into)
{
    for (size_t i = work->at; i < work->one->item_end; i++) {
        const pki_device_item *item = &work->one->items[i];
        if (item->start >= work->to)
            break;
        if (item->start < work->from)
            continue;
        if (item->kernel) {
            into->of[PKI_GPU_KERNELS]++;
            into->of[PKI_GPU_SHORT_KERNELS] += item->end - item->start < PKI_GPU_SHORT_NS;
        }
        if (item->kind == ITEM_COPY)
            add_copy(into, item);
    }
}

static void pki_device_sweep(const pki_device_one *one, int view, uint64_t from, uint64_t to,
                             pki_device_sums *into)
{
    unsigned kinds = view == MEASURED ? ITEM_WORK | ITEM_COPY : ITEM_SPAN;
    cover all = {.one = one, .kinds = kinds, .from = from, .to = to, .at = one->item_first};
    cover waits = all, work = all, copies = all;
    waits.kinds = ITEM_SYNC;
    if (to <= from)
        return;
    add_busy(all, waits, view, into);
    pki_device_overlap(one, view, from, to, into);
    if (view != MEASURED)
        return;
    work.kinds = ITEM_WORK;
    copies.kinds = ITEM_COPY;
    double alone = length_of(all) - length_of(work);
    into->of[PKI_GPU_COPY] += length_of(copies);
    into->of[PKI_GPU_COPY_ALONE] += alone;
    into->of[PKI_GPU_SYNC] += length_of(waits);
    add_counts(&all, into);
}

/* ---- from intervals to steps, once these are finalised ---- */

static bool was_on(const pki_device *d, uint64_t start, uint64_t end)
{
    for (size_t i = 0; i < d->mark_count; i++)
        if (d->marks[i].start <= start && end <= d->marks[i].end)
            return true;
    return d->mark_count == 0;
}

static bool is_in(const pki_device *d, const pki_device_one *one, int view, uint64_t start,
                  uint64_t end)
{
    return one->first[view] < end && (view != MEASURED || was_on(d, start, end));
}

/* The last value set until then; -1: none. */
static double memory_at(pki_device_one *one, uint64_t ns)
{
    size_t passed = 0;
    while (passed < one->point_count && one->points[passed].ns <= ns)
        passed++;
    if (passed == 0)
        return -1;
    double value = one->points[passed - 1].value;
    one->point_count -= passed - 1;
    memmove(one->points, one->points + passed - 1, one->point_count * sizeof *one->points);
    return value;
}

static void add_to_series(pki_device *d, pki_device_one *one, int view, uint64_t index,
                          const double *of)
{
    pki_gpu_series_row row = {.index = index,
                              .steps = 1,
                              .step = (uint64_t)of[PKI_GPU_STEP],
                              .busy = (uint64_t)of[PKI_GPU_BUSY],
                              .gaps = (uint64_t)of[PKI_GPU_GAPS],
                              .longest_gap = (uint64_t)of[PKI_GPU_LONGEST_GAP],
                              .copy_alone = (uint64_t)of[PKI_GPU_COPY_ALONE],
                              .sync_gaps = (uint64_t)of[PKI_GPU_SYNC_GAPS],
                              .launch_gaps = (uint64_t)of[PKI_GPU_LAUNCH_GAPS],
                              .kernels = (uint64_t)of[PKI_GPU_KERNELS],
                              .comm_hidden = (uint64_t)of[PKI_GPU_COMM_HIDDEN],
                              .comm_exposed = (uint64_t)of[PKI_GPU_COMM_EXPOSED]};
    d->without_room += !pki_device_series_add(&one->series[view], &row);
}

static void keep(pki_device *d, pki_device_one *one, int view, uint64_t index)
{
    const pki_device_sums *sums = &one->part[view];
    add_to_series(d, one, view, index, sums->of);
    if (d->step_count < PKI_STEPS_HEAD) {
        one->head[d->step_count].in[view] = true;
        one->head[d->step_count].sums[view] = *sums;
    } else if (d->step_count >= d->expected_warmup) {
        for (int i = 0; i < PKI_GPU_FIGURES; i++)
            if (pki_device_has_figure(view, i, sums->of[PKI_GPU_MEMORY]))
                d->without_room += !pki_tally_add(&one->tail[view][i], sums->of[i], 1);
    }
}

/* What ended before is done with; what goes on stays in front of what begins later. */
static void drop_swept(pki_device *d, pki_device_one *one)
{
    size_t next = one->item_first;
    while (next < one->item_end && one->items[next].start < one->swept)
        next++;
    size_t kept = next;
    for (size_t i = next; i > one->item_first; i--)
        if (one->items[i - 1].end > one->swept)
            one->items[--kept] = one->items[i - 1];
    d->item_count -= kept - one->item_first;
    one->item_first = kept;
}

static int by_start(const void *a, const void *b)
{
    const pki_device_item *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static void sort(pki_device_one *one)
{
    if (!one->sorted && one->item_end > one->item_first)
        qsort(one->items + one->item_first, one->item_end - one->item_first, sizeof *one->items,
              by_start);
    one->sorted = true;
}

static void sweep_to(pki_device *d, pki_device_one *one, uint64_t from, uint64_t to)
{
    from = PKI_MAX(from, one->swept);
    sort(one);
    for (int view = 0; view < VIEWS; view++)
        pki_device_sweep(one, view, from, to, &one->part[view]);
    one->swept = PKI_MAX(one->swept, to);
    drop_swept(d, one);
}

static void close_step(pki_device *d, pki_device_one *one, const pki_device_step_window *step)
{
    double memory = memory_at(one, step->end);
    sweep_to(d, one, step->start, step->end);
    for (int view = 0; view < VIEWS; view++) {
        one->part[view].of[PKI_GPU_STEP] = (double)(step->end - step->start);
        one->part[view].of[PKI_GPU_MEMORY] = memory;
        if (step->counts && is_in(d, one, view, step->start, step->end))
            keep(d, one, view, step->index);
    }
    memset(one->part, 0, sizeof one->part);
}

static void close_oldest(pki_device *d)
{
    pki_device_step_window step = d->steps[d->step_first];
    d->step_first = (d->step_first + 1) % d->step_room;
    d->step_used--;
    for (size_t i = 0; i < d->count; i++)
        close_step(d, d->ones[i], &step);
    d->step_count += step.counts;
}

static void close_finalised(pki_device *d)
{
    while (d->step_used && d->steps[d->step_first].end <= d->finalised)
        close_oldest(d);
}

static bool make_step_room(pki_device *d)
{
    if (d->step_used < d->step_room)
        return true;
    size_t room = PKI_MAX(64u, 2 * d->step_room);
    pki_device_step_window *steps = room <= PKI_DEVICE_STEPS ? malloc(room * sizeof *steps) : NULL;
    if (!steps)
        return false;
    for (size_t i = 0; i < d->step_used; i++)
        steps[i] = d->steps[(d->step_first + i) % d->step_room];
    free(d->steps);
    d->steps = steps;
    d->step_first = 0;
    d->step_room = room;
    return true;
}

void pki_device_step(pki_device *d, const pki_step *step)
{
    if (!d)
        return;
    bool counts = !step->kind && !step->between;
    if (!make_step_room(d)) {
        if (!d->step_used) { /* no memory at all */
            d->step_count += counts;
            return;
        }
        close_oldest(d);
    }
    d->steps[(d->step_first + d->step_used++) % d->step_room] =
        (pki_device_step_window){step->index, step->start, step->start + step->duration, counts};
    if (d->alone)
        close_oldest(d);
    close_finalised(d);
}

void pki_device_await(pki_device *d, bool anybody)
{
    if (d)
        d->alone = !anybody;
}

void pki_device_finalised(pki_device *d, uint64_t ns)
{
    if (!d)
        return;
    d->finalised = PKI_MAX(d->finalised, ns);
    close_finalised(d);
}

void pki_device_measures(pki_device *d, uint64_t ns, bool on)
{
    if (!d)
        return;
    pki_device_window *last = d->mark_count ? &d->marks[d->mark_count - 1] : NULL;
    bool open = last && last->end == UINT64_MAX;
    if (!on && last)
        last->end = PKI_MIN(last->end, ns);
    if (on && open)
        last->start = PKI_MAX(last->start, ns);
    if (!on || open)
        return;
    if (d->mark_count == PKI_DEVICE_MARKS)
        memmove(d->marks, d->marks + 1, --d->mark_count * sizeof *d->marks);
    d->marks[d->mark_count++] = (pki_device_window){ns, UINT64_MAX};
}

/* ---- too many that wait ---- */

bool pki_device_full(const pki_device *d)
{
    return d && d->item_count >= d->items_most;
}

/* A gap has to lie in one part whole, so parts end where something begins on the device. */
static uint64_t last_begin(const pki_device_one *one, uint64_t before)
{
    uint64_t work = 0, span = 0;
    for (size_t i = one->item_first; i < one->item_end; i++) {
        const pki_device_item *item = &one->items[i];
        if (item->start > before)
            continue;
        if (item->kind & (ITEM_WORK | ITEM_COPY))
            work = PKI_MAX(work, item->start);
        else if (item->kind == ITEM_SPAN)
            span = PKI_MAX(span, item->start);
    }
    return work ? work : span;
}

static void sweep_all(pki_device *d, uint64_t before)
{
    for (size_t i = 0; i < d->count; i++) {
        pki_device_one *one = d->ones[i];
        sweep_to(d, one, one->swept, last_begin(one, before));
    }
}

void pki_device_make_room(pki_device *d)
{
    size_t enough = d->items_most - d->items_most / 4;
    if (d->step_used == 0)
        sweep_all(d, d->finalised);
    while (d->step_used && d->item_count > enough)
        close_oldest(d);
    if (d->item_count > enough)
        sweep_all(d, UINT64_MAX);
}

/* ---- how a device's steps went over the run, in bounded room ---- */

static void join(void *into, const void *from)
{
    pki_gpu_series_row *row = into;
    const pki_gpu_series_row *next = from;
    if (row->steps == 0) {
        *row = *next;
        return;
    }
    row->steps += next->steps;
    row->step += next->step;
    row->busy += next->busy;
    row->gaps += next->gaps;
    row->longest_gap = PKI_MAX(row->longest_gap, next->longest_gap);
    row->copy_alone += next->copy_alone;
    row->sync_gaps += next->sync_gaps;
    row->launch_gaps += next->launch_gaps;
    row->kernels += next->kernels;
    row->comm_hidden += next->comm_hidden;
    row->comm_exposed += next->comm_exposed;
}

static const pki_series_kind series_steps = {.row_bytes = sizeof(pki_gpu_series_row),
                                             .first_room = 32,
                                             .most = PKI_DEVICE_SERIES_MOST,
                                             .first_stride = 1,
                                             .join = join};

bool pki_device_series_add(pki_series *s, const pki_gpu_series_row *step)
{
    pki_gpu_series_row *row = pki_series_next(s, &series_steps);
    if (row)
        join(row, step);
    return row != NULL;
}
