#include "core/inside.h"

#include <errno.h>
#include <time.h>

#include "base/log.h"
#include "core/thread.h"

static _Thread_local bool inside;

bool pki_inside_enter(void)
{
    if (inside || pki_is_amid())
        return false;
    inside = true;
    pki_compiler_fence();
    return true;
}

void pki_inside_leave(void)
{
    pki_compiler_fence();
    inside = false;
}

pk_status pki_fail_inside(void)
{
    return pki_fail_unheard(PK_EBUSY,
                            "a signal handler made this call amid another one of perfkit's");
}

bool pki_lock_within(pthread_mutex_t *mutex, uint64_t ns)
{
    const struct timespec pause = {0, 200000};
    uint64_t until = pki_monotonic_ns() + ns;
    int saved = errno;
    bool locked;
    while (!(locked = pthread_mutex_trylock(mutex) == 0) && pki_monotonic_ns() < until)
        nanosleep(&pause, NULL);
    errno = saved;
    return locked;
}
