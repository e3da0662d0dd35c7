#include "run/own.h"

#include <libgen.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <run/installed.h> /* made by meson */

/* From the program's folder on: installed, or as it is built. */
static const char *const beside[] = {"../" PK_RUN_LIBDIR,
                                     "../" PK_RUN_LIBDIR "/perfkit",
                                     ".",
                                     "../lib/attach",
                                     "../lib/comm/mpi",
                                     "../lib"};
static const char *const installed[] = {PK_RUN_INSTALLED, PK_RUN_INSTALLED "/perfkit"};

static bool is_there(char path[PATH_MAX], const char *folder, const char *name)
{
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && access(path, R_OK) == 0;
}

bool own_file(const char *name, char path[PATH_MAX])
{
    char self[PATH_MAX], folder[PATH_MAX + 80], resolved[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    const char *home = dirname(self);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        snprintf(folder, sizeof folder, "%s/%s", home, beside[i]);
        if (is_there(path, folder, name) && realpath(folder, resolved))
            return is_there(path, resolved, name);
    }
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
        if (is_there(path, installed[i], name))
            return true;
    return false;
}
