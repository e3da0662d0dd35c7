/* tools/ab/ab.h - any two commands in turn: `pk ab` */
#pragma once

#include "compare/compare.h"
#include "table.h"

/* Pairs of process runs, each of one command, in an order drawn for each pair: if both commands do
 * the same, either order of a pair's two figures is as likely as the other, whatever the machine
 * does meanwhile, which is all that signed ranks ask for. A process run is one replication; its
 * figures are
 *
 *   wall time, CPU time     from its start to its end, wait4's
 *   step, "region NAME"     medians, if it writes a report of perfkit: PK_REPORT_PATH is set for it
 *   benchmarks              instead of these, if a word of the command is or has "{}": the name of
 *                           a file of benchmarks that it is to write (compare/file.c has whose)
 *
 * One process run of each before the first pair counts for nothing. */

typedef struct programs_wish {
    ab_wish ab; /* first: what the session has */
    double time;
    char **words[2]; /* old, new: NULL behind the last */
    table regions;   /* those that are told, from the runs that do not count */
} programs_wish;

#define PROGRAMS_FILE "{}"

/* Of an ab_session whose wish is a programs_wish's. */
bool programs_launch(ab_session *s, complaint *why);
