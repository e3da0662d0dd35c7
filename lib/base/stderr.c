#include "base/stderr.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/standard.h"

bool pki_write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t wrote = write(fd, text, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        text += wrote;
        n -= (size_t)wrote;
    }
    return true;
}

/* SIGPIPE goes to the thread that writes. Blocked, it waits; what waited before is the program's
 * own. */
bool pki_write_stderr(const char *text, size_t n)
{
    sigset_t pipe, before, waiting;
    if (!pki_standard_is_there(STDERR_FILENO))
        return false;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigemptyset(&waiting);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    bool written = pki_write_all(STDERR_FILENO, text, n);
    int error = errno;
    if (!written && error == EPIPE && !sigismember(&waiting, SIGPIPE)) {
        struct timespec none = {0, 0};
        while (sigtimedwait(&pipe, NULL, &none) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}
