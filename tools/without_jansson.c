/* tools/without_jansson.c - what commands answer where jansson was not there when pk was built. */
#include "command.h"

static int refuse(int argc, char **argv)
{
    (void)argc;
    return complain("%s: this pk was built without jansson, which reads JSON", argv[0]);
}

#define REFUSED __attribute__((alias("refuse")))
command_function command_export REFUSED, command_report REFUSED, command_compare REFUSED,
    command_merge REFUSED, command_bench_ab REFUSED, command_job REFUSED;
