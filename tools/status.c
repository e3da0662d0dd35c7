/* tools/status.c - pk status: what perfkit finds here, before anybody measures with it. */
#include "status_show.h"

#include "command.h"
#include "command_line.h"

#include <pk/pk.h>

#include <stdio.h>

static const option_table command_options = {
    .command = "status",
    .usage = "",
    .about =
        "What perfkit finds on this machine and in this environment: the clock and what a region\n"
        "costs with it, limits of memory and files, the rank that a launcher gave, the backends\n"
        "and why they are off, and the PK_ variables that are set.",
    .notes = "Exit status: 0; 2 if pk_start with these variables would fail.",
    .who = "",
};

/* Would pk_start(NULL) work here? Its words, if not. A session without files says so without
 * leaving any. */
static int try_start(void)
{
    pk_status status =
        pk_start(pk_options(.arena_path = "none", .trace_path = "", .report_path = ""));
    if (status)
        return complain("pk_start would fail: %s (%s)", pk_error_message(), pk_status_name(status));
    pk_stop();
    return EXIT_OK;
}

int command_status(int argc, char **argv)
{
    operands files;
    int status = options_read(&command_options, &files, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (files.count)
        return complain("status takes no file, thus not \"%s\" (pk status --help)", files.all[0]);
    printf("perfkit   %s\n", pk_version());
    show_clock();
    show_limits();
    show_world();
    show_backends();
    show_environment();
    return try_start();
}
