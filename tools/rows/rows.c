#include "rows/layout.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64u

rows *rows_create(const rows_wish *wish)
{
    rows *r = memory_zeroed(1, sizeof *r);
    r->wish = *wish;
    return r;
}

/* All but the names. */
static void finish_rows(rows *r)
{
    for (size_t t = 0; t < ROWS_TABLES; t++)
        for (size_t p = 0; p < ROWS_PARTS; p++)
            free(r->parts[t][p].data);
    free(r->files.data);
    free(r->regions.data);
    free(r->tracks.data);
    table_finish(&r->region_keys);
    table_finish(&r->track_keys);
    table_finish(&r->process_keys);
}

void rows_destroy(rows *r)
{
    if (!r)
        return;
    finish_rows(r);
    table_finish(&r->names);
    free(r);
}

void rows_forget(rows *r)
{
    finish_rows(r);
    *r = (rows){.wish = r->wish,
                .names = r->names,
                .files_before = r->files_before + r->files.count,
                .calls_before = r->calls_before + r->parts[ROWS_CALLS][0].count};
}

void *rows_push(part *p, size_t width)
{
    if (p->count == p->room) {
        p->room = p->room ? p->room + p->room / 2 : FIRST_ROOM;
        p->data = memory_resized(p->data, p->room * width);
    }
    return memset(p->data + p->count++ * width, 0, width);
}

void *rows_append(rows *r, rows_table of, unsigned part_of)
{
    return rows_push(&r->parts[of][part_of], rows_widths[of][part_of]);
}

bool rows_wants_part(const rows *r, rows_table of, unsigned part_of)
{
    const rows_about *about = rows_about_table(of);
    for (size_t i = 0; i < about->count; i++)
        if ((r->wish.columns[of] >> i & 1) && about->columns[i].part == part_of)
            return true;
    return false;
}

uint32_t rows_name(rows *r, const char *name)
{
    return name && name[0] ? table_add(&r->names, name) : ROWS_NONE;
}

const char *rows_name_of(const rows *r, uint32_t id)
{
    return id < r->names.count ? r->names.texts[id] : NULL;
}

uint64_t rows_count(const rows *r, rows_table of)
{
    return r->parts[of][0].count;
}

size_t rows_first(const rows *r, rows_table of, size_t file)
{
    if (file >= r->files.count)
        return r->parts[of][0].count;
    const file_start *start = rows_at(&r->files, sizeof *start, file);
    return start->first[of];
}

file_row *rows_file(const rows *r, size_t file)
{
    return rows_at(&r->parts[ROWS_FILES][0], sizeof(file_row), file);
}
