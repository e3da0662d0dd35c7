#include "base/dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

/* ---- rounds through the objects that are loaded ---- */

static pthread_mutex_t rounds = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool holds_rounds; /* from before a fork until after it */

int pki_dl_each(int (*visit)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    pthread_mutex_lock(&rounds);
    int result = dl_iterate_phdr(visit, arg);
    pthread_mutex_unlock(&rounds);
    return result;
}

void pki_dl_before_fork(void)
{
    const struct timespec pause = {0, 50000};
    int saved = errno; /* a signal interrupts the pause */
    for (int i = 0; i < 2000 && !holds_rounds; i++) {
        holds_rounds = pthread_mutex_trylock(&rounds) == 0;
        if (!holds_rounds)
            nanosleep(&pause, NULL);
    }
    errno = saved;
}

void pki_dl_after_fork_in_parent(void)
{
    if (holds_rounds)
        pthread_mutex_unlock(&rounds);
    holds_rounds = false;
}

void pki_dl_after_fork(void)
{
    if (!holds_rounds) /* then a thread that is not here may have it */
        rounds = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pki_dl_after_fork_in_parent();
}

/* ---- libraries ---- */

/* In a namespace of dlmopen the first one is what was loaded into that. */
static int has_loader(struct dl_phdr_info *program, size_t size, void *found)
{
    (void)size;
    for (unsigned i = 0; i < program->dlpi_phnum; i++)
        if (program->dlpi_phdr[i].p_type == PT_INTERP)
            *(bool *)found = true;
    return 1;
}

/* The kernel says where it has put the loader, unless that was started by its own name; then the
 * program, which comes first, names it. */
bool pki_dl_possible(void)
{
    bool found = getauxval(AT_BASE) != 0;
    if (!found)
        pki_dl_each(has_loader, &found);
    return found;
}

static void *open_one(const char *name, char *reason, size_t size)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();
    if (!library)
        snprintf(reason, size, "%s", why ? why : "it cannot be opened");
    return library;
}

void *pki_dl_open(const char *variable, const char *const names[], char *reason, size_t size)
{
    const char *given = secure_getenv(variable);
    if (!pki_dl_possible()) {
        snprintf(reason, size, "%s", PKI_DL_STATIC);
        return NULL;
    }
    if (given && *given)
        return open_one(given, reason, size);
    void *library = NULL;
    for (size_t i = 0; names[i] && !library; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; names[i] && !library; i++)
        library = open_one(names[i], reason, size);
    return library;
}

bool pki_dl_bind(void *library, const pki_dl_function functions[], size_t count, void *table,
                 char *reason, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function && !functions[i].optional) {
            snprintf(reason, size, "the library has no %s", functions[i].name);
            return false;
        }
        memcpy((char *)table + functions[i].offset, &function, sizeof function);
    }
    return true;
}
