/* Files that pk reads, from anybody: whatever is made of them, it is made without harm.
 *
 * With libFuzzer: ninja -C BUILD tests/fuzz/libfuzzer-report and the like (a build with clang),
 * then run it with a copy of corpus/ (compare: of tests/golden/compare-*.json). Without:
 * fuzz_main.c. */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "beside/beside.h"
#include "compare/compare.h"
#include "live/live.h"
#include "load/load.h"
#include "out/report/report.h"
#include "read/json.h"
#include "read/scan.h"
#include "read/token.h"
#include "rows/rows.h"
#include "trace/trace.h"

/* ---- any bytes as a report or trace file ---- */

/* Whatever is made of them, it is made without harm, and twice the same. */

#define JSON_MEMORY ((size_t)256 << 20)

static void must(bool true_one)
{
    if (!true_one)
        abort();
}

/* A name for the bytes; *fd is to be closed. */
static const char *as_file(const void *data, size_t size, int *fd)
{
    static char path[64];
    *fd = memfd_create("fuzz", 0);
    must(*fd >= 0 && write(*fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", *fd);
    return path;
}

static bool load(const void *data, size_t size, pki_summary *summary)
{
    complaint why = {""};
    int fd;
    const char *path = as_file(data, size, &fd);
    bool loaded = load_run(path, &(load_options){.per_thread = true}, summary, &why);
    close(fd);
    must(loaded == !why.text[0]); /* either a summary or a reason */
    return loaded;
}

static char *written(const pki_summary *summary, int (*write_report)(const pki_summary *, FILE *),
                     size_t *length)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, length);
    must(file && write_report(summary, file) == 0);
    fclose(file);
    return text;
}

/* The other reader of reports, `pk job`'s: of anything it says what it is, of ours that it is fine.
 */
static bool scanned(const char *text, size_t length)
{
    pki_summary summary;
    complaint why = {""};
    scan s = {.at = text, .end = text + length, .why = &why};
    pki_summary_init(&summary);
    bool fine = scan_object(&s, &pki_rank_shape, &summary);
    must(fine == !why.text[0]);
    pki_summary_finish(&summary);
    return fine;
}

static int fuzz_report(const uint8_t *data, size_t size)
{
    pki_summary summary, again;
    size_t length, json_length, again_length;
    json_limit_memory(JSON_MEMORY);
    scan_limit_memory(JSON_MEMORY);
    scanned((const char *)data, size);
    if (!load(data, size, &summary))
        return 0;
    free(written(&summary, pki_report_text, &length));
    char *json = written(&summary, pki_report_json, &json_length);
    pki_summary_finish(&summary);
    must(scanned(json, json_length));
    /* What we write we read, and nothing gets lost on the way. */
    must(load(json, json_length, &again));
    char *json_again = written(&again, pki_report_json, &again_length);
    pki_summary_finish(&again);
    must(json_length == again_length && memcmp(json, json_again, json_length) == 0);
    free(json);
    free(json_again);
    return 0;
}

/* ---- any bytes as a capture ---- */

/* Whatever its slow step is made of adds up to its difference from the usual ones. */
static int fuzz_beside(const uint8_t *data, size_t size)
{
    pki_summary summary;
    complaint why = {""};
    int fd;
    double sum;
    json_limit_memory(JSON_MEMORY);
    if (!load(data, size, &summary))
        return 0;
    const char *path = as_file(data, size, &fd);
    bool said = summary.beside.took > 0; /* by a report, of which there are no events */
    bool read = said || beside_of_file(path, NULL, &summary, &why);
    must(read == !why.text[0]);
    const pki_beside *b = &summary.beside;
    sum = b->unexplained;
    for (size_t i = 0; i < b->cause_count; i++) {
        must(b->causes[i].ns > 0 || strcmp(b->causes[i].cause, PKI_LESS) == 0);
        sum += b->causes[i].ns;
    }
    double all = (double)b->took - b->usual;
    must(!b->cause_count || fabs(sum - all) <= 1e-6 * ((double)b->took + b->usual) + 1);
    close(fd);
    pki_summary_finish(&summary);
    return 0;
}

/* ---- any bytes as a file of pk query ---- */

/* Every cell of every table is made without harm, twice the same, and calls nest. */

static bool same(const cell *a, const cell *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == CELL_TEXT)
        return strcmp(a->text, b->text) == 0;
    return a->type == CELL_NULL || (a->type == CELL_INTEGER && a->integer == b->integer) ||
           (a->type == CELL_REAL && memcmp(&a->real, &b->real, sizeof a->real) == 0);
}

/* From the last row to the first, and from the first to the last: what was remembered of one cell
 * must not show in the next. */
static void read_table(rows *r, rows_table of)
{
    const rows_about *about = rows_about_table(of);
    uint64_t count = rows_count(r, of);
    for (unsigned column = 0; column < about->count; column++)
        for (uint64_t i = 0; i < count; i++) {
            cell last = rows_cell(r, of, count - 1 - i, column);
            cell first = rows_cell(r, of, i, column);
            cell again = rows_cell(r, of, count - 1 - i, column);
            must(same(&last, &again));
            must(first.type == CELL_NULL ||
                 first.type == rows_column_type(&about->columns[column]));
        }
}

/* In order of each column: all rows once, and each found by its value. */
static void order_table(rows *r, rows_table of)
{
    for (unsigned column = 0; column < rows_about_table(of)->count; column++) {
        order o;
        order_by by = {.of = of, .count = 1, .columns = {(uint8_t)column}};
        must(order_make(&o, r, &by));
        for (size_t i = 0; i < o.count; i++) {
            size_t first, end;
            cell c = rows_cell(r, of, o.places[i], column);
            must(i == 0 || o.keys[o.places[i - 1]] <= o.keys[o.places[i]]);
            order_find(&o, r, &c, &first, &end);
            must(c.type == CELL_NULL || (first <= i && i < end));
        }
        order_finish(&o);
    }
}

static int fuzz_rows(const uint8_t *data, size_t size)
{
    rows_wish wish = {.lenient = true};
    complaint why = {""};
    char path[64];
    int fd = memfd_create("fuzz", 0);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        wish.columns[of] = ROWS_ALL;
    json_limit_memory(JSON_MEMORY);
    scan_limit_memory(JSON_MEMORY);
    rows *r = rows_create(&wish);
    must(r != NULL);
    bool added = rows_add_file(r, path, false, &why);
    must(added == !why.text[0]); /* either rows or a reason */
    for (unsigned of = 0; added && of < ROWS_TABLES; of++) {
        read_table(r, (rows_table)of);
        order_table(r, (rows_table)of);
    }
    rows_destroy(r);
    close(fd);
    return 0;
}

/* ---- any line ---- */

/* What trace/trace.h takes apart, jansson takes for the same object; and its event is the same by
 * way of flat.h, and of the lines before it (trace/trace.h), as by way of jansson. */

static void same_number(const member *quick, const member *tree)
{
    double a = value_number(quick), b = value_number(tree);
    must(memcmp(&a, &b, sizeof a) == 0);
    must(quick->integer == tree->integer && quick->digits && quick->length);
}

static void same_member(const member *quick, const member *tree)
{
    must(quick->type == tree->type);
    if (value_is_number(quick))
        same_number(quick, tree);
    else if (quick->type == VALUE_TEXT)
        must(strcmp(quick->text, tree->text) == 0);
}

/* In the same order. */
static void same_object(object quick, object tree)
{
    object_cursor a = {0}, b = {0};
    const char *key_a, *key_b;
    member of_a, of_b;
    while (object_next(quick, &a, &key_a, &of_a)) {
        must(object_next(tree, &b, &key_b, &of_b) && strcmp(key_a, key_b) == 0);
        same_member(&of_a, &of_b);
        of_a = object_get(quick, key_a);
        same_member(&of_a, &of_b);
    }
    must(!object_next(tree, &b, &key_b, &of_b));
}

/* A time is read from its digits in one way, and found in the text in the other. */
static void same_time(object quick, const char *text, size_t length)
{
    uint64_t ns_a = 0, ns_b = 0;
    uint32_t ps = 0;
    member ts = object_get(quick, "ts");
    bool a = ts.digits && scan_us(ts.digits, ts.length, &ns_a);
    bool b = scan_member_us(text, length, "ts", &ns_b, &ps);
    must(a == b && ns_a == ns_b && (!a || ps == scan_ps(ts.digits, ts.length)));
}

/* What our own reader passes over is what jansson takes, but for numbers beyond its own, and a byte
 * that is zero, which it does not see. */
static void same_verdict(const char *text, size_t length, const json_t *json,
                         const json_error_t *error)
{
    bool ours = token_is_object(text, length);
    must(ours || !json_is_object(json) || memchr(text, 0, length));
    must(!ours || json || strstr(error->text, "too big") || strstr(error->text, "overflow"));
}

static void try_line(const char *text, size_t length)
{
    json_error_t error;
    flat_line parts;
    char *copy = malloc(length + 1); /* on the heap, to its last byte */
    memcpy(copy, text, length);
    copy = realloc(copy, length ? length : 1);
    json_t *json = json_loadb(text, length, 0, &error);
    same_verdict(text, length, json, &error);
    if (flat_read(&parts, copy, length)) {
        object quick = flat_object(&parts), tree = {.tree = json};
        must(json_is_object(json));
        same_object(quick, tree);
        same_object(object_args(quick), object_args(tree));
        same_time(quick, text, length);
    } else {
        must(memcmp(copy, text, length) == 0);
    }
    json_decref(json);
    free(copy);
}

static bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static void same_event(const event *a, const event *b)
{
    must(a->type == b->type);
    if (a->type == EVENT_OTHER)
        return;
    must(same_text(a->name, b->name) && strcmp(a->track, b->track) == 0);
    must(strcmp(a->stepper, b->stepper) == 0);
    must(a->kind == b->kind && a->tid == b->tid && a->start == b->start && a->end == b->end);
    must(a->index == b->index && a->items == b->items && a->bytes == b->bytes);
    must(a->flops == b->flops && a->unbalanced == b->unbalanced && a->on == b->on);
    must(same_text(a->comm.op, b->comm.op) && same_text(a->comm.name, b->comm.name));
    must(a->comm.sequence == b->comm.sequence && a->comm.ranks == b->comm.ranks);
    must(a->activity.kind == b->activity.kind && a->activity.device == b->activity.device);
    must(a->activity.bytes == b->activity.bytes && a->activity.copy == b->activity.copy);
    must(strcmp(event_launcher(a), event_launcher(b)) == 0);
}

/* The lines before it are those of the same file. */
static void try_event(event_reader *r, const char *text, size_t length)
{
    event slow;
    const event *quick;
    line trimmed = line_trim((line){(char *)text, length});
    json_t *json = json_loadb(trimmed.text, trimmed.length, 0, NULL);
    char *copy = malloc(trimmed.length + 1);
    memcpy(copy, trimmed.text, trimmed.length);
    copy = realloc(copy, trimmed.length ? trimmed.length : 1);
    reading found = event_reader_read(r, (line){copy, trimmed.length}, &quick);
    must((found == READ_EVENT) == json_is_object(json));
    if (found == READ_EVENT) {
        event_read(&slow, (object){.tree = json}, trimmed.text, trimmed.length);
        same_event(quick, &slow);
    }
    json_decref(json);
    free(copy);
}

static int fuzz_flat(const uint8_t *data, size_t size)
{
    event_reader reader;
    json_limit_memory((size_t)256 << 20);
    event_reader_open(&reader);
    const char *text = (const char *)data, *end = text + size;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((newline ? newline : end) - text);
        if (length && text[length - 1] == ',')
            try_line(text, length - 1);
        try_line(text, length);
        try_event(&reader, text, length);
        text += length + 1;
    }
    event_reader_close(&reader);
    return 0;
}

/* ---- any bytes as a file of benchmarks ---- */

/* It is refused with a reason, or compared with itself without harm, and then nothing became
 * slower or faster. */

static bool fuzz_compare_load(const uint8_t *data, size_t size, bench_file *file)
{
    char path[64];
    complaint why = {""};
    int fd = memfd_create("fuzz", 0);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool loaded = bench_file_load(file, path, &why);
    close(fd);
    must(loaded == !why.text[0]);
    return loaded;
}

static void show(const comparison *c, compare_show *one)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    must(file != NULL);
    one(c, 1, file);
    must(fclose(file) == 0 && length > 0);
    free(text);
}

static int fuzz_compare(const uint8_t *data, size_t size)
{
    const compare_options options = {
        COMPARE_THRESHOLD, COMPARE_ALPHA, COMPARE_MOMENTS, false, false, NULL};
    bench_file file;
    comparison c;
    complaint why = {""};
    json_limit_memory(JSON_MEMORY);
    if (!fuzz_compare_load(data, size, &file))
        return 0;
    const bench_file *old = &file;
    bool compared = compare_files(&old, 1, &file, &options, &c, &why);
    must(compared == !why.text[0]);
    if (compared) {
        must(!c.changes[PKI_SLOWER] && !c.changes[PKI_FASTER]);
        show(&c, compare_text);
        show(&c, compare_markdown);
        show(&c, compare_json);
        show(&c, compare_junit);
        comparison_finish(&c);
    }
    bench_file_finish(&file);
    return 0;
}

/* ---- any bytes as what NCCL's RAS says ---- */

static int fuzz_ras(const uint8_t *data, size_t size)
{
    ras r;
    complaint why = {""};
    int fd;
    bool found = ras_find(&r, as_file(data, size, &fd), NULL, 0, &why);
    close(fd);
    must(found == !why.text[0] && (!found || r.verdict[0]));
    must(r.first <= r.count && (r.first > 0) == (r.count > 0));
    for (size_t i = 0; i < r.count; i++)
        must(r.rows[i].name[0] && r.rows[i].words[0] && ras_why_text(r.rows[i].why));
    ras_finish(&r);
    return 0;
}

/* ---- the targets ---- */

const fuzz_target fuzz_targets[] = {
    {"report", fuzz_report},   {"beside", fuzz_beside}, {"rows", fuzz_rows}, {"flat", fuzz_flat},
    {"compare", fuzz_compare}, {"ras", fuzz_ras},       {NULL, NULL},
};
