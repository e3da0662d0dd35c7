#include "session/session.h"

#include "base/log.h"
#include "core/inside.h"

pki_session pki_the_session;
pthread_mutex_t pki_drain_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static bool abandoned;        /* exit() has given up on the session */
static pk_counts last_counts; /* of the session before, once it has ended */
static bool have_last_counts;

static bool is_free(pthread_mutex_t *mutex)
{
    return pthread_mutex_trylock(mutex) == 0 && pthread_mutex_unlock(mutex) == 0;
}

bool pki_session_after_fork(void)
{
    bool quiet = is_free(&control) && is_free(&pki_drain_lock);
    pthread_mutex_init(&control, NULL);
    pthread_mutex_init(&pki_drain_lock, NULL);
    have_last_counts = abandoned = false;
    return quiet;
}

pk_status pki_control_lock(void)
{
    if (pki_load(&abandoned))
        return pki_fail_unheard(PK_EOFF, "the process is ending");
    if (!pki_inside_enter())
        return pki_fail_inside();
    pthread_mutex_lock(&control);
    return PK_OK;
}

bool pki_control_lock_within(uint64_t ns)
{
    if (!pki_inside_enter())
        return false;
    bool locked = pki_lock_within(&control, ns);
    if (!locked)
        pki_inside_leave();
    return locked;
}

void pki_control_unlock(void)
{
    pthread_mutex_unlock(&control);
    pki_inside_leave();
}

void pki_session_abandon(bool yes)
{
    pki_store(&abandoned, yes);
    if (yes)
        pki_store(&pk_gate_, 0u);
}

void pki_session_set_last_counts(const pk_counts *counts)
{
    last_counts = *counts;
    have_last_counts = true;
}

bool pki_session_last_counts(pk_counts *counts)
{
    *counts = last_counts;
    return have_last_counts;
}

void pki_session_reset_log(void)
{
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
}
