/* tools/launch.c - pk, whose commands are a library that it loads, but for `pk run`: each rank of a
 * job starts that one, and libraries that read files take longer to load than all that it does.
 */
#include "command.h"

#include <dlfcn.h>
#include <string.h>

#include "run/own.h"

#define COMMANDS "pk_commands.so"

/* It stays loaded: the process ends with it. */
static int load(int argc, char **argv)
{
    char path[PATH_MAX];
    int (*all)(int argc, char **argv);
    if (!own_file(COMMANDS, path))
        return complain(COMMANDS " is missing, which is installed with pk");
    void *library = dlopen(path, RTLD_LAZY), *found = library ? dlsym(library, "pk_main") : NULL;
    if (!found)
        return complain("%s", dlerror());
    memcpy(&all, &found, sizeof found);
    return all(argc, argv);
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "run") != 0)
        return load(argc, argv);
    return command_end(command_run(argc - 1, argv + 1));
}
