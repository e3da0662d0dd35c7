/* lib/measure/device/sweep.c - a step's window over the intervals of a device. */
#include "measure/device/state.h"

#include "base/compiler.h"

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

void pki_device_sweep(const pki_device_one *one, int view, uint64_t from, uint64_t to,
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
