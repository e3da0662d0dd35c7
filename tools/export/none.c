/* tools/export/none.c - pk export where jansson was not there when pk was built. */
#include "command.h"

int command_export(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return complain("export: this pk was built without jansson, which reads JSON");
}
