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

static inline ending run_failing(failing *way, long n, part_of_command *part, const void *of)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        way(n);
        bool right = part(of);
        _exit(!right ? WRONG : memory_has_failed() ? DID_WITHOUT : WHOLE);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return WRONG;
    return WEXITSTATUS(status) <= NO_MEMORY ? (ending)WEXITSTATUS(status) : WRONG;
}

/* What a sanitizer sees of a way it sees at one of its turns, and there a process is dear. */
#ifdef __SANITIZE_ADDRESS__
#define ENDING_EACH 20
#else
#define ENDING_EACH 100
#endif

/* With the n-th allocation failing, for every n up to ENDING_EACH and ever fewer beyond, until
 * there are no more; that n, or -1 if one of them went wrong. */
static inline long sweep_memory(failing *way, part_of_command *part, const void *of)
{
    long n = 0;
    for (;; n += 1 + n / ENDING_EACH) {
        ending e = run_failing(way, n, part, of);
        if (e == WHOLE || e == WRONG)
            return e == WHOLE ? n : -1;
    }
}

#endif
