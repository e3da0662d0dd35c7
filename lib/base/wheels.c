#include "base/wheels.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/dl.h"

#define PACKAGES "/site-packages/nvidia/"
#define DEBIAN_PACKAGES "/dist-packages/nvidia/"
#define MOST_ROOTS 12

/* Folders called nvidia, or patterns for them. */
typedef struct roots {
    char paths[MOST_ROOTS][PATH_MAX];
    size_t count;
} roots;

static bool has_room(const roots *r)
{
    return r->count < MOST_ROOTS;
}

static bool is_known(const roots *r, const char *path, size_t length)
{
    for (size_t i = 0; i < r->count; i++)
        if (strlen(r->paths[i]) == length && memcmp(r->paths[i], path, length) == 0)
            return true;
    return false;
}

/* What is loaded from a package tells where the packages are. */
static int add_root(struct dl_phdr_info *object, size_t size, void *to)
{
    roots *r = to;
    const char *path = object->dlpi_name, *at = path ? strstr(path, PACKAGES) : NULL;
    (void)size;
    if (path && !at)
        at = strstr(path, DEBIAN_PACKAGES);
    if (!at)
        return 0;
    size_t length = (size_t)(at - path) + strlen(PACKAGES); /* both are as long */
    if (length < PATH_MAX && has_room(r) && !is_known(r, path, length)) {
        memcpy(r->paths[r->count], path, length);
        r->paths[r->count++][length] = 0;
    }
    return 0;
}

static void add(roots *r, const char *prefix)
{
    static const char *const kinds[] = {PACKAGES, DEBIAN_PACKAGES};
    for (size_t i = 0; prefix && *prefix && i < PKI_COUNT_OF(kinds); i++)
        if (has_room(r) && snprintf(r->paths[r->count], PATH_MAX, "%s/lib/python3*%s", prefix,
                                    kinds[i]) < PATH_MAX)
            r->count++;
}

static void *open_in(const char *root, const char *package, const char *file)
{
    char pattern[PATH_MAX];
    glob_t found = {.gl_pathc = 0};
    void *library = NULL;
    int length = snprintf(pattern, sizeof pattern, "%s%s/lib/%s", root, package, file);
    if (length < 0 || (size_t)length >= sizeof pattern || glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = found.gl_pathc; i-- > 0 && !library;) /* the newest Python's first */
        library = dlopen(found.gl_pathv[i], RTLD_LAZY | RTLD_LOCAL);
    globfree(&found);
    return library;
}

static void *open_any(const roots *r, const char *file, const char *const packages[])
{
    for (size_t i = 0; i < r->count; i++)
        for (size_t p = 0; packages[p]; p++) {
            void *library = open_in(r->paths[i], packages[p], file);
            if (library)
                return library;
        }
    return NULL;
}

void *pki_wheel_open(const char *const files[], const char *const packages[], char *reason,
                     size_t size)
{
    roots *r = calloc(1, sizeof *r);
    void *library = NULL;
    if (r && pki_dl_possible()) {
        pki_dl_each(add_root, r);
        add(r, secure_getenv("VIRTUAL_ENV"));
        add(r, secure_getenv("CONDA_PREFIX"));
        add(r, "/usr/local");
        add(r, "/usr");
        for (size_t i = 0; files[i] && !library; i++)
            library = open_any(r, files[i], packages);
    }
    free(r);
    if (!library)
        snprintf(reason, size, "%s is neither where the loader looks nor in Python's packages",
                 files[0]);
    return library;
}
