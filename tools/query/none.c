/* tools/query/none.c - pk query where SQLite was not there when pk was built. */
#include "command.h"

int command_query(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return complain("query: this pk was built without SQLite;"
                    " `pk export` makes files for other engines");
}
