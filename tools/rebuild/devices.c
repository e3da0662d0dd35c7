/* tools/rebuild/devices.c - what devices did, as the session would have found it
 * (measure/device/device.h). */
#include "rebuild/state.h"

#include "base/compiler.h"
#include "memory.h"

#include <stdlib.h>

/* Regions are distinguished by their names alone. */
uint32_t rebuild_launcher(rebuild *r, const event *e)
{
    const char *name = event_launcher(e);
    if (!name[0])
        return 0;
    if (r->launchers.count >= REBUILD_NAMES_MOST)
        return table_find(&r->launchers, name) + 1; /* TABLE_NONE + 1 is 0 */
    return table_add(&r->launchers, name) + 1;
}

static uint32_t stream_of(rebuild *r, const event *e)
{
    uint32_t found = table_find(&r->streams, e->track);
    if (found == TABLE_NONE)
        found = r->streams.count < REBUILD_THREADS_MOST ? table_add(&r->streams, e->track)
                                                        : REBUILD_THREADS_MOST;
    return found + 1;
}

void rebuild_activity(rebuild *r, const event *e)
{
    pki_activity a = e->activity;
    r->activities++;
    a.region = rebuild_launcher(r, e);
    a.track = stream_of(r, e);
    r->first = PKI_MIN(r->first, e->start);
    r->last = PKI_MAX(r->last, e->end);
    if (pki_device_full(r->device))
        pki_device_make_room(r->device);
    pki_device_add(r->device, &a);
}

void rebuild_sample(rebuild *r, const event *e, double value)
{
    uint32_t device;
    if (pki_device_is_memory(e->name, &device))
        pki_device_memory(r->device, device, e->start, value);
}

/* ---- into the summary ---- */

const char *rebuild_launcher_name(void *user, uint32_t id)
{
    const rebuild *r = user;
    return id && id <= r->launchers.count ? r->launchers.texts[id - 1] : NULL;
}

/* Rows by name: those of a region's name, the first of them if it has several kinds. */
typedef struct row_index {
    table names;
    size_t room;
    uint32_t *rows; /* by name */
} row_index;

static void index_rows(row_index *index, const pki_summary *out)
{
    for (size_t i = 0; i < out->region_count; i++) {
        uint32_t known = index->names.count, id = table_add(&index->names, out->regions[i].name);
        memory_fit(&index->rows, &index->room, id + (size_t)1, sizeof *index->rows);
        if (id == known)
            index->rows[id] = (uint32_t)i;
    }
}

static pki_region_row *append_row(pki_summary *out, const char *name)
{
    out->regions = memory_resized(out->regions, (out->region_count + 1) * sizeof *out->regions);
    out->regions[out->region_count] = (pki_region_row){.name = memory_copy(name)};
    return &out->regions[out->region_count++];
}

static void fill_region(const rebuild *r, const row_index *index, uint32_t id, pki_summary *out)
{
    const char *name = r->launchers.texts[id - 1];
    uint32_t known = table_find(&index->names, name);
    pki_region_row *row =
        known == TABLE_NONE ? append_row(out, name) : &out->regions[index->rows[known]];
    row->gpu = pki_device_region_spans(r->device, id);
    row->kernels = pki_device_region_kernels(r->device, id);
}

static void fill_regions(const rebuild *r, pki_summary *out)
{
    row_index index = {0};
    index_rows(&index, out);
    for (uint32_t id = 1; id <= r->launchers.count; id++)
        if (pki_device_has_region(r->device, id))
            fill_region(r, &index, id, out);
    table_finish(&index.names);
    free(index.rows);
    pki_regions_sort(out->regions, out->region_count);
}

void rebuild_fill_devices(rebuild *r, pki_summary *out)
{
    pki_device_finalised(r->device, UINT64_MAX);
    out->activities.count = r->activities;
    if (r->launchers.count)
        fill_regions(r, out);
    memory_needed(pki_device_fill(r->device, out->steps.warmup, rebuild_launcher_name, r, out));
}
