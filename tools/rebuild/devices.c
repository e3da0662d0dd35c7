/* tools/rebuild/devices.c - what devices did, as the session would have found it
 * (measure/device/device.h). */
#include "rebuild/state.h"

#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

/* Regions are told by their names alone. Ids from 1 on; 0: none, or one of too many. */
bool rebuild_find_launcher(rebuild *r, const event *e, uint32_t *id)
{
    const char *name = event_launcher(e);
    *id = 0;
    if (!name[0])
        return true;
    uint32_t found = table_find(&r->launchers, name);
    if (found == TABLE_NONE && r->launchers.count >= REBUILD_NAMES_MOST)
        return true;
    found = found == TABLE_NONE ? table_add(&r->launchers, name) : found;
    *id = found + 1;
    return found != TABLE_NONE;
}

static bool find_stream(rebuild *r, const event *e, uint32_t *id)
{
    uint32_t found = table_find(&r->streams, e->track);
    if (found == TABLE_NONE && r->streams.count < REBUILD_THREADS_MOST)
        found = table_add(&r->streams, e->track);
    else if (found == TABLE_NONE)
        found = REBUILD_THREADS_MOST;
    *id = found + 1;
    return found != TABLE_NONE;
}

bool rebuild_activity(rebuild *r, const event *e)
{
    pki_activity a = e->activity;
    r->activities++;
    if (!rebuild_find_launcher(r, e, &a.region) || !find_stream(r, e, &a.track))
        return false;
    r->first = PKI_MIN(r->first, e->start);
    r->last = PKI_MAX(r->last, e->end);
    if (pki_device_full(r->device))
        pki_device_make_room(r->device);
    pki_device_add(r->device, &a);
    return true;
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
    uint32_t room, *rows; /* by name */
} row_index;

static bool index_row(row_index *index, const char *name, size_t row)
{
    uint32_t known = index->names.count, id = table_add(&index->names, name);
    if (id == TABLE_NONE || !rebuild_grow(&index->rows, &index->room, id, sizeof *index->rows))
        return false;
    if (id == known)
        index->rows[id] = (uint32_t)row;
    return true;
}

static bool index_rows(row_index *index, const pki_summary *out)
{
    for (size_t i = 0; i < out->region_count; i++)
        if (!index_row(index, out->regions[i].name, i))
            return false;
    return true;
}

static pki_region_row *append_row(pki_summary *out, const char *name)
{
    pki_region_row *grown = realloc(out->regions, (out->region_count + 1) * sizeof *grown);
    char *copy = grown ? strdup(name) : NULL;
    out->regions = grown ? grown : out->regions;
    if (!copy)
        return NULL;
    grown[out->region_count] = (pki_region_row){.name = copy};
    return &grown[out->region_count++];
}

static bool fill_region(const rebuild *r, const row_index *index, uint32_t id, pki_summary *out)
{
    const char *name = r->launchers.texts[id - 1];
    uint32_t known = table_find(&index->names, name);
    pki_region_row *row =
        known == TABLE_NONE ? append_row(out, name) : &out->regions[index->rows[known]];
    if (!row)
        return false;
    row->gpu = pki_device_region_spans(r->device, id);
    row->kernels = pki_device_region_kernels(r->device, id);
    return true;
}

static bool fill_regions(const rebuild *r, pki_summary *out)
{
    row_index index = {0};
    bool fits = index_rows(&index, out);
    for (uint32_t id = 1; fits && id <= r->launchers.count; id++)
        if (pki_device_has_region(r->device, id))
            fits = fill_region(r, &index, id, out);
    table_finish(&index.names);
    free(index.rows);
    pki_regions_sort(out->regions, out->region_count);
    return fits;
}

bool rebuild_fill_devices(rebuild *r, pki_summary *out)
{
    pki_device_finalised(r->device, UINT64_MAX);
    out->activities.count = r->activities;
    return (r->launchers.count == 0 || fill_regions(r, out)) &&
           pki_device_fill(r->device, out->steps.warmup, rebuild_launcher_name, r, out);
}
