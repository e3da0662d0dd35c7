/* lib/session/backend.h - libraries that may be there or not, each behind the same table of
 * functions.
 *
 * A backend is one file in lib/backend with one constant pki_backend, and a twin NAME/none.c for
 * builds without the library's headers. Backends never include each other; they use core, measure
 * and out, and are called by the session:
 */
#pragma once

#include <pk/private.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/mirror.h"
#include "session/options/config.h"

typedef enum pki_flush {
    PKI_FLUSH_ROUND, /* of the asker */
    PKI_FLUSH_NOW,   /* pk_flush */
    PKI_FLUSH_LAST   /* stop follows */
} pki_flush;

/* All but name and probe are optional. */
typedef struct pki_backend {
    const char *name;
    bool by_default; /* without a word in pk_options.backends */
    bool devices;    /* it tells what devices did, after they did it (session/activity.h) */

    /* Is it there, which version, and if not why; no side effects on the program. told: the same
     * of what is known, without a call of the library that may take long; probe does not make any.
     */
    void (*probe)(pk_backend_info *info);
    void (*told)(pk_backend_info *info);

    /* Looks for its library on the disk, where start would: pk_start has a millisecond to wait. */
    void (*foresee)(void);

    /* Begins recording; the status of pk_start does not depend on it. */
    bool (*start)(const pki_config *config);

    /* Hears of every region as it begins and ends, while it has `begin` (core/mirror.h); set by
     * start, if at all. */
    pki_mirror *mirror;

    /* Does the configuration ask for it, whatever the list of backends says, unless that excludes
     * it? */
    bool (*requested)(const pki_config *config);

    /* In each of the asker's rounds and before stop, with no lock that a callback of the library
     * could want: the place for calls that wait for the library's own threads; from several threads
     * at once. */
    void (*flush)(pki_flush why);

    /* Behind flush, by one thread at a time, without the drain lock, for which recording threads'
     * data waits: the place for calls that may take long, as any of a driver's may. What it hands
     * over it does within pki_activity_lock, which it takes for that alone. */
    void (*ask)(pki_flush why);

    /* Once in each of the collector's rounds, on its thread or on one that called pk_flush, under
     * the drain lock: no call that may wait. */
    void (*collect)(void);

    /* Nothing can be there to collect, so that no round comes earlier for it. */
    bool (*idle)(void);

    /* What threads of its own have taken of the processors, ns; under the drain lock. */
    uint64_t (*cpu)(void);

    /* The session stops: nothing more is begun; threads of its own end, which are waited for a
     * second at most. The last flush and ask follow. */
    void (*halt)(void);

    /* Who asks has not come back from a call: what its library still gives is not taken any more;
     * under the drain lock. */
    void (*leave)(void);

    /* Before the last round, under the drain lock, whether or not who asks has come back:
     * everything recorded has to be in the rings or handed over (session/activity.h) when it
     * returns. */
    void (*stop)(void);

    /* In the child: forget everything, free nothing, call no library. */
    void (*after_fork)(void);
} pki_backend;

/* Of ranges that come from others, before each begins (pk_nvtx_heard_); NULL: nobody. */
extern pk_heard_ *pki_heard;

extern const pki_backend *const pki_backends[];
extern const size_t pki_backend_count;

/* Does the list in pk_options.backends ("" for none given) ask for this one? */
bool pki_backend_wanted(const pki_backend *backend, const char *list);

/* They are started and stopped with the service of activities. */
void pki_backends_flush(pki_flush why);
/* Who asks drivers, which may take their time, has this lock, before the drain lock. */
extern pthread_mutex_t pki_asking_lock;
void pki_backends_ask(pki_flush why);
void pki_backends_collect(void);
bool pki_backends_asking(void);     /* does any have something to be asked, or flushed? */
bool pki_backends_collecting(void); /* does any have something to be collected, now or later? */
/* Does any, but for this one (NULL: none is left out)? */
bool pki_backends_tell_of_devices(const pki_backend *but);
/* pk_backend_status of number i, of what is known. */
void pki_backend_told(size_t i, pk_backend_info *info);
uint64_t pki_backends_cpu(void); /* of the running or the last session */

/* The thread that asks has not come back from a call within so many seconds, and the session goes
 * on without it: the backends say so, and none of those that are asked is used by another session
 * before it has come back. Under the drain lock. */
void pki_backends_leave(double seconds);

/* By the thread that asks: whether it is left behind, which pki_activity_lock reads under the drain
 * lock; then its flush and ask give the libraries back, and hand over nothing. And: it ends. */
void pki_backends_asked_by(const bool *left);
void pki_backends_come_back(void);
