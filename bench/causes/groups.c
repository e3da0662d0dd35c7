/* Groups of control of a run's own. */
#include "causes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The group that this process is in; "" is the top. controller "": of version 2. */
static void own_group(const char *controller, char *path, size_t size)
{
    char row[512];
    FILE *file = fopen("/proc/self/cgroup", "re");
    *path = 0;
    while (file && fgets(row, sizeof row, file)) {
        char *names = strchr(row, ':'), *at = names ? strchr(names + 1, ':') : NULL;
        if (!at)
            continue;
        *at++ = 0;
        at[strcspn(at, "\n")] = 0;
        if (strcmp(names + 1, controller) == 0)
            snprintf(path, size, "%s", strcmp(at, "/") == 0 ? "" : at);
    }
    if (file)
        fclose(file);
}

static bool has(const cause_group *g, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", g->path, name);
    return access(path, W_OK) == 0;
}

static bool make_in(cause_group *g, const char *mount, const char *above, const char *name)
{
    snprintf(g->path, sizeof g->path, "%s%.300s/pk-causes-%d", mount, above, (int)getpid());
    if (mkdir(g->path, 0755) != 0)
        return false;
    if (has(g, name) && has(g, "cgroup.procs"))
        return true;
    rmdir(g->path);
    errno = ENOENT;
    return false;
}

void cause_group_make(cause_group *g, const char *controller, const char *first, const char *second)
{
    char mount[100], above[400];
    int error = 0;
    for (int version = 1; version <= 2; version++) {
        const char *mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
        g->second = version == 2;
        own_group(g->second ? "" : controller, above, sizeof above);
        for (int i = 0; i < version; i++) {
            snprintf(mount, sizeof mount, "%s%s%s", mounts[i], g->second ? "" : "/",
                     g->second ? "" : controller);
            if (g->second && access(strcat(strcpy(g->path, mount), "/cgroup.controllers"), F_OK))
                continue;
            const char *name = g->second ? second : first;
            if (make_in(g, mount, above, name) || make_in(g, mount, "", name))
                return;
            error = errno;
        }
    }
    cause_skip("no group with %s or %s: %s", first, second, strerror(error));
}

static int open_in(const cause_group *g, const char *file, int how)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", g->path, file);
    return open(path, how | O_CLOEXEC);
}

bool cause_group_write(const cause_group *g, const char *file, const char *text)
{
    int fd = open_in(g, file, O_WRONLY);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return good;
}

long long cause_group_read(const cause_group *g, const char *file)
{
    char text[64] = "";
    int fd = open_in(g, file, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    return n > 0 ? strtoll(text, NULL, 10) : 0;
}

void cause_group_join(const cause_group *g)
{
    char pid[32];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (!cause_group_write(g, "cgroup.procs", pid))
        cause_skip("%s: %s", g->path, strerror(errno));
}

void cause_group_remove(const cause_group *g)
{
    for (int i = 0; i < 100 && rmdir(g->path) != 0 && errno == EBUSY; i++)
        cause_sleep(10);
}
