/* tools/without_jansson.c - what commands answer where jansson was not there when pk was built. */
#include "command.h"

static int refuse(const char *name)
{
    return complain("%s: this pk was built without jansson, which reads JSON", name);
}

int command_export(int argc, char **argv)
{
    (void)argc;
    return refuse(argv[0]);
}

int command_report(int argc, char **argv)
{
    (void)argc;
    return refuse(argv[0]);
}

int command_compare(int argc, char **argv)
{
    (void)argc;
    return refuse(argv[0]);
}

int command_bench_ab(int argc, char **argv)
{
    (void)argc;
    return refuse(argv[0]);
}
