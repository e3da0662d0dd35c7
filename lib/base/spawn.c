#include "base/spawn.h"

#include <signal.h>
#include <time.h>

#include "base/mem.h"

#define LOCKED_STACK ((size_t)512 << 10) /* drivers are called on it */

/* Thread-local storage lies on the stack, too: where it is larger, the usual size will do. */
static int create(pthread_t *thread, void *(*body)(void *), void *arg)
{
    pthread_attr_t little;
    if (!pki_mem_is_locking() || pthread_attr_init(&little) != 0)
        return pthread_create(thread, NULL, body, arg);
    pthread_attr_setstacksize(&little, LOCKED_STACK);
    int error = pthread_create(thread, &little, body, arg);
    pthread_attr_destroy(&little);
    return error ? pthread_create(thread, NULL, body, arg) : 0;
}

int pki_spawn(pthread_t *thread, void *(*body)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = create(thread, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void pki_condition_make(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
