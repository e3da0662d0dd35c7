/* pk compare and pk bench-ab where jansson was not there when pk was built. */
#include "command.h"

int command_compare(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return complain("compare: this pk was built without jansson, which reads JSON");
}

int command_bench_ab(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return complain("bench-ab: this pk was built without jansson, which reads JSON");
}
