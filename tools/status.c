/* tools/status.c - pk status: what perfkit finds here, before anybody measures with it. */
#include "status_show.h"

#include "command.h"

#include <pk/pk.h>

#include <stdio.h>
#include <string.h>

static int print_help(void)
{
    printf(
        "usage: pk status\n"
        "\n"
        "What perfkit finds on this machine and in this environment: the clock and what a region\n"
        "costs with it, limits of memory and files, the rank that a launcher gave, the backends\n"
        "and why they are off, and the PK_ variables that are set.\n"
        "\n"
        "  --help      this\n"
        "\n"
        "Exit status: 0; 2 if pk_start with these variables would fail.\n");
    return EXIT_OK;
}

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
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_help();
    if (argc > 1)
        return complain("status %s \"%s\" (pk status --help)",
                        argv[1][0] == '-' ? "has no option" : "takes no file, thus not", argv[1]);
    printf("perfkit   %s\n", pk_version());
    show_clock();
    show_limits();
    show_world();
    show_backends();
    show_environment();
    return try_start();
}
