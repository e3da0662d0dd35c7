/* fork_at_rest.c - forks under AddressSanitizer; part of each test there, and of none elsewhere.
 *
 * gcc 12's runtime does not take the locks of its allocator and of its list of threads before a
 * fork. What another thread holds of them stays held in the child, who waits for ever as soon as it
 * needs it: without perfkit, a child that allocates hangs within twenty forks beside a thread that
 * allocates. Then exit() in the child rightly gives up on a collector that does not get on. So here
 * the collector, and what writes captures, sleep while a process forks. */
#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/session.h"

/* /proc/self/task/TID/stat begins like this: "1 (pk-collector) S". */
static void read_state(const char *tid, char line[128])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", tid);
    FILE *file = fopen(path, "r");
    line[0] = 0;
    if (!file)
        return;
    if (!fgets(line, 128, file))
        line[0] = 0;
    fclose(file);
}

/* The collector is there, and it and all other threads of perfkit's sleep. */
static bool perfkit_sleeps(void)
{
    char line[128];
    DIR *tasks = opendir("/proc/self/task");
    bool there = false, busy = false;
    for (const struct dirent *task; tasks && !busy && (task = readdir(tasks));) {
        read_state(task->d_name, line);
        there |= strstr(line, "(pk-collector)") != NULL;
        busy = strstr(line, "(pk-") && !strstr(line, ") S");
    }
    if (tasks)
        closedir(tasks);
    return there && !busy;
}

static bool held;

/* The collector has its name when it has begun, and allocates under this lock alone; what writes
 * captures has nothing to do but what it was given under it. Who forks with the lock taken, or
 * beside a thread of perfkit's that never sleeps, does so after 10 s. */
static void wait_for_rest(void)
{
    held = false;
    for (unsigned ms = 0; ms < 10000 && !held; ms++) {
        if (pthread_mutex_trylock(&pki_drain_lock) == 0) {
            held = !pki_the_session.collecting || perfkit_sleeps();
            if (!held)
                pthread_mutex_unlock(&pki_drain_lock);
        }
        if (!held)
            usleep(1000);
    }
}

static void go_on(void)
{
    if (held)
        pthread_mutex_unlock(&pki_drain_lock);
}

/* Before perfkit's own, which come after it before a fork, and before it in the child. */
static void __attribute__((constructor)) register_handlers(void)
{
    pthread_atfork(wait_for_rest, go_on, go_on);
}
