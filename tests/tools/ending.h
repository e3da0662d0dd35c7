/* tests/tools/ending.h - part of a command with an allocation that fails, in a process of its own:
 * for want of memory a command ends (tools/memory.h). */
#ifndef ENDING_H
#define ENDING_H

#include "failing_memory.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void failing(long n);
typedef bool part_of_command(const void *of); /* false: it went wrong without words */

/* How it ended: it had all the memory it asked for, did without some, or said that there was none
 * and exited as commands do. Anything else is WRONG. */
typedef enum ending { WHOLE, DID_WITHOUT, NO_MEMORY, WRONG } ending;

#ifdef __SANITIZE_ADDRESS__
/* LeakSanitizer asks for it as a process ends. A command that ends for want of memory gives nothing
 * back, and to look for it takes as long as all else in such a child. */
static bool ends_by_exit;

int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return ends_by_exit;
}
#else
static bool ends_by_exit;
#endif

static inline ending run_failing(failing *way, long n, part_of_command *part, const void *of)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        ends_by_exit = true;
        way(n);
        bool right = part(of);
        _exit(!right ? WRONG : memory_has_failed() ? DID_WITHOUT : WHOLE);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return WRONG;
    return WEXITSTATUS(status) <= NO_MEMORY ? (ending)WEXITSTATUS(status) : WRONG;
}

/* Under a sanitizer the two ways to fail share the calls. */
#ifdef __SANITIZE_ADDRESS__
#define ENDING_EACH 2
#else
#define ENDING_EACH 1
#endif

/* With each allocation failing that tells something by it (failing_memory.h), and with none; how
 * many there are in all, or -1 if one of the runs went wrong. first: of sweeps that are called from
 * one line; in the others those allocations fail that have not been come to in the same way. */
static inline long sweep_memory(failing *way, part_of_command *part, const void *of, bool first)
{
    size_t count;
    long total;
    if (first)
        memory_watch(0);
    else
        memory_watch_on(0);
    bool right = part(of);
    memory_fails_after(-1);
    const long *chosen = memory_watched(&count, &total);
    for (size_t i = way == memory_fails_once ? ENDING_EACH - 1 : 0; right && i < count;
         i += ENDING_EACH) {
        ending e = run_failing(way, chosen[i], part, of);
        right = e == DID_WITHOUT || e == NO_MEMORY;
    }
    return right && run_failing(way, total, part, of) == WHOLE ? total : -1;
}

#endif
