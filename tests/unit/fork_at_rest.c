/* fork_at_rest.c - forks under AddressSanitizer; part of each test there, and of none elsewhere.
 *
 * gcc 12's runtime does not take the locks of its allocator and of its list of threads before a
 * fork. What another thread holds of them stays held in the child, who waits for ever as soon as it
 * needs it: without perfkit, a child that allocates hangs within twenty forks beside a thread that
 * allocates. Then exit() in the child rightly gives up on a collector that does not get on. So here
 * the collector sleeps while a process forks. */
#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/session.h"

/* The line of /proc/self/task/TID/stat: "1 (pk-collector) S". */
static bool has_state(const char *tid, const char *name_and_state)
{
    char path[64], line[128] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", tid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    return read && strstr(line, name_and_state);
}

static bool collector_sleeps(void)
{
    DIR *tasks = opendir("/proc/self/task");
    bool sleeps = false;
    for (const struct dirent *task; tasks && !sleeps && (task = readdir(tasks));)
        sleeps = has_state(task->d_name, "(pk-collector) S");
    if (tasks)
        closedir(tasks);
    return sleeps;
}

static bool held;

/* It has its name when it has begun, and allocates under this lock alone. Who forks with the lock
 * taken, or beside a collector that never sleeps, does so after 10 s. */
static void wait_for_rest(void)
{
    held = false;
    for (unsigned ms = 0; ms < 10000 && !held; ms++) {
        if (pthread_mutex_trylock(&pki_drain_lock) == 0) {
            held = !pki_the_session.collecting || collector_sleeps();
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
