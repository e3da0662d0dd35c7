#include "rows/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "load/load.h"
#include "memory.h"
#include "trace/trace.h"

/* ---- the rows of a table in the order of some of its columns, and found by one ---- */

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define SIGN (UINT64_C(1) << 63)

/* What makes keys of cells: texts by their places in the alphabet. */
typedef struct keys {
    rows *r;
    uint32_t *ranks; /* of names */
} keys;

static int by_text(const void *a, const void *b, void *user)
{
    char **texts = user;
    return strcmp(texts[*(const uint32_t *)a], texts[*(const uint32_t *)b]);
}

static uint32_t *rank_names(const rows *r)
{
    uint32_t count = r->names.count;
    uint32_t *sorted = memory_zeroed(count, sizeof *sorted);
    uint32_t *ranks = memory_zeroed(count, sizeof *ranks);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = i;
    qsort_r(sorted, count, sizeof *sorted, by_text, r->names.texts);
    for (uint32_t i = 0; i < count; i++)
        ranks[sorted[i]] = i + 1;
    free(sorted);
    return ranks;
}

static uint64_t key_of_real(double value)
{
    uint64_t bits;
    value += 0.0; /* -0 is 0 */
    memcpy(&bits, &value, sizeof bits);
    return bits & SIGN ? ~bits : bits | SIGN;
}

/* Kinds are few and not among the names; twice as far apart, so that what is none lies between. */
static uint64_t key_of_kind(const char *text)
{
    uint64_t key = 1;
    for (size_t i = 0; i < PKI_SHARES; i++) {
        int apart = strcmp(pki_kind_names[i], text);
        key += (uint64_t)(apart < 0) + (apart <= 0);
    }
    return key;
}

static uint64_t key_of_text(const keys *k, const char *text)
{
    uint32_t id = table_find(&k->r->names, text);
    return id == TABLE_NONE ? 0 : k->ranks[id];
}

static uint64_t key_of(const keys *k, const cell *c, bool kind)
{
    switch (c->type) {
    case CELL_INTEGER:
        return (uint64_t)c->integer ^ SIGN;
    case CELL_REAL:
        return key_of_real(c->real);
    case CELL_TEXT:
        return kind ? key_of_kind(c->text) : key_of_text(k, c->text);
    default:
        return 0;
    }
}

static bool is_kind(rows_table of, unsigned column)
{
    uint8_t form = rows_about_table(of)->columns[column].form;
    return form == FORM_KIND || form == FORM_REGION_KIND;
}

/* Neighbours often have the same name: asking for its number again is spared. */
static void fill_keys(const keys *k, rows_table of, unsigned column, uint64_t *out, size_t count)
{
    bool kind = is_kind(of, column);
    const char *last = NULL;
    uint64_t last_key = 0;
    for (size_t i = 0; i < count; i++) {
        cell c = rows_cell(k->r, of, i, column);
        bool again = c.type == CELL_TEXT && c.text == last;
        out[i] = again ? last_key : key_of(k, &c, kind);
        last = c.type == CELL_TEXT ? c.text : NULL;
        last_key = out[i];
    }
}

/* ---- radix ---- */

static void sort_by_digit(const uint64_t *key, unsigned shift, const uint32_t *from, uint32_t *to,
                          size_t count)
{
    static size_t starts[DIGITS];
    memset(starts, 0, sizeof starts);
    for (size_t i = 0; i < count; i++)
        starts[key[i] >> shift & (DIGITS - 1)]++;
    size_t sum = 0;
    for (unsigned d = 0; d < DIGITS; d++) {
        size_t here = starts[d];
        starts[d] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[key[from[i]] >> shift & (DIGITS - 1)]++] = from[i];
}

/* Stable; only by digits that differ. */
static void sort_by(const uint64_t *key, uint32_t **places, uint32_t **spare, size_t count)
{
    uint64_t differs = 0;
    for (size_t i = 1; i < count; i++)
        differs |= key[i] ^ key[0];
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!(differs >> shift & (DIGITS - 1)))
            continue;
        sort_by_digit(key, shift, *places, *spare, count);
        uint32_t *sorted = *spare;
        *spare = *places;
        *places = sorted;
    }
}

static void sort_all(order *o, const keys *k, uint32_t **spare)
{
    for (unsigned c = o->by.count; c-- > 0;) {
        fill_keys(k, o->by.of, o->by.columns[c], o->keys, o->count);
        for (size_t i = 0; o->by.descending[c] && i < o->count; i++)
            o->keys[i] = ~o->keys[i];
        sort_by(o->keys, &o->places, spare, o->count);
    }
}

bool order_make(order *o, rows *r, const order_by *by)
{
    size_t count = (size_t)rows_count(r, by->of);
    *o = (order){.by = *by, .count = count};
    if (count >= UINT32_MAX)
        return false;
    o->places = memory_zeroed(count, sizeof *o->places);
    o->keys = memory_zeroed(count, sizeof *o->keys);
    o->ranks = rank_names(r);
    uint32_t *spare = memory_zeroed(count, sizeof *spare);
    for (size_t i = 0; i < count; i++)
        o->places[i] = (uint32_t)i;
    sort_all(o, &(keys){r, o->ranks}, &spare);
    free(spare);
    return true;
}

void order_finish(order *o)
{
    free(o->places);
    free(o->keys);
    free(o->ranks);
    *o = (order){0};
}

/* ---- search ---- */

/* A name that no row has stands nowhere. */
static bool key_to_find(const order *o, rows *r, const cell *value, uint64_t *key)
{
    keys k = {.r = r, .ranks = o->ranks};
    bool kind = is_kind(o->by.of, o->by.columns[0]);
    if (value->type == CELL_NULL)
        return false;
    if (value->type == CELL_TEXT && !kind && table_find(&r->names, value->text) == TABLE_NONE)
        return false;
    *key = key_of(&k, value, kind);
    return true;
}

static size_t first_from(const order *o, uint64_t key, size_t low)
{
    size_t high = o->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->keys[o->places[middle]] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void order_find(const order *o, rows *r, const cell *value, size_t *first, size_t *end)
{
    uint64_t key;
    *first = *end = 0;
    if (!key_to_find(o, r, value, &key))
        return;
    *first = first_from(o, key, 0);
    *end = first_from(o, key + 1, *first);
}

/* ---- what runs did, as tables ---- */

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

/* ---- a file's rows: its events in one walk, and what its report says in another ---- */

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
    ROWS_CALLS, ROWS_KERNELS, ROWS_MEMCPYS,    ROWS_COLLECTIVES, ROWS_MESSAGES,   ROWS_COUNTERS,
    ROWS_MARKS, ROWS_NOTES,   ROWS_ACTIVITIES, ROWS_SPANS,       ROWS_SPAN_MARKS, ROWS_REQUESTS};
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

/* What it does not say stays as it was. */
static void add_about(adding *a, const trace_about *about)
{
    file_row *f = a->file;
    int32_t rank = f->rank, ranks = f->ranks;
    add_run(a, &about->run);
    f->start_unix = about->base_unix;
    f->rank = about->has_rank ? f->rank : rank;
    f->ranks = about->run.world_size ? f->ranks : ranks;
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
    add_about(a, &a->in.about);
    bool read = trace_read(&a->in, &visitor);
    rows_pair_spans(&a->reader);
    a->file->cut = !a->in.whole;
    a->file->events = a->reader.events;
    return read;
}

static void rows_add_summary(rows *r, const pki_summary *s, bool steps_too);

static bool read_report(adding *a)
{
    pki_summary summary;
    if (!load_report(a->in.report.text, a->in.report.length, &summary, a->why))
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
    if (!a->in.report.text && !trace_can_be_read_again(&a->in))
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

/* ---- rows of what a report says, or of what was made of a trace instead ---- */

/* Of nothing there is no mean. */
static void blank(pki_dist *d)
{
    if (!d->count)
        d->mean = d->stddev = d->min = d->p50 = d->p90 = d->p95 = d->p99 = d->max = NAN;
}

/* The text goes with the summary, this one with the rows. */
static char *intern(rows *r, const char *text)
{
    uint32_t name = rows_name(r, text);
    return name == ROWS_NONE ? NULL : r->names.texts[name];
}

static void add_region(rows *r, const pki_region_row *from)
{
    pki_region_row *to = rows_append(r, ROWS_REGIONS, 0);
    *to = *from;
    to->name = intern(r, from->name);
    blank(&to->time);
}

static void add_thread(rows *r, const pki_thread_row *from)
{
    pki_thread_row *to = rows_append(r, ROWS_THREADS, 0);
    *to = *from;
    to->name = intern(r, from->name);
    to->tid = from->tid ? from->tid : ROWS_NONE;
}

static void add_gpu(rows *r, const pki_gpu_row *from)
{
    pki_gpu_row *to = rows_append(r, ROWS_DEVICES, 0);
    *to = *from;
    for (size_t i = 0; i < PKI_GPU_FIGURES; i++)
        blank(&to->per_step[i]);
}

static void add_verdict(rows *r, const pki_verdict *from)
{
    static const char *const severities[] = {
        [PKI_GOOD] = "good", [PKI_NOTE] = "note", [PKI_WARN] = "warning"};
    verdict_row *to = rows_append(r, ROWS_VERDICTS, 0);
    to->value = from->value;
    to->threshold = from->threshold;
    to->name = rows_name(r, from->name);
    to->text = rows_name(r, from->text);
    to->severity = rows_name(r, severities[from->severity]);
}

/* An entry of the series may stand for several steps: then it is their mean. */
static void add_series(rows *r, const pki_series_row *from)
{
    step_row *to = rows_append(r, ROWS_STEPS, 0);
    uint64_t steps = from->steps ? from->steps : 1;
    *to = (step_row){.start = from->start,
                     .duration = from->duration / steps,
                     .step = from->index,
                     .items = from->items / steps,
                     .thread = ROWS_NONE,
                     .kind = rows_name(r, "")};
}

static void add_lists(rows *r, const pki_summary *s)
{
    for (size_t i = 0; rows_wanted(r, ROWS_REGIONS) && i < s->region_count; i++)
        add_region(r, &s->regions[i]);
    for (size_t i = 0; rows_wanted(r, ROWS_THREADS) && i < s->thread_count; i++)
        add_thread(r, &s->threads[i]);
    for (size_t i = 0; rows_wanted(r, ROWS_DEVICES) && i < s->gpu_count; i++)
        add_gpu(r, &s->gpus[i]);
    for (size_t i = 0; rows_wanted(r, ROWS_VERDICTS) && i < s->verdict_count; i++)
        add_verdict(r, &s->verdicts[i]);
}

/* The first usual steps of the file that is being added. */
static void mark_warmup(rows *r, uint64_t warmup)
{
    size_t end = r->parts[ROWS_STEPS][0].count;
    uint32_t usual = rows_name(r, "");
    for (size_t i = rows_first(r, ROWS_STEPS, r->files.count - 1); i < end && warmup; i++) {
        step_row *step = rows_at(&r->parts[ROWS_STEPS][0], sizeof(step_row), i);
        step->warmup = step->kind == usual;
        warmup -= step->warmup;
    }
}

/* What a report says. */
static void rows_add_summary(rows *r, const pki_summary *s, bool steps_too)
{
    for (size_t i = 0; steps_too && i < s->steps.series_count; i++)
        add_series(r, &s->steps.series[i]);
    mark_warmup(r, s->steps.warmup);
    add_lists(r, s);
}
