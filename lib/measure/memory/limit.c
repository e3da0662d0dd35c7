#include "measure/memory/limit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/compiler.h"
#include "base/files.h"

#define NONE ((uint64_t)1 << 60) /* version 1 writes the largest number of pages for no limit */

bool pki_memory_field(const char *path, const char *key, uint64_t *value)
{
    char text[8192];
    return pki_small_file(path, text, sizeof text) && pki_small_file_number(text, key, value);
}

/* What the two versions call it, and where. */
typedef struct version {
    const char *mount, *limit, *key, *shared; /* key, shared: in memory.stat */
} version;

static const version first = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "total_rss",
                              "total_shmem"};
static const version second = {"/sys/fs/cgroup", "memory.max", "anon", "shmem"};

/* The path behind the second colon of the process's line; false: it is in no such group. */
static bool group_path(const char *root, bool of_first, char out[PATH_MAX])
{
    char path[PATH_MAX], text[4096], *rest = text;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!pki_small_file(path, text, sizeof text))
        return false;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group = '\0';
        char *at = strstr(controllers, "memory");
        if (of_first ? !at : strcmp(controllers, ":") != 0)
            continue;
        snprintf(out, PATH_MAX, "%s", group + 1);
        return true;
    }
    return false;
}

static void check_group(const char *root, const version *v, const char *group,
                        pki_memory_limit *found)
{
    char path[PATH_MAX + 256], text[64];
    snprintf(path, sizeof path, "%s%s%s/%s", root, v->mount, group, v->limit);
    uint64_t limit = pki_small_file(path, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
    if (!limit || limit >= NONE || (found->of && limit >= found->limit)) /* "max" has no digits */
        return;
    uint64_t own = 0, shared = 0;
    snprintf(path, sizeof path, "%s%s%s/memory.stat", root, v->mount, group);
    pki_memory_field(path, v->key, &own);
    pki_memory_field(path, v->shared, &shared);
    *found = (pki_memory_limit){"cgroup", limit, own + shared};
}

/* A container sees its own group as the root, whatever the process's line says. */
static void check_parents(const char *root, const version *v, char *group, pki_memory_limit *found)
{
    for (char *end; (end = strrchr(group, '/')); *end = '\0')
        check_group(root, v, group, found);
    check_group(root, v, "", found);
}

static pki_memory_limit of_group(const char *root)
{
    char group[PATH_MAX];
    pki_memory_limit found = {0};
    if (group_path(root, true, group))
        check_parents(root, &first, group, &found);
    else if (group_path(root, false, group))
        check_parents(root, &second, group, &found);
    return found;
}

static pki_memory_limit of_process(void)
{
    struct rlimit as;
    uint64_t used;
    if (getrlimit(RLIMIT_AS, &as) || as.rlim_cur == RLIM_INFINITY || as.rlim_cur >= NONE ||
        !pki_memory_field("/proc/self/status", "VmPeak", &used))
        return (pki_memory_limit){0};
    return (pki_memory_limit){"RLIMIT_AS", as.rlim_cur, used};
}

static double share(const pki_memory_limit *l)
{
    return l->of ? (double)l->used / (double)l->limit : 0;
}

pki_memory_limit pki_memory_limit_find(const char *root, uint64_t most_private)
{
    pki_memory_limit group = of_group(root), own = of_process();
    group.used = PKI_MAX(group.used, most_private);
    return !group.of || (own.of && share(&own) > share(&group)) ? own : group;
}
