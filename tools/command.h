/* tools/command.h - what a sub-command of pk is. main.c has the table.
 *
 * A command gets its own name as argv[0] and what follows it. It answers the exit status: EXIT_OK,
 * EXIT_UNUSABLE after one line on stderr that says what is wrong, or what its help says.
 */
#pragma once

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
