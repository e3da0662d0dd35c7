/* held.h - which of perfkit's locks are held amid a driver's call, and for which a thread that
 * records, or the collector, waits: none may be both. A driver's call may take any time, and what
 * threads have recorded would wait for it.
 *
 * For one file of a program that is linked with kit_held_args (tests/meson.build); the mocks tell
 * of calls. Names of errors, which drivers have in tables, do not count. */
#ifndef TESTS_HELD_H
#define TESTS_HELD_H

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>

#include "session/session.h"

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __real_pthread_once(pthread_once_t *once, void (*function)(void));
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_once(pthread_once_t *once, void (*function)(void));

#define KIT_LOCKS 256u

static pthread_mutex_t kit_locks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const void *lock;
    bool waited_for;
    char amid[64]; /* a call; "": none */
} kit_locks[KIT_LOCKS];

static _Thread_local const void *kit_held[32];
static _Thread_local unsigned kit_held_count;
static _Thread_local bool kit_records; /* for the test to set: all that the thread does */

static inline void kit_note_lock(const void *lock, bool waits, const char *amid)
{
    unsigned i = 0;
    __real_pthread_mutex_lock(&kit_locks_lock);
    while (i < KIT_LOCKS - 1 && kit_locks[i].lock && kit_locks[i].lock != lock)
        i++;
    kit_locks[i].lock = lock;
    kit_locks[i].waited_for |= waits;
    if (amid)
        snprintf(kit_locks[i].amid, sizeof kit_locks[i].amid, "%s", amid);
    __real_pthread_mutex_unlock(&kit_locks_lock);
}

static inline bool kit_is_waited_for_here(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name, 0, 0, 0);
    return kit_records || strcmp(name, "pk-collector") == 0;
}

static inline void kit_take(const void *lock)
{
    assert_true(kit_held_count < sizeof kit_held / sizeof *kit_held);
    kit_held[kit_held_count++] = lock;
}

static inline void kit_give(const void *lock)
{
    unsigned i = kit_held_count;
    while (i > 0 && kit_held[i - 1] != lock)
        i--;
    if (!i)
        return;
    memmove(&kit_held[i - 1], &kit_held[i], (kit_held_count - i) * sizeof *kit_held);
    kit_held_count--;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    kit_note_lock(lock, kit_is_waited_for_here(), NULL);
    int error = __real_pthread_mutex_lock(lock);
    kit_take(lock);
    return error;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
    int error = __real_pthread_mutex_trylock(lock);
    if (!error)
        kit_take(lock);
    return error;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    kit_give(lock);
    return __real_pthread_mutex_unlock(lock);
}

int __wrap_pthread_once(pthread_once_t *once, void (*function)(void))
{
    kit_note_lock(once, kit_is_waited_for_here(), NULL);
    kit_take(once);
    int error = __real_pthread_once(once, function);
    kit_give(once);
    return error;
}

/* For the mocks. */
static inline void kit_driver_called(const char *function)
{
    for (unsigned i = 0; i < kit_held_count; i++)
        kit_note_lock(kit_held[i], false, function);
}

static inline void kit_expect_no_lock_amid_calls(void)
{
    bool collected = false;
    unsigned bad = KIT_LOCKS;
    __real_pthread_mutex_lock(&kit_locks_lock);
    for (unsigned i = 0; i < KIT_LOCKS && kit_locks[i].lock; i++) {
        collected |= kit_locks[i].lock == &pki_drain_lock && kit_locks[i].waited_for;
        bad = kit_locks[i].waited_for && kit_locks[i].amid[0] ? i : bad;
    }
    __real_pthread_mutex_unlock(&kit_locks_lock);
    assert_true(collected); /* else nobody was looked at */
    if (bad < KIT_LOCKS)
        fail_msg("%s was called under a lock that others wait for, at the drain lock%+td%s",
                 kit_locks[bad].amid,
                 (const char *)kit_locks[bad].lock - (const char *)&pki_drain_lock,
                 kit_locks[bad].lock == &pki_drain_lock ? ": the drain lock" : "");
}

#endif
