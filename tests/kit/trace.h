/* trace.h - a trace file, read without perfkit's own reader: zlib, one line at a time through
 * jansson, and the document around the lines as a whole.
 */
#ifndef TESTS_TRACE_H
#define TESTS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct trace_event {
    char ph;
    bool unbalanced, step;
    uint32_t tid;
    uint64_t ts, dur; /* ps: what begins or ends with another is a fraction of a ns away */
    uint64_t bytes, flops;
    char name[40];
} trace_event;

typedef struct trace {
    trace_event *events; /* without metadata */
    size_t count, room;
    size_t thread_names;
    bool has_report;
    uint64_t begun, recorded, written, dropped, unwritten; /* of the head */
    bool complete;
    char why[300]; /* what is wrong with it */
} trace;

/* False, and why, if the file is not one whole JSON document of the form that perfkit writes. */
bool trace_read(trace *t, const char *path);

/* The same of text in memory, as it stands in a file that is not compressed. */
bool trace_parse(trace *t, const char *text, size_t bytes);
void trace_free(trace *t);

/* Decompressed content of a file; NULL, and why, if it is cut or spoilt. */
char *trace_load(trace *t, const char *path, size_t *bytes);

/* Do the slices of each thread nest? False, and why. */
bool trace_nests(trace *t);

/* Slices of that name that are no steps; NULL for all. */
uint64_t trace_slices(const trace *t, const char *name);

#endif
