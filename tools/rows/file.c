/* tools/rows/file.c - a file's rows: its events in one walk, and what its report says in another. */
#include "rows/events.h"

#include "base/compiler.h"
#include "load/load.h"
#include "trace/walk.h"
#include "out/report/report.h"
#include "read/json_read.h"

#include <stdlib.h>
#include <string.h>

/* A file that is being added. */
typedef struct adding {
    rows *to;
    const char *path;
    bool telling, again; /* again: it can be read a second time */
    complaint *why;
    file_row *file;
    rows_reader reader;
} adding;

static bool out_of_memory(adding *a)
{
    return complaint_set(a->why, "out of memory");
}

/* ---- what is wanted ---- */

static bool wants_any(const rows *r, const rows_table *tables, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rows_wanted(r, tables[i]))
            return true;
    return false;
}

static bool wants_step(const rows *r)
{
    for (unsigned t = 0; t < ROWS_TABLES; t++) {
        const rows_about *about = rows_about_table((rows_table)t);
        for (size_t i = 0; i < about->count; i++)
            if ((r->wish.columns[t] >> i & 1) && about->columns[i].form == FORM_STEP)
                return true;
    }
    return false;
}

static const rows_table of_events[] = {ROWS_CALLS,    ROWS_KERNELS,  ROWS_MEMCPYS, ROWS_COLLECTIVES,
                                       ROWS_MESSAGES, ROWS_COUNTERS, ROWS_MARKS,   ROWS_ACTIVITIES};
static const rows_table of_summary[] = {ROWS_REGIONS, ROWS_THREADS, ROWS_DEVICES, ROWS_VERDICTS};

static bool wants_events(const rows *r)
{
    return wants_any(r, of_events, PKI_COUNT_OF(of_events)) || rows_wanted(r, ROWS_STEPS) ||
           wants_step(r);
}

/* Which steps are warm-up only the report says. */
static bool wants_summary(const rows *r)
{
    const rows_about *about = rows_about_table(ROWS_STEPS);
    bool warmup = false;
    for (size_t i = 0; i < about->count; i++)
        warmup |= (r->wish.columns[ROWS_STEPS] >> i & 1) &&
                  about->columns[i].offset == offsetof(step_row, warmup);
    return warmup || wants_any(r, of_summary, PKI_COUNT_OF(of_summary));
}

/* ---- the file itself ---- */

/* "" is NULL, as of what others wrote. */
static bool set_file(adding *a, const char *program, const char *host, const char *version)
{
    file_row *f = a->file;
    return (rows_name(a->to, program, &f->program) && rows_name(a->to, host, &f->host) &&
            rows_name(a->to, version, &f->version)) ||
           out_of_memory(a);
}

static bool take_head(adding *a, json_t *head)
{
    complaint ignored = {""};
    json_reader j = {.why = &ignored};
    json_t *about = json_read_object(&j, head, "metadata");
    json_t *job = json_read_object(&j, head, "distributedInfo");
    file_row *f = a->file;
    char *program = NULL, *host = NULL, *version = NULL;
    bool complete = true;
    json_read_text(&j, about, "program", &program);
    json_read_text(&j, about, "host", &host);
    json_read_text(&j, about, "perfkit", &version);
    json_read_i32(&j, job, "rank", &f->rank);
    json_read_i32(&j, job, "world_size", &f->ranks);
    json_read_u32(&j, about, "pid", &f->pid);
    json_read_bool(&j, about, "complete", &complete);
    json_read_uint(&j, head, "baseTimeNanoseconds", &f->start_unix);
    f->complete = complete;
    bool set = set_file(a, program, host, version);
    free(program);
    free(host);
    free(version);
    return set;
}

static bool take_run(adding *a, const pki_run *run)
{
    file_row *f = a->file;
    f->rank = run->rank;
    f->ranks = run->world_size;
    f->pid = run->pid;
    f->start_unix = run->start_unix;
    f->complete = run->complete;
    return set_file(a, run->program, run->host, run->version);
}

/* ---- events ---- */

static bool is_never(void *user, line l)
{
    (void)user;
    (void)l;
    return false;
}

static bool walk_events(adding *a, lines *in, json_t *head)
{
    progress telling = progress_start(a->path, a->telling);
    walk w = {.in = in,
              .why = a->why,
              .telling = &telling,
              .array = json_is_array(head),
              .user = &a->reader,
              .wants = wants_events(a->to) || rows_wanted(a->to, ROWS_FILES) ? NULL : is_never,
              .take = rows_take_event};
    bool walked = walk_open(&w) && walk_lines(&w);
    a->file->cut = w.tail == NULL;
    walk_close(&w);
    progress_end(&telling);
    return walked;
}

static bool take_events(adding *a, json_t *events)
{
    for (size_t i = 0; i < json_array_size(events); i++) {
        event e;
        event_read(&e, (object){.tree = json_array_get(events, i)}, NULL, 0);
        if (!rows_take_event(&a->reader, &e))
            return out_of_memory(a);
    }
    return true;
}

static bool take_report(adding *a, json_t *document)
{
    pki_summary summary;
    if (!load_report(document, &summary, a->why))
        return false;
    bool taken =
        take_run(a, &summary.run) && (rows_take_summary(a->to, &summary, true) || out_of_memory(a));
    pki_summary_finish(&summary);
    return taken;
}

static bool take_document(adding *a, json_t *document)
{
    const char *format = json_string_value(json_object_get(document, "format"));
    json_t *events = json_is_array(document) ? document : json_object_get(document, "traceEvents");
    a->file->has_events = json_is_array(events);
    if (a->file->has_events)
        return take_head(a, document) && take_events(a, events);
    if (format && strcmp(format, PKI_REPORT_FORMAT) == 0)
        return take_report(a, document);
    return complaint_set(a->why, "is JSON, but neither a report of perfkit nor a Chrome trace");
}

static bool take_whole(adding *a, lines *in, line *read)
{
    bool too_large;
    json_t *document = load_json_rest(read->text, read->length, in, &too_large, a->why);
    bool taken = document && take_document(a, document);
    json_decref(document);
    return taken;
}

static bool read_file(adding *a, lines *in)
{
    json_t *head;
    line read;
    bool taken = load_head(in, &head, &read, a->why);
    if (taken && head && load_events_are_lines(in)) {
        a->file->has_events = 1;
        taken = take_head(a, head) && walk_events(a, in, head);
    } else if (taken) {
        taken = take_whole(a, in, &read);
    }
    json_decref(head);
    free(read.text);
    return taken;
}

/* ---- steps ---- */

static int by_start(const void *a, const void *b)
{
    const step_row *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Cells look them up by their starts. */
static void sort_steps(adding *a)
{
    part *p = &a->to->parts[ROWS_STEPS][0];
    size_t first = rows_first(a->to, ROWS_STEPS, a->to->files.count - 1);
    bool sorted = true;
    for (size_t i = first + 1; i < p->count; i++)
        sorted &=
            by_start(rows_at(p, sizeof(step_row), i - 1), rows_at(p, sizeof(step_row), i)) <= 0;
    if (!sorted)
        qsort(rows_at(p, sizeof(step_row), first), p->count - first, sizeof(step_row), by_start);
}

/* ---- all of it ---- */

static bool open_file(adding *a)
{
    rows *r = a->to;
    file_start *start = rows_push(&r->files, sizeof *start);
    if (!start)
        return out_of_memory(a);
    for (size_t t = 0; t < ROWS_TABLES; t++)
        start->first[t] = r->parts[t][0].count;
    a->file = rows_append(r, ROWS_FILES, 0);
    if (!a->file)
        return out_of_memory(a);
    *a->file =
        (file_row){.file = (uint32_t)r->files.count, .rank = -1, .ranks = -1, .pid = ROWS_NONE};
    a->file->host = a->file->program = a->file->version = ROWS_NONE;
    return rows_name(r, a->path, &a->file->path) || out_of_memory(a);
}

static bool add_summary(adding *a)
{
    pki_summary summary;
    load_options options = {.progress = a->telling};
    if (!a->again)
        return complaint_set(a->why, "cannot be read a second time, as tables of the report need");
    if (!load_run(a->path, &options, &summary, a->why))
        return false;
    bool taken = rows_take_summary(a->to, &summary, false) || out_of_memory(a);
    pki_summary_finish(&summary);
    return taken;
}

static bool add_events(adding *a)
{
    lines in;
    rows *r = a->to;
    if (!lines_open(&in, a->path, LINES_LONGEST, a->why))
        return false;
    a->again = source_is_rewindable(in.from);
    bool read = read_file(a, &in);
    lines_close(&in);
    if (!read)
        return false;
    a->file->events = a->file->has_events ? a->reader.events : 0;
    sort_steps(a);
    for (size_t i = 0; i < PKI_COUNT_OF(of_events); i++)
        if (!a->file->has_events && !r->wish.lenient && rows_wanted(r, of_events[i]))
            return complaint_set(a->why, "is a report, which has no \"%s\": ask the run's trace",
                                 rows_about_table(of_events[i])->name);
    size_t first = rows_first(r, ROWS_CALLS, r->files.count - 1);
    return !rows_wants_part(r, ROWS_CALLS, 2) || rows_nest(r, first) || out_of_memory(a);
}

bool rows_add_file(rows *r, const char *path, bool telling, complaint *why)
{
    adding a = {.to = r, .path = path, .telling = telling, .why = why, .reader = {.to = r}};
    return open_file(&a) && add_events(&a) &&
           (!a.file->has_events || !wants_summary(r) || add_summary(&a));
}
