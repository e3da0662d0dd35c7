/* tools/report_none.c - pk report where jansson was not there when pk was built. */
#include "command.h"

int command_report(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return complain("report: this pk was built without jansson, which reads JSON");
}
