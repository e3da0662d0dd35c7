/* tools/rows/add_file.c - a file's rows: its events in one walk, and what its report says in
 * another. */
#include "rows/events.h"

#include "base/compiler.h"
#include "load/load.h"
#include "read/json_read.h"
#include "trace/trace.h"

#include <stdlib.h>

/* A file that is being added. */
typedef struct adding {
    rows *to;
    trace in;
    complaint *why;
    file_row *file;
    rows_reader reader;
} adding;

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

static const rows_table of_events[] = {
    ROWS_CALLS, ROWS_KERNELS,    ROWS_MEMCPYS, ROWS_COLLECTIVES, ROWS_MESSAGES, ROWS_COUNTERS,
    ROWS_MARKS, ROWS_ACTIVITIES, ROWS_SPANS,   ROWS_SPAN_MARKS,  ROWS_REQUESTS};
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
static void set_file(adding *a, const char *program, const char *host, const char *version)
{
    a->file->program = rows_name(a->to, program);
    a->file->host = rows_name(a->to, host);
    a->file->version = rows_name(a->to, version);
}

static void add_head(adding *a, json_t *head)
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
    set_file(a, program, host, version);
    free(program);
    free(host);
    free(version);
}

static void add_run(adding *a, const pki_run *run)
{
    file_row *f = a->file;
    f->rank = run->rank;
    f->ranks = run->world_size;
    f->pid = run->pid;
    f->start_unix = run->start_unix;
    f->complete = run->complete;
    set_file(a, run->program, run->host, run->version);
}

/* ---- events, or a report ---- */

static bool is_never(void *user, line l)
{
    (void)user;
    (void)l;
    return false;
}

static bool read_events(adding *a)
{
    const rows *r = a->to;
    bool wanted = wants_events(r) || rows_wanted(r, ROWS_FILES);
    const trace_visitor visitor = {&a->reader, wanted ? NULL : is_never, rows_add_event};
    a->file->has_events = 1;
    add_head(a, trace_head(&a->in));
    bool read = trace_read(&a->in, &visitor);
    rows_pair_spans(&a->reader);
    a->file->cut = !trace_is_whole(&a->in);
    a->file->events = a->reader.events;
    return read;
}

static bool read_report(adding *a)
{
    pki_summary summary;
    if (!load_report(trace_report(&a->in), &summary, a->why))
        return false;
    add_run(a, &summary.run);
    rows_add_summary(a->to, &summary, true);
    pki_summary_finish(&summary);
    return true;
}

/* Made of the events, if the trace has no report. */
static bool add_summary(adding *a)
{
    pki_summary summary;
    const load_options options = {0};
    if (!trace_report(&a->in) && !trace_can_be_read_again(&a->in))
        return complaint_set(a->why, "cannot be read a second time, as tables of the report need");
    if (!load_trace(&a->in, &options, &summary))
        return false;
    rows_add_summary(a->to, &summary, false);
    pki_summary_finish(&summary);
    return true;
}

/* ---- steps ---- */

static int by_process(const void *a, const void *b)
{
    const step_row *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

/* Cells look them up by their processes and starts. */
static void sort_steps(adding *a)
{
    part *p = &a->to->parts[ROWS_STEPS][0];
    size_t first = rows_first(a->to, ROWS_STEPS, a->to->files.count - 1);
    bool sorted = true;
    for (size_t i = first + 1; i < p->count; i++)
        sorted &=
            by_process(rows_at(p, sizeof(step_row), i - 1), rows_at(p, sizeof(step_row), i)) <= 0;
    if (!sorted)
        qsort(rows_at(p, sizeof(step_row), first), p->count - first, sizeof(step_row), by_process);
}

/* ---- all of it ---- */

static void begin_file(adding *a, const char *path)
{
    rows *r = a->to;
    file_start *start = rows_push(&r->files, sizeof *start);
    for (size_t t = 0; t < ROWS_TABLES; t++)
        start->first[t] = r->parts[t][0].count;
    a->file = rows_append(r, ROWS_FILES, 0);
    *a->file = (file_row){.file = (uint32_t)(r->files_before + r->files.count),
                          .rank = -1,
                          .ranks = -1,
                          .pid = ROWS_NONE};
    a->file->host = a->file->program = a->file->version = ROWS_NONE;
    a->file->path = rows_name(r, path);
}

/* Are tables of events asked of what has none? */
static bool check_events(adding *a)
{
    for (size_t i = 0; i < PKI_COUNT_OF(of_events); i++)
        if (!a->file->has_events && !a->to->wish.lenient && rows_wanted(a->to, of_events[i]))
            return complaint_set(a->why, "is a report, which has no \"%s\": ask the run's trace",
                                 rows_about_table(of_events[i])->name);
    return true;
}

static bool add_file(adding *a)
{
    rows *r = a->to;
    bool events = trace_has_events(&a->in);
    size_t first = rows_first(r, ROWS_CALLS, r->files.count - 1);
    if (!(events ? read_events(a) : read_report(a)))
        return false;
    sort_steps(a);
    if (!check_events(a))
        return false;
    if (rows_wants_part(r, ROWS_CALLS, 2))
        rows_nest(r, first);
    return !events || !wants_summary(r) || add_summary(a);
}

bool rows_add_file(rows *r, const char *path, bool show, complaint *why)
{
    adding a = {.to = r, .why = why, .reader = {.to = r}};
    begin_file(&a, path);
    if (!trace_open(&a.in, path, show, why))
        return false;
    bool added = add_file(&a);
    trace_close(&a.in);
    return added;
}

const char *rows_add_files(rows *r, char *const *paths, size_t count, complaint *why)
{
    for (size_t i = 0; i < count; i++)
        if (!rows_add_file(r, paths[i], true, why))
            return paths[i];
    return NULL;
}
