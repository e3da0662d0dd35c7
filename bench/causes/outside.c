/* What others do to a program: they have its processor, or it stands still. */
#include "causes.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* ---- groups of control ---- */

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
    g->folder = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (g->folder >= 0 && has(g, name) && has(g, "cgroup.procs"))
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
    return openat(g->folder, file, how | O_CLOEXEC);
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

/* ---- others have the processor ---- */

static void bind_to(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Its thread alone: perfkit's are there by then. */
static void bind_worker(void)
{
    cause_both->cpu = sched_getcpu();
    bind_to(cause_both->cpu);
    cause_ring();
}

static void burn(double ms)
{
    for (double until = cause_wall() + ms; cause_wall() < until;)
        ;
}

/* Told the first time where, from then on to burn. */
static void be_neighbour(void)
{
    static bool bound;
    if (bound) {
        burn(cause_ms);
        return;
    }
    prctl(PR_SET_NAME, "neighbour");
    bind_to(cause_both->cpu);
    if (sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 10}) != 0)
        setpriority(PRIO_PROCESS, 0, -20);
    bound = true;
}

static void may_have_priority(void)
{
    errno = 0;
    bool can = setpriority(PRIO_PROCESS, 0, -20) == 0;
    int error = errno;
    setpriority(PRIO_PROCESS, 0, 0);
    errno = error;
    cause_need(can, "a higher priority");
}

static void beside_neighbour(bool slow)
{
    if (slow)
        cause_ring();
    cause_compute(2);
}

static cause_group group;

static void make_quota_group(void)
{
    cause_group_make(&group, "cpu", "cpu.cfs_quota_us", "cpu.max");
    /* As if it were in no group but for its quota. */
    cause_group_write(&group, group.second ? "cpu.weight" : "cpu.shares",
                      group.second ? "800" : "8192");
}

static void join_group(void)
{
    cause_group_join(&group);
}

static void remove_group(void)
{
    cause_group_remove(&group);
}

static void set_quota(bool yes)
{
    const char *none = group.second ? "max 100000" : "-1";
    const char *some = group.second ? "5000 100000" : "5000";
    if (!cause_group_write(&group, group.second ? "cpu.max" : "cpu.cfs_quota_us",
                           yes ? some : none))
        abort();
}

/* A twentieth of a processor, in periods of 100 ms. */
static void under_quota(bool slow)
{
    static double usual;
    cause_span begun = cause_begin();
    if (slow)
        set_quota(true);
    cause_compute(cause_ms / 19);
    while (slow && cause_since(begun).wall < cause_ms + usual)
        cause_compute(0.5);
    if (slow)
        set_quota(false);
    usual = cause_since(begun).wall;
}

static void cannot_steal(void)
{
    cause_skip("a guest cannot make its host take a processor away");
}

#ifdef _OPENMP
/* All of the process on one processor. The first thread has most to do, so it waits for no other
 * one. */
static void bind_all(void)
{
    bind_to(sched_getcpu());
}

static void in_team(bool slow)
{
    enum { MINE = 10, OTHERS = 8 };
    int threads = slow ? 1 + (int)(cause_ms / OTHERS) : 1;
#pragma omp parallel num_threads(threads)
    cause_compute(omp_get_thread_num() ? OTHERS : MINE);
}

static void needs_openmp(void) {}
#else
static void needs_openmp(void)
{
    cause_skip("built without OpenMP");
}

static void in_team(bool slow)
{
    (void)slow;
}

#define bind_all NULL
#endif

/* ---- it stands still ---- */

static void until_done(bool slow)
{
    cause_compute(1);
    if (slow)
        cause_ring_until(&cause_both->done);
}

static void stop_it(void)
{
    kill(cause_both->worker, SIGSTOP);
    double begun = cause_wall();
    cause_sleep(cause_ms);
    kill(cause_both->worker, SIGCONT);
    cause_both->told = cause_wall() - begun;
    cause_both->done = 1;
}

static void make_freezer(void)
{
    cause_group_make(&group, "freezer", "freezer.state", "cgroup.freeze");
}

static void freeze(bool yes)
{
    const char *word = group.second ? (yes ? "1" : "0") : yes ? "FROZEN" : "THAWED";
    if (!cause_group_write(&group, group.second ? "cgroup.freeze" : "freezer.state", word))
        fprintf(stderr, "causes: %s: %s\n", group.path, strerror(errno));
}

static void freeze_it(void)
{
    freeze(true);
    double begun = cause_wall();
    cause_sleep(cause_ms);
    freeze(false);
    cause_both->told = cause_wall() - begun;
    cause_both->done = 1;
}

/* ---- all of them ---- */

const cause causes_outside[] = {
    {"sigstop", "stopped", NULL, true, TRUTH_TOLD, PLACE_BACK, .act = until_done, .help = stop_it},
    {"priority", "no-processor", "neighbour", true, TRUTH_OFF, PLACE_MLP,
     .prepare = may_have_priority, .begin = bind_worker, .act = beside_neighbour,
     .help = be_neighbour},
    {"quota", "no-processor", "quota", true, TRUTH_OFF, PLACE_MLP, .prepare = make_quota_group,
     .join = join_group, .act = under_quota, .finish = remove_group},
    {"freeze", "stopped", NULL, true, TRUTH_TOLD, PLACE_BACK, .prepare = make_freezer,
     .join = join_group, .act = until_done, .help = freeze_it, .finish = remove_group},
    {"steal", "no-processor", "steal", true, TRUTH_OFF, PLACE_MLP, .prepare = cannot_steal},
    {"openmp", "no-processor", "own", true, TRUTH_OFF, PLACE_MLP, .prepare = needs_openmp,
     .join = bind_all, .act = in_team},
    {.name = NULL},
};
