#include "tally.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MOST 64
#define ROWS_MOST 1024

/* What identifies a row, in as many parts as its kind has; then a count, a sum or a value. */
typedef struct row {
    const char *parts[3];
    unsigned depth;
    double number;
} row;

typedef struct table {
    row rows[ROWS_MOST];
    unsigned count;
} table;

static table slices, marks, values, arguments;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local const char *track;
static _Thread_local const char *path[DEPTH_MOST];
static _Thread_local unsigned depth;

static void fail(const char *what)
{
    fprintf(stderr, "tally: %s\n", what);
    abort();
}

static int same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static row *find(table *t, const row *wanted)
{
    for (row *r = t->rows; r < t->rows + t->count; r++)
        if (r->depth == wanted->depth && same(r->parts[1], wanted->parts[1]) &&
            same(r->parts[0], wanted->parts[0]) && same(r->parts[2], wanted->parts[2]))
            return r;
    return NULL;
}

static row *append(table *t, const row *new_row)
{
    if (t->count == ROWS_MOST)
        fail("too many rows");
    t->rows[t->count] = *new_row;
    return &t->rows[t->count++];
}

static void add(table *t, row wanted, double number)
{
    pthread_mutex_lock(&lock);
    row *r = find(t, &wanted);
    r = r ? r : append(t, &wanted);
    r->number += number;
    pthread_mutex_unlock(&lock);
}

void tally_track(const char *shown)
{
    track = shown;
}

void tally_open(const char *shown)
{
    if (depth == DEPTH_MOST)
        fail("too deep");
    path[depth++] = shown;
}

static row inside(const char *shown)
{
    return (row){{track, shown, depth ? path[depth - 1] : NULL}, depth, 0};
}

void tally_many(const char *shown, unsigned count)
{
    add(&slices, inside(shown), count);
}

void tally_shut(void)
{
    if (depth == 0)
        fail("nothing is open");
    depth--;
    tally_many(path[depth], 1);
}

void tally_leave_open(void)
{
    tally_argument(path[depth - 1], "unbalanced", 1);
    tally_shut();
}

void tally_step(unsigned index, double items)
{
    char *name = malloc(32);
    if (!name)
        fail("no memory");
    snprintf(name, 32, "ProfilerStep#%u", index);
    add(&slices, (row){{"steps", name, NULL}, 0, 0}, 1);
    tally_argument(name, "items", items);
}

void tally_mark(const char *shown)
{
    add(&marks, inside(shown), 1);
}

void tally_value(const char *counter, double value)
{
    pthread_mutex_lock(&lock);
    append(&values, &(row){{counter, NULL, NULL}, 0, value});
    pthread_mutex_unlock(&lock);
}

void tally_argument(const char *shown, const char *key, double value)
{
    add(&arguments, (row){{shown, key, NULL}, 0, 0}, value);
}

/* ---- as JSON ---- */

static void print_part(FILE *file, const char *part)
{
    if (part)
        fprintf(file, "\"%s\",", part);
    else
        fputs("null,", file);
}

/* Rows as arrays: the first so many parts, the depth if wanted, the number. */
static void print_table(FILE *file, const char *name, const table *t, unsigned parts,
                        int with_depth)
{
    fprintf(file, "\"%s\":[", name);
    for (const row *r = t->rows; r < t->rows + t->count; r++) {
        fputs(r == t->rows ? "[" : ",[", file);
        for (unsigned i = 0; i < parts; i++)
            print_part(file, r->parts[i]);
        if (with_depth)
            fprintf(file, "%u,", r->depth);
        fprintf(file, "%.17g]", r->number);
    }
    fputs("]", file);
}

void tally_print(FILE *file)
{
    pthread_mutex_lock(&lock);
    fputc('{', file);
    print_table(file, "slices", &slices, 3, 1);
    fputc(',', file);
    print_table(file, "marks", &marks, 3, 1);
    fputc(',', file);
    print_table(file, "values", &values, 1, 0);
    fputc(',', file);
    print_table(file, "arguments", &arguments, 2, 0);
    fprintf(file, ",\"open\":%u}\n", depth);
    fflush(file);
    pthread_mutex_unlock(&lock);
}
