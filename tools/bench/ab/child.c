#include "bench/ab/ab.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- starting ---- */

static void become(int out, const char *log, char *const arguments[])
{
    int nothing = open("/dev/null", O_RDONLY);
    int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (nothing >= 0 && file >= 0 && dup2(nothing, 0) == 0 && dup2(file, 1) == 1 &&
        dup2(file, 2) == 2 && dup2(out, AB_CHILD_FD) == AB_CHILD_FD) {
        if (nothing > AB_CHILD_FD)
            close(nothing);
        if (file > AB_CHILD_FD)
            close(file);
        if (out != AB_CHILD_FD)
            close(out);
        else
            fcntl(out, F_SETFD, 0);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        execvp(arguments[0], arguments);
        fprintf(stderr, "%s\n", strerror(errno));
    }
    _exit(127);
}

bool ab_child_start(ab_child *child, char *const arguments[], const char *log, complaint *why)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return complaint_set(why, "%s", strerror(errno));
    fflush(NULL);
    child->pid = fork();
    if (child->pid == 0)
        become(ends[1], log, arguments);
    close(ends[1]);
    child->fd = ends[0];
    if (child->pid > 0)
        return true;
    close(ends[0]);
    return complaint_set(why, "%s", strerror(errno));
}

/* ---- reading ---- */

long ab_child_read(const ab_child *child, void *to, size_t size, double until, complaint *why)
{
    for (;;) {
        double left = until - ab_now();
        struct pollfd wanted = {.fd = child->fd, .events = POLLIN};
        if (ab_is_interrupted()) {
            complaint_set(why, "interrupted");
            return -1;
        }
        if (!(left > 0)) {
            complaint_set(why, "has not ended in time (--timeout)");
            return -1;
        }
        int ready = poll(&wanted, 1, left < 1000 ? (int)(1000 * left) + 1 : 1000000);
        ssize_t got = ready > 0 ? read(child->fd, to, size) : -1;
        if (got >= 0)
            return got;
        if (ready < 0 && errno != EINTR) {
            complaint_set(why, "%s", strerror(errno));
            return -1;
        }
    }
}

/* ---- its end ---- */

/* The last line that is not empty: where programs say why they end. */
static void last_line(const char *log, char *out, size_t size)
{
    char line[200];
    FILE *file = fopen(log, "re");
    out[0] = '\0';
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0])
            snprintf(out, size, ": %s", line);
    }
    if (file)
        fclose(file);
}

static bool complain_about(int status, const char *log, complaint *why)
{
    char said[210];
    last_line(log, said, sizeof said);
    if (WIFSIGNALED(status))
        return complaint_set(why, "was killed by signal %d%s", WTERMSIG(status), said);
    if (WEXITSTATUS(status) == 127)
        return complaint_set(why, "cannot be started%s", said);
    return complaint_set(why, "exited with status %d%s", WEXITSTATUS(status), said);
}

bool ab_child_finish(ab_child *child, bool kill_it, const char *log, complaint *why)
{
    int status = 0;
    pid_t ended;
    if (kill_it)
        kill(child->pid, SIGKILL);
    do
        ended = waitpid(child->pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    close(child->fd);
    if (ended < 0)
        return complaint_set(why, "%s", strerror(errno));
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) || complain_about(status, log, why);
}
