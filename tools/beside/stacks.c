#include "beside/stacks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "base/compiler.h"
#include "beside/causes.h"
#include "memory.h"
#include "out/chrome/events.h"

#define SAMPLES_MOST 65536u
#define FILES_MOST 65536u
#define FRAMES_MOST 96u /* of a sample, with what is inlined */
#define FUNCTIONS_MOST 65536u
#define NO_COLUMN UINT32_MAX

/* ---- out of the trace ---- */

static char *text_of(const event *e, const char *key)
{
    const char *text = object_text(e->args, key);
    return memory_copy(text ? text : "");
}

static bool has(const event *e, const char *key)
{
    const char *text = object_text(e->args, key);
    return text && text[0];
}

bool stacks_is_sample(const event *e)
{
    return has(e, "stack") || has(e, "at");
}

/* Older captures have the place alone, as "at". */
void stacks_add(slices *s, const event *e)
{
    int64_t ns = object_integer(e->args, "ns");
    if (s->sample_count == SAMPLES_MOST)
        return;
    memory_fit(&s->samples, &s->sample_room, s->sample_count + 1, sizeof *s->samples);
    s->samples[s->sample_count++] =
        (sample_seen){.at = e->start,
                      .ns = ns > 0 ? (uint64_t)ns : 1000000,
                      .stack = text_of(e, has(e, "stack") ? "stack" : "at"),
                      .build = text_of(e, "build"),
                      .path = TABLE_NONE,
                      .column = NO_COLUMN};
}

bool stacks_is_file(const event *e)
{
    return strcmp(e->name, PKI_STATE_FILE) == 0 && object_integer(e->args, "file") > 0;
}

void stacks_add_file(slices *s, const event *e)
{
    int64_t number = object_integer(e->args, "file");
    size_t before = s->file_room;
    if (number >= FILES_MOST)
        return;
    memory_fit(&s->files, &s->file_room, (size_t)number + 1, sizeof *s->files);
    if (s->file_room > before)
        memset(&s->files[before], 0, (s->file_room - before) * sizeof *s->files);
    code_file *f = &s->files[number];
    if (f->path)
        return;
    f->path = text_of(e, "path");
    f->build = text_of(e, "build");
}

/* ---- functions ---- */

static void add_frame(slices *s, sample_seen *at, const char *name)
{
    if (at->count == FRAMES_MOST ||
        (s->functions.count == FUNCTIONS_MOST && table_find(&s->functions, name) == TABLE_NONE))
        return;
    memory_fit(&s->frames, &s->frame_room, s->frame_count + 1, sizeof *s->frames);
    s->frames[s->frame_count++] = table_add(&s->functions, name);
    at->count++;
}

/* Those that are inlined at the place first. */
static void add_names(slices *s, sample_seen *at, const char *names)
{
    char one[600];
    for (;;) {
        size_t n = strcspn(names, SYMBOLS_APART);
        snprintf(one, sizeof one, "%.*s", (int)PKI_MIN(n, sizeof one - 1), names);
        add_frame(s, at, one);
        if (!names[n])
            return;
        names += n + 1;
    }
}

/* "3+1234": in the file of that number; 0: an address. */
static void add_place(slices *s, sample_seen *at, const char *text, const char *process)
{
    char *end, place[700];
    unsigned long number = strtoul(text, &end, 16);
    unsigned long long offset = *end == '+' ? strtoull(end + 1, NULL, 16) : 0;
    const code_file *f = number && number < s->file_room ? &s->files[number] : NULL;
    if (!number)
        add_names(s, at, symbols_of_address(&s->symbols, process, offset));
    else if (f && f->path) {
        snprintf(place, sizeof place, "%.600s+0x%llx", f->path, offset);
        add_names(s, at, symbols_of(&s->symbols, place, f->build));
    } else
        add_frame(s, at, PKI_SAMPLE_ANYWHERE);
}

static void name_one(slices *s, sample_seen *at, const char *process)
{
    at->first = (uint32_t)s->frame_count;
    if (at->stack[0] == '/' || strchr(at->stack, '.') || !strchr(at->stack, '+')) {
        add_names(s, at, symbols_of(&s->symbols, at->stack, at->build));
        return;
    }
    for (const char *text = at->stack; *text; text += strspn(text, " ")) {
        if (*text == '(')
            add_frame(s, at, PKI_SAMPLE_KERNEL);
        else
            add_place(s, at, text, process);
        text += strcspn(text, " ");
    }
}

void stacks_name(slices *s, const char *process)
{
    for (size_t i = 0; i < s->sample_count; i++)
        name_one(s, &s->samples[i], process);
}

void stacks_place(slices *s, uint32_t sample, const char *path, uint32_t column)
{
    s->samples[sample].path = table_add(&s->sample_paths, path);
    s->samples[sample].column = column;
}

void stacks_free(slices *s)
{
    for (size_t i = 0; i < s->sample_count; i++) {
        free(s->samples[i].stack);
        free(s->samples[i].build);
    }
    for (size_t i = 0; i < s->file_room; i++) {
        free(s->files[i].path);
        free(s->files[i].build);
    }
    free(s->samples);
    free(s->frames);
    free(s->files);
    table_finish(&s->functions);
    table_finish(&s->sample_paths);
}

/* ---- what the step has more of ---- */

/* Samples are drawn, so of so many ns there are more or fewer by chance: the difference has to be
 * beyond twice what that does. */

#define CERTAIN 2.0

typedef struct amount {
    double ns, square; /* the sum of the squares of what samples stand for */
} amount;

typedef struct pair {
    uint32_t function, caller;
    amount now, usual; /* usual: of all usual steps */
} pair;

typedef struct pairs {
    pair *all;
    size_t count, room;
} pairs;

static void add(amount *a, uint64_t ns)
{
    a->ns += (double)ns;
    a->square += (double)ns * (double)ns;
}

static pair *pair_of(pairs *p, uint32_t function, uint32_t caller)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->all[i].function == function && p->all[i].caller == caller)
            return &p->all[i];
    memory_fit(&p->all, &p->room, p->count + 1, sizeof *p->all);
    p->all[p->count] = (pair){.function = function, .caller = caller};
    return &p->all[p->count++];
}

/* As perf's map of a process has them, which `python3 -X perf` writes. */
static bool is_script(const slices *s, uint32_t function)
{
    static const char mark[] = "py::";
    return strncmp(s->functions.texts[function], mark, sizeof mark - 1) == 0;
}

/* From that one on the next that is another function than this; recursion says nothing. */
static uint32_t next_of(const slices *s, const sample_seen *at, uint32_t i, uint32_t other,
                        bool scripts)
{
    for (; i < at->count; i++) {
        uint32_t is = s->frames[at->first + i];
        if (is != other && (!scripts || is_script(s, is)))
            return is;
    }
    return TABLE_NONE;
}

static double more_of(const pair *p, double usual_count)
{
    return p->now.ns - p->usual.ns / usual_count;
}

static const char *function_name(const slices *s, uint32_t function)
{
    return function == TABLE_NONE ? "" : s->functions.texts[function];
}

/* Of one function all callers, the caller that has most of it. */
static void choose(const slices *s, const pairs *p, double usual_count, stacks_more *out)
{
    double most = 0;
    for (size_t i = 0; i < p->count; i++) {
        amount now = {0}, usual = {0};
        const pair *caller = NULL;
        for (size_t k = 0; k < p->count; k++) {
            const pair *other = &p->all[k];
            if (other->function != p->all[i].function)
                continue;
            now.ns += other->now.ns;
            now.square += other->now.square;
            usual.ns += other->usual.ns;
            usual.square += other->usual.square;
            if (!caller || more_of(other, usual_count) > more_of(caller, usual_count))
                caller = other;
        }
        double more = now.ns - usual.ns / usual_count;
        if (more <= most)
            continue;
        double chance = sqrt(now.square + usual.square / usual_count / usual_count);
        most = more;
        out->function = function_name(s, p->all[i].function);
        out->caller = function_name(s, caller ? caller->caller : TABLE_NONE);
        out->ns = now.ns;
        out->usual = usual.ns / usual_count;
        out->certain = more >= CERTAIN * chance;
    }
}

bool stacks_dearest(const slices *s, const char *path, uint32_t step, uint64_t usual_count,
                    bool scripts, stacks_more *out)
{
    pairs p = {0};
    uint32_t id = table_find(&s->sample_paths, path);
    uint32_t kernel = table_find(&s->functions, PKI_SAMPLE_KERNEL);
    double usual = usual_count ? (double)usual_count : 1;
    *out = (stacks_more){.function = "", .caller = ""};
    for (size_t i = 0; id != TABLE_NONE && i < s->sample_count; i++) {
        const sample_seen *at = &s->samples[i];
        if (at->path != id || at->column == NO_COLUMN || !at->count)
            continue;
        bool now = at->column == step;
        uint32_t in = next_of(s, at, 0, TABLE_NONE, scripts);
        if (in != TABLE_NONE) {
            pair *is = pair_of(&p, in, next_of(s, at, 1, in, scripts));
            add(now ? &is->now : &is->usual, at->ns);
        }
        out->samples += now;
        out->usual_samples += !now;
        if (s->frames[at->first] == kernel)
            out->kernel += now ? (double)at->ns : -(double)at->ns / usual;
    }
    choose(s, &p, usual, out);
    free(p.all);
    return out->samples > 0;
}

/* ---- for the page ---- */

#define NODES_MOST 4000u
#define SMALL 0.005 /* of the larger step's samples */
#define BETWEEN " > "

typedef struct node {
    uint32_t name, parent, depth;
    double now, usual;
} node;

typedef struct flame {
    const slices *in;
    node *nodes; /* the first is the root */
    size_t count, room;
    table names, known; /* known: each node but the root, by its parent and name */
} flame;

static uint32_t child_of(flame *f, uint32_t parent, const char *text)
{
    char key[700];
    snprintf(key, sizeof key, "%x %.600s", parent, text);
    uint32_t is = table_find(&f->known, key);
    if (is != TABLE_NONE)
        return is + 1;
    if (f->count == NODES_MOST)
        return parent;
    table_add(&f->known, key);
    memory_fit(&f->nodes, &f->room, f->count + 1, sizeof *f->nodes);
    f->nodes[f->count] =
        (node){table_add(&f->names, text), parent, f->nodes[parent].depth + 1, 0, 0};
    return (uint32_t)f->count++;
}

/* "forward > attention" */
static uint32_t region_of(flame *f, const char *path)
{
    char name[600];
    uint32_t at = 0;
    if (!path[0])
        return child_of(f, 0, "(outside regions)");
    for (;;) {
        const char *end = strstr(path, BETWEEN);
        size_t n = end ? (size_t)(end - path) : strlen(path);
        snprintf(name, sizeof name, "%.*s", (int)PKI_MIN(n, sizeof name - 1), path);
        at = child_of(f, at, name);
        if (!end)
            return at;
        path = end + sizeof BETWEEN - 1;
    }
}

static void add_sample(flame *f, const sample_seen *at, bool now, double usual_count)
{
    const slices *s = f->in;
    uint32_t last = region_of(f, s->sample_paths.texts[at->path]);
    for (uint32_t i = at->count; i-- > 0;)
        last = child_of(f, last, s->functions.texts[s->frames[at->first + i]]);
    for (;; last = f->nodes[last].parent) {
        node *n = &f->nodes[last];
        n->now += now ? (double)at->ns : 0;
        n->usual += now ? 0 : (double)at->ns / usual_count;
        if (last == 0)
            return;
    }
}

static void put_nodes(const flame *f, uint32_t at, double least, pki_json *j)
{
    const node *n = &f->nodes[at];
    if (n->now < least && n->usual < least)
        return;
    pki_json_open(j, NULL, '[');
    pki_json_uint(j, NULL, n->depth);
    pki_json_uint(j, NULL, n->name);
    pki_json_uint(j, NULL, (uint64_t)n->now);
    pki_json_uint(j, NULL, (uint64_t)n->usual);
    pki_json_close(j, ']');
    for (uint32_t i = at + 1; i < f->count; i++)
        if (f->nodes[i].parent == at && n->depth < 2 * FRAMES_MOST)
            put_nodes(f, i, least, j);
}

void stacks_put(const slices *s, const pki_beside *beside, pki_json *j)
{
    flame f = {.in = s};
    double usual_count = beside->usual_count ? (double)beside->usual_count : 1;
    memory_fit(&f.nodes, &f.room, 1, sizeof *f.nodes);
    f.nodes[f.count++] = (node){table_add(&f.names, "all"), 0, 0, 0, 0};
    for (size_t i = 0; i < s->sample_count; i++)
        if (s->samples[i].column != NO_COLUMN && s->samples[i].count)
            add_sample(&f, &s->samples[i], s->samples[i].column == BESIDE_USUAL_MOST, usual_count);
    pki_json_open(j, "flame", '{');
    pki_json_open(j, "names", '[');
    for (uint32_t i = 0; i < f.names.count; i++)
        pki_json_text(j, NULL, f.names.texts[i]);
    pki_json_close(j, ']');
    pki_json_open(j, "nodes", '[');
    if (f.count > 1)
        put_nodes(&f, 0, SMALL * fmax(f.nodes[0].now, f.nodes[0].usual), j);
    pki_json_close(j, ']');
    pki_json_close(j, '}');
    table_finish(&f.names);
    table_finish(&f.known);
    free(f.nodes);
}

/* ---- what no region covers ---- */

/* A place is where its function begins: what is inlined there is not what is meant. */
static void name_place(symbols *s, char **name, const char *place, const char *build)
{
    const char *known = place[0] ? symbols_of(s, place, build) : "";
    const char *last = strrchr(known, SYMBOLS_APART[0]);
    free(*name);
    *name = memory_copy(last ? last + 1 : known);
}

static bool is_alike(const pki_outside_row *a, const pki_outside_row *b)
{
    return strcmp(a->function, b->function) == 0 && strcmp(a->caller, b->caller) == 0;
}

static void free_row(pki_outside_row *r)
{
    char *texts[] = {r->function, r->caller, r->place, r->build, r->caller_place, r->caller_build};
    for (size_t i = 0; i < PKI_COUNT_OF(texts); i++)
        free(texts[i]);
}

static int dearest_row_first(const void *a, const void *b)
{
    const pki_outside_row *r = a, *q = b;
    return r->ns != q->ns ? (r->ns < q->ns) - (r->ns > q->ns) : strcmp(r->function, q->function);
}

void outside_name(pki_summary *summary)
{
    symbols s = {0};
    pki_outside *o = &summary->outside;
    size_t kept = 0;
    for (size_t i = 0; i < o->count; i++) {
        pki_outside_row *r = &o->rows[i];
        size_t k = 0;
        if (!r->function[0])
            name_place(&s, &r->function, r->place, r->build);
        if (!r->caller[0])
            name_place(&s, &r->caller, r->caller_place, r->caller_build);
        while (k < kept && !is_alike(&o->rows[k], r))
            k++;
        if (k == kept) {
            o->rows[kept++] = *r;
            continue;
        }
        o->rows[k].samples += r->samples;
        o->rows[k].ns += r->ns;
        free_row(r);
    }
    o->count = kept;
    if (kept)
        qsort(o->rows, kept, sizeof *o->rows, dearest_row_first);
    symbols_finish(&s);
}
