/* tools/rows/cell.c - what stands in a row's column. */
#include "rows/layout.h"

#include "base/compiler.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static cell integer(int64_t value)
{
    return (cell){.type = CELL_INTEGER, .integer = value};
}

/* SQL has no number above 2^63 - 1. */
static cell count(uint64_t value)
{
    return integer((int64_t)PKI_MIN(value, (uint64_t)INT64_MAX));
}

static cell real(double value)
{
    return (cell){.type = isfinite(value) ? CELL_REAL : CELL_NULL, .real = value};
}

static cell text(const char *value)
{
    return (cell){.type = value ? CELL_TEXT : CELL_NULL, .text = value};
}

static cell optional(uint32_t value)
{
    return value == ROWS_NONE ? (cell){.type = CELL_NULL} : integer(value);
}

static uint64_t u64_at(const char *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static uint32_t u32_at(const char *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static const rows_region *region_of(const rows *r, uint32_t id)
{
    return rows_at(&r->regions, sizeof(rows_region), id);
}

static const rows_track *track_of(const rows *r, uint32_t id)
{
    return rows_at(&r->tracks, sizeof(rows_track), id & TRACK_MASK);
}

/* ---- where a row belongs ---- */

static size_t file_of(rows *r, rows_table of, size_t row)
{
    size_t *file = &r->memo[of].file, last = r->files.count - 1;
    if (rows_first(r, of, *file) > row)
        *file = 0;
    while (*file < last && rows_first(r, of, *file + 1) <= row)
        ++*file;
    return *file;
}

static const step_row *step_at(const rows *r, size_t i)
{
    return rows_at(&r->parts[ROWS_STEPS][0], sizeof(step_row), i);
}

static bool is_in(const step_row *s, uint64_t moment)
{
    return s->start <= moment && moment - s->start < s->duration;
}

/* The first step of [first, end) that begins after that moment, all being one process's. */
static size_t search(const rows *r, size_t first, size_t end, uint64_t moment)
{
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (step_at(r, middle)->start <= moment)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* The end of those of one process, which are in order. */
static size_t end_of_process(const rows *r, size_t first, size_t end)
{
    uint32_t process = step_at(r, first)->process;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (step_at(r, middle)->process == process)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* The process of what has a track; ROWS_NONE: any. */
static uint32_t process_of(const rows *r, rows_table of, size_t row)
{
    if (of != ROWS_CALLS && of != ROWS_ACTIVITIES)
        return ROWS_NONE;
    const part *p = &r->parts[of][0];
    const char *at = rows_at(p, rows_widths[of][0], row);
    size_t offset = of == ROWS_CALLS ? offsetof(call_row, track) : offsetof(activity_row, track);
    return track_of(r, u32_at(at + offset))->process;
}

/* In a file that several processes were joined into, a step of the process; if it has none, as a
 * device has none, of any. False: it was in none. */
static bool find_step(rows *r, rows_table of, size_t row, uint64_t moment, size_t *found)
{
    size_t file = file_of(r, of, row), first = rows_first(r, ROWS_STEPS, file);
    size_t end = rows_first(r, ROWS_STEPS, file + 1);
    uint32_t process = process_of(r, of, row);
    bool any = false;
    for (size_t next; first < end; first = next) {
        bool own = step_at(r, first)->process == process;
        next = end_of_process(r, first, end);
        size_t at = search(r, first, next, moment);
        bool in = at > first && is_in(step_at(r, at - 1), moment);
        if (in && (own || !any))
            *found = at - 1;
        if (own)
            return in;
        any |= in;
    }
    return any;
}

static cell step_of(rows *r, rows_table of, size_t row, uint64_t moment)
{
    size_t *at = &r->memo[of].step, file = file_of(r, of, row);
    uint32_t process = process_of(r, of, row);
    bool near = *at >= rows_first(r, ROWS_STEPS, file) &&
                *at < rows_first(r, ROWS_STEPS, file + 1) && is_in(step_at(r, *at), moment) &&
                (process == ROWS_NONE || process == step_at(r, *at)->process);
    if (near || find_step(r, of, row, moment, at))
        return count(step_at(r, *at)->step);
    return (cell){.type = CELL_NULL};
}

static cell file_cell(rows *r, rows_table of, size_t row, rows_form form, uint64_t start)
{
    const file_row *f = rows_file(r, file_of(r, of, row));
    if (form == FORM_FILE)
        return integer(f->file);
    if (form == FORM_RANK)
        return f->rank < 0 ? (cell){.type = CELL_NULL} : integer(f->rank);
    return f->start_unix ? count(f->start_unix + start) : (cell){.type = CELL_NULL};
}

/* ---- what it says ---- */

static cell signed_or_none(const char *p)
{
    int32_t value = (int32_t)u32_at(p);
    return value < 0 ? (cell){.type = CELL_NULL} : integer(value);
}

static double real_at(const char *p)
{
    double value;
    memcpy(&value, p, sizeof value);
    return value;
}

static uint64_t whole_at(const char *p)
{
    return real_at(p) > 0 ? (uint64_t)real_at(p) : 0;
}

static const char *text_at(const char *p)
{
    const char *value;
    memcpy(&value, p, sizeof value);
    return value;
}

static cell named_cell(const rows *r, rows_form form, const char *p)
{
    uint32_t id = u32_at(p);
    switch (form) {
    case FORM_REGION:
        return text(rows_name_of(r, region_of(r, id)->name));
    case FORM_REGION_KIND:
        return text(pki_kind_names[region_of(r, id)->kind]);
    case FORM_TRACK:
        return track_of(r, id)->tid ? integer(track_of(r, id)->tid) : (cell){.type = CELL_NULL};
    case FORM_TRACK_NAME:
        return text(rows_name_of(r, track_of(r, id)->name));
    case FORM_UNBALANCED:
        return integer(id > TRACK_MASK);
    case FORM_PARENT:
        return id ? count(r->calls_before + id) : (cell){.type = CELL_NULL};
    default:
        return text(rows_name_of(r, id));
    }
}

static cell member_cell(const rows *r, rows_form form, const char *p)
{
    switch (form) {
    case FORM_U64:
        return count(u64_at(p));
    case FORM_COUNT:
        return u64_at(p) ? count(u64_at(p)) : (cell){.type = CELL_NULL};
    case FORM_KNOWN:
        return u64_at(p) == UINT64_MAX ? (cell){.type = CELL_NULL} : count(u64_at(p));
    case FORM_U32:
        return optional(u32_at(p));
    case FORM_I32:
        return signed_or_none(p);
    case FORM_BOOL:
        return integer(*p != 0);
    case FORM_US:
        return u64_at(p) == UINT64_MAX ? (cell){.type = CELL_NULL} : real((double)u64_at(p) / 1000);
    case FORM_REAL:
        return real(real_at(p));
    case FORM_BITS:
        return u64_at(p + sizeof(uint64_t)) ? integer((int64_t)u64_at(p))
                                            : (cell){.type = CELL_NULL};
    case FORM_WHOLE:
        return count(whole_at(p));
    case FORM_SOME:
        return whole_at(p) ? count(whole_at(p)) : (cell){.type = CELL_NULL};
    case FORM_KIND:
        return text(pki_kind_names[u32_at(p)]);
    case FORM_TEXT:
        return text(text_at(p));
    default:
        return named_cell(r, form, p);
    }
}

static cell end_cell(uint64_t start, uint64_t duration)
{
    return duration == UINT64_MAX ? (cell){.type = CELL_NULL} : count(start + duration);
}

cell rows_cell(rows *r, rows_table of, uint64_t row, unsigned column)
{
    const rows_column *c = &rows_about_table(of)->columns[column];
    size_t width = rows_widths[of][c->part], i = (size_t)row;
    const part *p = &r->parts[of][c->part];
    if (i >= p->count)
        return (cell){.type = CELL_NULL}; /* nobody wished for this part */
    const char *at = rows_at(p, width, i);
    switch ((rows_form)c->form) {
    case FORM_FILE:
    case FORM_RANK:
        return file_cell(r, of, i, (rows_form)c->form, 0);
    case FORM_UNIX:
        return file_cell(r, of, i, FORM_UNIX, u64_at(at));
    case FORM_STEP:
        return step_of(r, of, i, u64_at(at));
    case FORM_END:
        return end_cell(u64_at(at), u64_at(at + sizeof(uint64_t)));
    case FORM_ID:
        return count(r->calls_before + row + 1);
    default:
        return member_cell(r, (rows_form)c->form, at + c->offset);
    }
}
