/* lib/base/dl.h - libraries that may be absent, opened while the program runs.
 *
 * A backend never links its library: absence is a reason in words, not a loader's error. An
 * environment variable can name another file than the usual one (read with secure_getenv): a copy
 * in an unusual place, or a test's double, which the loader's search path must not carry since
 * other libraries would take it, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct dl_phdr_info;

/* What dl_iterate_phdr does. While another thread is in one, glibc's fork leaves a child in which
 * every such call waits for ever, exceptions of C++ and backtraces included; so ours do not happen
 * while somebody forks (the functions below). */
int pki_dl_each(int (*visit)(struct dl_phdr_info *object, size_t size, void *arg), void *arg);

/* For pthread_atfork. The first waits for a round that is under way, microseconds, and gives up
 * after 100 ms: a round itself waits for the loader. */
void pki_dl_before_fork(void);
void pki_dl_after_fork_in_parent(void);
void pki_dl_after_fork(void);

/* False in a program of -static: what dlopen brings into it has a second C library in tow. */
bool pki_dl_possible(void);

#define PKI_DL_STATIC "the program is linked with -static: no library can be opened"

/* The file that the variable names, else the first of the NULL-terminated names that the process
 * has loaded already, since two copies of a library do not agree, else the first that can be
 * opened. NULL: none, and why in words. Never closed again by anybody: its threads may be inside.
 */
void *pki_dl_open(const char *variable, const char *const names[], char *reason, size_t size);

/* A function of the library, and where in a table its pointer goes. */
typedef struct pki_dl_function {
    const char *name;
    size_t offset;
    bool optional; /* NULL in the table if it is not there */
} pki_dl_function;

/* The entry of one in a list. */
#define PKI_DL_FUNCTION(table, member, name, optional)                                             \
    {                                                                                              \
        name, offsetof(table, member), optional                                                    \
    }

/* False if one that is not optional is missing, with its name in the reason. */
bool pki_dl_bind(void *library, const pki_dl_function functions[], size_t count, void *table,
                 char *reason, size_t size);
