#include "base/dl.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

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
        dl_iterate_phdr(has_loader, &found);
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
