/* tools/command.h - what a sub-command of pk is, and its options */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
command_function command_status;
command_function command_top;
command_function command_where;

/* "pk: what is wrong", then EXIT_UNUSABLE. */
int complain(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));

/* ---- the options of a command, from one table ---- */

/* The table says what an option is called, what it takes and what it is for. Of it are made: what
 * reads a command line, what `pk COMMAND --help` says, and, through `pk COMMAND --help=json`, the
 * manual pages and what shells complete (package/pages).
 *
 * An option's value stands behind it, or behind a "=" if its name begins with "--". Behind "--"
 * nothing is an option, and "-" never is one. --help ends the reading. */

typedef struct option_table option_table;
typedef struct option option;

/* An option as it was given. */
typedef struct option_given {
    const option_table *of;
    const option *option;
    const char *text; /* its value; NULL: nothing follows it */
} option_given;

/* Puts it into the command's wish. False after a complaint. */
typedef bool option_take(void *wish, const option_given *given);

/* What a shell offers for a value. */
typedef enum option_kind { OPTION_NONE, OPTION_WORD, OPTION_FILE, OPTION_FOLDER } option_kind;

struct option {
    const char *name;  /* "--top", or "-o" */
    const char *value; /* what the help calls its value: "N"; NULL: it has none */
    const char *help;  /* "{}" stands for `shown`; NULL: what the next one's says */
    option_kind kind;
    option_take *take; /* NULL: sets the bool at this offset of the wish */
    size_t at;
    const char *needs; /* for option_text */
    uint32_t least, most;
    double shown;
    bool begins_group; /* an empty line before it */
};

/* What a command takes that is no option; in the place of its arguments. */
typedef struct operands {
    char **all;
    size_t count;
} operands;

struct option_table {
    const char *command;
    const char *usage; /* behind "usage: pk COMMAND "; more lines are other ways */
    const char *about; /* lines as they are printed: before the options... */
    const char *notes; /* ...and behind them */
    const option *all;
    size_t count;
    const char *who; /* in front of complaints about values: "compare: ", or "" */
    bool sql;        /* "-- a comment" is no option */
    /* By what the names of its files end, with blanks between: "json gz"; "": any; NULL: it takes
     * none. */
    const char *files;
    size_t operands; /* the offset of an `operands` in the wish */
    void (*rest)(void *wish, char **arguments, int count); /* what follows "--"; NULL: operands */
};

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
