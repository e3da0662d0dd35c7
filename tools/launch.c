/* tools/launch.c - pk, which becomes the program of all commands, but for `pk run`: each rank of a
 * job starts that one, and libraries that read files take longer to load than all that it does.
 */
#include "command.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "run/own.h"

#define COMMANDS "pk-commands"

static int become_all(char **argv)
{
    char path[PATH_MAX];
    if (!own_file(COMMANDS, path))
        return complain(COMMANDS " is missing, which is installed with pk");
    execv(path, argv);
    return complain("%s: %s", path, strerror(errno));
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "run") != 0)
        return become_all(argv);
    return command_end(command_run(argc - 1, argv + 1));
}
