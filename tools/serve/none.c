/* tools/serve/none.c - pk serve where libmicrohttpd was not there when pk was built. */
#include "command.h"

int command_serve(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return complain("serve: this pk was built without libmicrohttpd; node exporter's textfile"
                    " collector reads metrics_path's files without it");
}
