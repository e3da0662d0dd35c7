#include "base/detached.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/standard.h"

#define STACK ((size_t)128 << 10)
#define DESCRIPTORS_MOST 65536

extern char **environ;

typedef struct plan {
    const char *command;
    bool out, err; /* are descriptors 1 and 2 what they seem */
    int error;
    pid_t pid;
} plan;

/* In the process between, whose descriptors are its own. */
static void close_others(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return;
#endif
    long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (most > 0 && most < DESCRIPTORS_MOST ? most : DESCRIPTORS_MOST); fd++)
        close(fd);
}

static int set_up(posix_spawn_file_actions_t *files, posix_spawnattr_t *how, const plan *p)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    if (!p->out)
        posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0);
    if (!p->err)
        posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setsigmask(how, &none);
    posix_spawnattr_setsigdefault(how, &all);
    posix_spawnattr_setpgroup(how, 0); /* of its own: a terminal's ^C is not for it */
    return posix_spawnattr_setflags(how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                             POSIX_SPAWN_SETPGROUP);
}

static int spawn(plan *p)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    char shell[] = "sh", option[] = "-c";
    char *arguments[] = {shell, option, (char *)(uintptr_t)p->command, NULL};
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&how) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    int error = set_up(&files, &how, p);
    if (!error)
        error = posix_spawn(&p->pid, "/bin/sh", &files, &how, arguments, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static int between(void *argument)
{
    plan *p = argument;
    close_others();
    p->error = spawn(p);
    return 0; /* to clone's own code, which ends this process and no more */
}

int pki_run_detached(const char *command, pid_t *pid)
{
    plan p = {command, pki_standard_is_there(1), pki_standard_is_there(2), 0, 0};
    char *stack = pki_mem_private(STACK);
    if (!stack)
        return ENOMEM;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all,
                    &before); /* a handler would run in the process between, too */
    int child = clone(between, stack + STACK, CLONE_VM | CLONE_VFORK, &p);
    int error = child < 0 ? errno : p.error;
    while (child > 0 && waitpid(child, NULL, (int)__WCLONE) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pki_mem_unmap(stack, STACK);
    *pid = p.pid;
    return error;
}

static bool adopts_orphans(void)
{
    int is = 0;
    return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &is, 0, 0, 0) == 0 && is);
}

bool pki_detached_is_over(pid_t pid)
{
    return pid <= 0 || !adopts_orphans() || waitpid(pid, NULL, WNOHANG) != 0;
}
