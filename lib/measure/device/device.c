#include "measure/device/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "base/text.h"
#include "core/record.h"
#include "measure/device/state.h"

/* ---- distributions by kernel, and by the region that launched ---- */

#define NAME_BYTES 1000 /* that tell kernels apart; templates make long ones */

/* ---- regions ---- */

static pki_device_region *region_of(pki_device *d, uint32_t id)
{
    if (id >= PKI_STEPS_IDS ||
        !pki_array_fit(&d->regions, &d->region_room, id + (size_t)1, sizeof *d->regions))
        return NULL;
    return &d->regions[id];
}

static void span_counted(pki_device *d, const pki_activity *a, uint64_t ns)
{
    pki_device_region *region = a->region ? region_of(d, a->region) : NULL;
    if (a->region)
        d->without_room += !region || !pki_tally_add(&region->spans, (double)ns, 1);
}

static const pki_device_region *known_region(const pki_device *d, uint32_t id)
{
    static const pki_device_region none;
    return d && id < d->region_room ? &d->regions[id] : &none;
}

bool pki_device_has_region(const pki_device *d, uint32_t region)
{
    const pki_device_region *known = known_region(d, region);
    return known->spans.moments.count + known->kernels.moments.count > 0;
}

pki_dist pki_device_region_spans(const pki_device *d, uint32_t region)
{
    return pki_tally_dist(&known_region(d, region)->spans);
}

pki_dist pki_device_region_kernels(const pki_device *d, uint32_t region)
{
    return pki_tally_dist(&known_region(d, region)->kernels);
}

/* ---- kernels ---- */

static bool is_named(const pki_device_kernel *k, uint32_t hash, const char *name, size_t length)
{
    return k->hash == hash && strlen(k->name) == length && memcmp(k->name, name, length) == 0;
}

/* NULL if it is one too many, or without memory. */
static pki_device_kernel *make_kernel(pki_device *d, uint32_t hash, const char *name, size_t length)
{
    if (d->kernel_count == PKI_DEVICE_KERNELS)
        return NULL;
    pki_device_kernel *k = calloc(1, sizeof *k);
    char *copy = k ? strndup(name, length) : NULL;
    if (!copy) {
        free(k);
        return NULL;
    }
    k->name = copy;
    k->hash = hash;
    d->kernel_count++;
    return k;
}

static pki_device_kernel *kernel_of(pki_device *d, const pki_activity *a)
{
    const char *name = a->name ? a->name : "";
    size_t length = strnlen(name, PKI_MIN(a->name_length, NAME_BYTES));
    uint32_t hash = pki_hash(name, length, 0), at = hash % PKI_COUNT_OF(d->kernels);
    while (d->kernels[at] && !is_named(d->kernels[at], hash, name, length))
        at = (at + 1) % PKI_COUNT_OF(d->kernels);
    if (!d->kernels[at])
        d->kernels[at] = make_kernel(d, hash, name, length);
    return d->kernels[at] ? d->kernels[at] : &d->other_kernels;
}

/* Regions beyond those that there is room for have no share in the kernel's time: the one that is
 * named has the most of the first ones. */
static void credit(pki_device_kernel *k, uint32_t region, uint64_t ns)
{
    size_t i = 0;
    while (i < k->launcher_count && k->launchers[i].region != region)
        i++;
    if (i == PKI_COUNT_OF(k->launchers))
        return;
    if (i == k->launcher_count)
        k->launchers[k->launcher_count++].region = region;
    k->launchers[i].ns += ns;
}

static void kernel_counted(pki_device *d, const pki_activity *a, uint64_t ns)
{
    pki_device_kernel *k = kernel_of(d, a);
    pki_device_region *region = a->region ? region_of(d, a->region) : NULL;
    credit(k, a->region, ns);
    bool fits = pki_tally_add(&k->time, (double)ns, 1) &&
                (!a->region || (region && pki_tally_add(&region->kernels, (double)ns, 1)));
    d->without_room += !fits;
}

static void free_names(pki_device *d)
{
    for (size_t i = 0; i < PKI_COUNT_OF(d->kernels); i++)
        if (d->kernels[i]) {
            pki_tally_finish(&d->kernels[i]->time);
            free(d->kernels[i]->name);
            free(d->kernels[i]);
        }
    pki_tally_finish(&d->other_kernels.time);
    for (size_t i = 0; i < d->region_room; i++) {
        pki_tally_finish(&d->regions[i].spans);
        pki_tally_finish(&d->regions[i].kernels);
    }
    free(d->regions);
}

/* ---- what devices did, alone and in each step of the loop ---- */

#define POINTS_MOST 65536 /* of memory in use, that wait for their step */

pki_device *pki_device_create(size_t items_most)
{
    pki_device *d = pki_mem_zeroed(sizeof *d);
    if (d)
        d->items_most = items_most;
    return d;
}

static void destroy_one(pki_device_one *one)
{
    for (int view = 0; view < VIEWS; view++) {
        for (int i = 0; i < PKI_GPU_FIGURES; i++)
            pki_tally_finish(&one->tail[view][i]);
        pki_series_finish(&one->series[view]);
    }
    free(one->items);
    free(one->points);
    free(one->head);
    free(one);
}

void pki_device_destroy(pki_device *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->count; i++)
        destroy_one(d->ones[i]);
    free_names(d);
    free(d->steps);
    free(d);
}

void pki_device_expect_warmup(pki_device *d, uint32_t warmup_steps)
{
    if (d && d->step_count == 0)
        d->expected_warmup = warmup_steps;
}

size_t pki_device_how_many(const pki_device *d)
{
    return d ? d->count : 0;
}

/* ---- activities ---- */

static pki_device_one *create_one(uint32_t device)
{
    pki_device_one *one = calloc(1, sizeof *one);
    if (!one)
        return NULL;
    one->device = one->totals.device = device;
    one->first[MEASURED] = one->first[SPANS] = UINT64_MAX;
    one->head = calloc(PKI_STEPS_HEAD, sizeof *one->head);
    if (one->head)
        return one;
    free(one);
    return NULL;
}

/* Kept by ordinal. NULL without memory, or if there are too many. */
static pki_device_one *one_of(pki_device *d, uint32_t device)
{
    size_t place = 0;
    while (place < d->count && d->ones[place]->device < device)
        place++;
    if (place < d->count && d->ones[place]->device == device)
        return d->ones[place];
    pki_device_one *one = d->count < PKI_DEVICES_MOST ? create_one(device) : NULL;
    if (!one)
        return NULL;
    memmove(&d->ones[place + 1], &d->ones[place], (d->count - place) * sizeof(pki_device_one *));
    d->ones[place] = one;
    d->count++;
    return one;
}

static bool make_item_room(pki_device_one *one)
{
    if (one->item_end < one->item_room)
        return true;
    if (one->item_first > one->item_room / 2) {
        one->item_end -= one->item_first;
        memmove(one->items, one->items + one->item_first, one->item_end * sizeof *one->items);
        one->item_first = 0;
        return true;
    }
    return pki_array_fit(&one->items, &one->item_room, one->item_end + 1, sizeof *one->items);
}

static void push(pki_device *d, pki_device_one *one, const pki_device_item *item)
{
    d->late += item->start < one->swept;
    if (item->end <= one->swept && one->swept)
        return;
    if (!make_item_room(one)) {
        d->without_room++;
        return;
    }
    one->sorted &=
        one->item_end == one->item_first || one->items[one->item_end - 1].start <= item->start;
    one->items[one->item_end++] = *item;
    d->item_count++;
}

static void note(uint32_t *list, size_t *count, size_t most, uint32_t value)
{
    for (size_t i = 0; i < *count; i++)
        if (list[i] == value)
            return;
    if (*count < most)
        list[(*count)++] = value;
}

/* Contexts have the numbers that CUPTI gives them; those of spans are others. Collectives that
 * events time lie on tracks of their communicators. */
static void note_track(pki_device_one *one, const pki_activity *a)
{
    if (a->kind == PKI_ACTIVITY_OPERATION)
        return;
    note(one->tracks, &one->track_count, PKI_COUNT_OF(one->tracks), a->track);
    if (a->kind != PKI_ACTIVITY_SPAN)
        note(one->contexts, &one->context_count, PKI_COUNT_OF(one->contexts), a->context);
}

static void count_copy(pki_gpu_row *totals, const pki_activity *a, uint64_t ns)
{
    static const int direction_of[PKI_COPY_KINDS] = {[PKI_COPY_HTOD] = 1 + PKI_H2D,
                                                     [PKI_COPY_DTOH] = 1 + PKI_D2H,
                                                     [PKI_COPY_DTOD] = 1 + PKI_D2D,
                                                     [PKI_COPY_PTOP] = 1 + PKI_P2P};
    int direction = (unsigned)a->copy < PKI_COPY_KINDS ? direction_of[a->copy] : 0;
    if (!direction)
        return;
    pki_gpu_copies *copies = &totals->copies[direction - 1];
    copies->count++;
    copies->time += ns;
    copies->bytes += a->bytes;
}

static void count_kernel(pki_gpu_row *totals, bool graph, uint64_t ns)
{
    totals->graphs += graph;
    totals->graph_time += graph ? ns : 0;
    totals->kernels++;
    totals->short_kernels += ns < PKI_GPU_SHORT_NS;
    totals->kernel_time += ns;
}

/* A stream that waits for an event holds up no thread. */
static bool holds_up_a_thread(const pki_activity *a)
{
    static const char other[] = "Stream Wait Event";
    return !(a->name && a->name_length == strlen(other) &&
             memcmp(a->name, other, strlen(other)) == 0);
}

/* As PyTorch's tools know them: ncclDevKernel_AllReduce..., ncclKernel_... */
static bool is_nccl(const pki_activity *a)
{
    return a->name_length >= 4 && memcmp(a->name, "nccl", 4) == 0;
}

static bool is_collective(const pki_activity *a)
{
    return a->kind == PKI_ACTIVITY_OPERATION ||
           (a->kind == PKI_ACTIVITY_KERNEL && a->name && is_nccl(a));
}

static unsigned item_kind(const pki_activity *a)
{
    switch (a->kind) {
    case PKI_ACTIVITY_KERNEL:
    case PKI_ACTIVITY_GRAPH:
    case PKI_ACTIVITY_MEMSET:
        return ITEM_WORK;
    case PKI_ACTIVITY_MEMCPY:
        return ITEM_COPY;
    case PKI_ACTIVITY_SPAN:
    case PKI_ACTIVITY_OPERATION:
        return ITEM_SPAN;
    case PKI_ACTIVITY_SYNC:
        return holds_up_a_thread(a) ? ITEM_SYNC : 0;
    default:
        return 0;
    }
}

static void count(pki_device *d, pki_gpu_row *totals, const pki_activity *a, uint64_t ns)
{
    switch (a->kind) {
    case PKI_ACTIVITY_KERNEL:
    case PKI_ACTIVITY_GRAPH:
        count_kernel(totals, a->kind == PKI_ACTIVITY_GRAPH, ns);
        kernel_counted(d, a, ns);
        break;
    case PKI_ACTIVITY_MEMCPY:
        count_copy(totals, a, ns);
        break;
    case PKI_ACTIVITY_MEMSET:
        totals->memsets++;
        break;
    case PKI_ACTIVITY_SPAN:
        totals->spans++;
        span_counted(d, a, ns);
        break;
    case PKI_ACTIVITY_OPERATION:
        totals->collectives++;
        break;
    default:
        break;
    }
}

static void count_overhead(pki_device *d, const pki_activity *a)
{
    d->overhead_count++;
    d->overhead += pki_not_negative(a->end - a->start);
}

static void add_item(pki_device *d, pki_device_one *one, const pki_activity *a, unsigned kind)
{
    pki_device_item item = {.start = a->start,
                            .end = PKI_MAX(a->start, a->end),
                            .bytes = a->bytes,
                            .kind = (uint8_t)kind,
                            .copy = (uint8_t)((unsigned)a->copy < PKI_COPY_KINDS ? a->copy : 0),
                            .kernel =
                                a->kind == PKI_ACTIVITY_KERNEL || a->kind == PKI_ACTIVITY_GRAPH,
                            .comm = is_collective(a),
                            .stream = a->stream};
    if (kind != ITEM_SYNC) {
        int view = kind == ITEM_SPAN ? SPANS : MEASURED;
        one->first[view] = PKI_MIN(one->first[view], item.start);
        one->has_comm[view] |= item.comm;
        note_track(one, a);
    }
    count(d, &one->totals, a, item.end - item.start);
    push(d, one, &item);
}

static bool has_context(const pki_device_one *one, uint32_t context)
{
    for (size_t i = 0; i < one->context_count; i++)
        if (one->contexts[i] == context)
            return true;
    return false;
}

/* Waits are recorded with the context that they are for. One that nothing is known of may be that
 * of any device. */
static void add_wait(pki_device *d, const pki_activity *a)
{
    bool known = false;
    for (size_t i = 0; i < d->count; i++)
        known |= has_context(d->ones[i], a->context);
    for (size_t i = 0; i < d->count; i++)
        if (!known || has_context(d->ones[i], a->context))
            add_item(d, d->ones[i], a, ITEM_SYNC);
}

void pki_device_add(pki_device *d, const pki_activity *a)
{
    unsigned kind = d ? item_kind(a) : 0;
    if (d && a->kind == PKI_ACTIVITY_OVERHEAD)
        count_overhead(d, a);
    if (kind == ITEM_SYNC && a->device == PKI_NO_DEVICE)
        add_wait(d, a);
    if (!kind || a->device == PKI_NO_DEVICE)
        return;
    pki_device_one *one = one_of(d, a->device);
    if (one)
        add_item(d, one, a, kind);
    else
        d->without_room++;
}

bool pki_device_is_memory(const char *counter, uint32_t *device)
{
    if (strncmp(counter, "gpu", 3) != 0 || counter[3] < '0' || counter[3] > '9')
        return false;
    char *rest;
    unsigned long ordinal = strtoul(counter + 3, &rest, 10);
    *device = (uint32_t)ordinal;
    return ordinal < PKI_NO_DEVICE && strcmp(rest, ".memory") == 0;
}

static bool make_point_room(pki_device_one *one)
{
    if (one->point_count == POINTS_MOST) { /* without steps only the last one is of interest */
        one->point_count /= 2;
        memmove(one->points, one->points + POINTS_MOST - one->point_count,
                one->point_count * sizeof *one->points);
        return true;
    }
    return pki_array_fit(&one->points, &one->point_room, one->point_count + 1, sizeof *one->points);
}

void pki_device_memory(pki_device *d, uint32_t device, uint64_t ns, double bytes)
{
    pki_device_one *one = d ? one_of(d, device) : NULL;
    if (!one || !(bytes >= 0))
        return;
    if (!make_point_room(one)) {
        d->without_room++;
        return;
    }
    size_t place = one->point_count++;
    for (; place && one->points[place - 1].ns > ns; place--)
        one->points[place] = one->points[place - 1];
    one->points[place] = (pki_device_point){ns, bytes};
}
