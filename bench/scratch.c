#include "scratch.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#define ENOUGH ((uint64_t)3 << 30) /* what bench/collector.c writes in five seconds, and some */

static char folder[256];
static char path[512];

void bench_scratch_empty(void)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0); /* fails for . and .. */
    closedir(d);
}

static void remove_folder(void)
{
    bench_scratch_empty();
    rmdir(folder);
}

static const char *place(void)
{
    struct statvfs fs;
    const char *wanted = getenv("TMPDIR");
    if (wanted && *wanted)
        return wanted;
    bool room = statvfs("/dev/shm", &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_bsize >= ENOUGH;
    return room ? "/dev/shm" : "/tmp";
}

static void need_folder(void)
{
    if (folder[0])
        return;
    snprintf(folder, sizeof folder, "%.200s/pk-bench-XXXXXX", place());
    if (!mkdtemp(folder))
        bench_fail("no folder for traces");
    atexit(remove_folder);
}

const char *bench_scratch(const char *name)
{
    need_folder();
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

pid_t bench_fork(void)
{
    need_folder();
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        bench_fail("fork");
    return pid;
}

void bench_leave(bool good)
{
    fflush(stdout);
    _exit(!good);
}

void bench_join(pid_t pid, const char *what, struct rusage *used)
{
    int status;
    if (wait4(pid, &status, 0, used) != pid || status != 0)
        bench_fail(what);
    bench_scratch_empty();
}
