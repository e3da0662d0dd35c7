#include "measure/memory/course.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/compiler.h"
#include "base/files.h"

/* ---- what the collector sees of memory, look by look, put together ---- */

void pki_memory_course_finish(pki_memory_course *c)
{
    for (size_t i = 0; i < c->region_room; i++)
        pki_growth_finish(&c->regions[i]);
    free(c->regions);
    pki_growth_finish(&c->growth);
    pki_series_finish(&c->line.parts);
    pki_tally_finish(&c->resident);
    pki_tally_finish(&c->minor);
    pki_tally_finish(&c->major);
    *c = (pki_memory_course){0};
}

/* Two looks of which the later one has twice the steps, at least, of the earlier: whenever the run
 * ends, one of them lies in its first half, and not before a quarter. */
static bool is_early(pki_memory_course *c, const pki_memory_look *look)
{
    if (c->looks && look->steps < 2 * PKI_MAX(c->next_early.steps, 4u))
        return false;
    c->early = c->next_early;
    c->next_early = *look;
    return true;
}

static void add_steps(pki_memory_course *c, const pki_memory_look *look)
{
    uint64_t steps = look->steps - c->last.steps;
    pki_tally_add(&c->resident, (double)look->resident, steps);
    pki_tally_add(&c->minor, (double)(look->minor - c->last.minor) / (double)steps, steps);
    pki_tally_add(&c->major, (double)(look->major - c->last.major) / (double)steps, steps);
    pki_growth_see(&c->growth, look->steps - 1, look->private_bytes);
}

bool pki_memory_course_see(pki_memory_course *c, const pki_memory_look *look)
{
    bool early = is_early(c, look);
    (void)pki_timeline_add(&c->line, look->ns, (double)look->resident); /* or it is not in it */
    c->end = *look;
    c->most_private = PKI_MAX(c->most_private, look->private_bytes);
    if (c->looks++ == 0)
        c->first = *look;
    else if (look->steps > c->last.steps)
        add_steps(c, look);
    else
        return early; /* what has been found since the last step is the next one's */
    c->last = *look;
    return early;
}

void pki_memory_course_see_region(pki_memory_course *c, uint32_t region, uint64_t bytes)
{
    if (region >= PKI_MEMORY_REGIONS || c->last.steps == 0)
        return;
    if (region >= c->region_room) {
        size_t room = PKI_MIN(PKI_MAX(2u * region, 64u), PKI_MEMORY_REGIONS);
        pki_growth_series *more = realloc(c->regions, room * sizeof *more);
        if (!more)
            return;
        memset(more + c->region_room, 0, (room - c->region_room) * sizeof *more);
        c->regions = more;
        c->region_room = room;
    }
    pki_growth_see(&c->regions[region], c->last.steps - 1, bytes);
}

static double each(uint64_t now, uint64_t before, uint64_t steps)
{
    return steps ? (double)(now - before) / (double)steps : 0;
}

static bool fill_series(const pki_memory_course *c, pki_memory_summary *out)
{
    pki_counter_row row = {0};
    bool filled = pki_timeline_fill(&c->line, &row);
    out->series = row.points;
    out->series_count = row.point_count;
    return filled;
}

bool pki_memory_course_fill(const pki_memory_course *c, pki_memory_summary *out)
{
    uint64_t steady = c->last.steps - c->early.steps;
    out->looks = c->looks;
    out->resident = c->end.resident;
    out->most_private = c->most_private;
    out->minor_faults = c->end.minor - c->first.minor;
    out->major_faults = c->end.major - c->first.major;
    out->step_resident = pki_tally_dist(&c->resident);
    out->step_minor = pki_tally_dist(&c->minor);
    out->step_major = pki_tally_dist(&c->major);
    out->growth = pki_growth_of(&c->growth, PKI_MEMORY_RESIDENT_LEAST);
    out->steady_steps = c->early.steps ? steady : 0;
    out->steady_minor = each(c->last.minor, c->early.minor, out->steady_steps);
    out->steady_major = each(c->last.major, c->early.major, out->steady_steps);
    return fill_series(c, out);
}

pki_memory_sum pki_memory_course_sum(const pki_memory_course *c)
{
    return (pki_memory_sum){.looks = c->looks,
                            .resident = c->end.resident,
                            .most_resident = c->end.resident,
                            .most_private = c->most_private,
                            .minor_faults = c->end.minor - c->first.minor,
                            .major_faults = c->end.major - c->first.major};
}

pki_growth pki_memory_course_region(const pki_memory_course *c, uint32_t region, double error)
{
    if (region >= c->region_room)
        return (pki_growth){0};
    return pki_growth_of(&c->regions[region], PKI_MAX(PKI_MEMORY_GROWTH_LEAST, 4 * error));
}

int pki_memory_by_peak(const void *a, const void *b)
{
    const pki_memory_region *x = a, *y = b;
    if (x->at_peak != y->at_peak)
        return x->at_peak < y->at_peak ? 1 : -1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* ---- how much memory the process may have, and how near it came ---- */

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
