/* tools/files.h - files of a command: read with progress, made under another name until they are
 * whole */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "complaint.h"

/* ---- "reading run.json: 40 %" on stderr, for those who wait at a terminal ---- */

typedef struct progress {
    const char *what; /* NULL: say nothing */
    uint64_t next;    /* when there is something to say again, ns */
    bool said;
} progress;

/* Nothing is said if stderr is not a terminal, nor within the first second. */
progress progress_start(const char *what, bool wanted);

/* part: 0 .. 1; negative if unknown. Cheap enough for every few thousand lines. */
void progress_show(progress *p, double part);

/* Takes back what has been said. */
void progress_end(progress *p);

/* ---- a file that a command makes: under another name until it is whole ---- */

typedef struct output {
    FILE *to;
    const char *path;
    struct output *next;      /* that is open, too: an output stays where it is */
    char temporary[PATH_MAX]; /* for who writes it in another way than through `to` */
} output;

/* What can be an output. OUTPUT_OR_STANDARD: the option also takes "-", which its owner has looked
 * for already; it is named where a path is refused. */
typedef enum output_kind { OUTPUT_FILE, OUTPUT_OR_STANDARD } output_kind;

/* Can there be a file of this path? False, and why, beginning with the path. To be asked before
 * long work; output_open asks again. */
bool output_check(const char *path, output_kind kind, complaint *why);

/* False, and why, beginning with the path. */
bool output_open(output *o, const char *path, output_kind kind, complaint *why);

/* The name that a file has until it is whole: it goes with the command, if that ends before. "": it
 * is whole, or has been given up. Of one file at a time, which is no output. */
void output_begins(const char *temporary);

/* Puts it in its place, if `whole` and all that was written has gone through; if not, it is
 * removed. False, and why: `why` keeps what its owner has put there when it was not whole. */
bool output_close(output *o, bool whole, complaint *why);
