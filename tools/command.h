/* tools/command.h - what a sub-command of pk is, and its options */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/arguments.h"

/* ---- what a sub-command of pk is. main.c has the table ---- */

/* A command gets its own name as argv[0] and what follows it. It answers the exit status: EXIT_OK,
 * EXIT_UNUSABLE after one line on stderr that says what is wrong, or what its help says. */

#define EXIT_OK 0
#define EXIT_UNUSABLE 2 /* wrong arguments, or a file that cannot be used */

typedef int command_function(int argc, char **argv);

typedef struct command {
    const char *name;
    command_function *run;
    const char *help; /* one line */
} command;

command_function command_ab;
command_function command_bench_ab;
command_function command_capture;
command_function command_compare;
command_function command_export;
command_function command_job;
command_function command_machine;
command_function command_merge;
command_function command_query;
command_function command_report;
command_function command_recover;
command_function command_run;
command_function command_status;
command_function command_top;
command_function command_where;

/* The exit status behind a command's: a full disk behind a redirection is not a success, and what
 * is wrong is said once. */
int command_end(int status);

/* "pk: what is wrong", then EXIT_UNUSABLE. */
int complain(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));

/* ---- the options of a command, from one table ---- */

/* bench/arguments.h says what an option is. `pk COMMAND --help=json` is what manual pages and
 * shells' completions are made of (package/pages). Behind "--" nothing is an option, and "-" never
 * is one. --help ends the reading. */

typedef pki_option option;
typedef pki_option_given option_given; /* of an option_table */
typedef pki_option_setter option_take;

/* What a command takes that is no option; in the place of its arguments. */
typedef struct operands {
    char **all;
    size_t count;
} operands;

typedef struct option_table {
    const char *command;
    const char *usage; /* behind "usage: pk COMMAND "; more lines are other ways */
    const char *about; /* lines as they are printed: before the options... */
    const char *notes; /* ...and behind them */
    pki_option_list options;
    const char *who; /* in front of complaints about values: "compare: ", or "" */
    bool sql;        /* "-- a comment" is no option */
    /* By what the names of its files end, with blanks between: "json gz"; "": any; NULL: it takes
     * none. */
    const char *files;
    size_t operands; /* the offset of an `operands` in the wish */
    void (*rest)(void *wish, char **arguments, int count); /* what follows "--"; NULL: operands */
} option_table;

static inline const option_table *option_table_of(const option_given *given)
{
    return given->of;
}

/* Reads the arguments behind argv[0]. OPTIONS_READ; else the command's exit status, after the help
 * or a complaint. */
#define OPTIONS_READ (-1)
int options_read(const option_table *table, void *wish, int argc, char **argv);

/* ---- ways to take a value; `at` is the offset of... ---- */

/* ...a const char *. If the option says what it `needs`, "" is none. */
option_take option_text;

/* ...a uint32_t, from `least` to `most` (0: any). */
option_take option_number;

/* Is there one? "NAME needs WHAT" if not. */
bool option_has_value(const option_given *given);

/* "NAME takes WHAT, not "VALUE"": always false. */
bool option_refuse(const option_given *given, const char *takes);
