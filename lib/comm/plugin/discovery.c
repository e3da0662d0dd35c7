/* lib/comm/plugin/discovery.c - how NCCL is made to find us.
 *
 * It opens what NCCL_PROFILER_PLUGIN names, or itself and all that is linked with it if that is
 * STATIC_PLUGIN, and looks for ncclProfiler_v6 and older ones. With a static perfkit nobody finds
 * those unless the program exports them (-u and --export-dynamic-symbol, as pk.pc and CMake's
 * package say); libpkshim.so has them otherwise, and gets our functions. A search that failed is
 * not repeated by NCCL, so it has to find us before the first communicator.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "comm/plugin/plugin.h"
#include "comm/plugin/callbacks.h"
#include "base/dl.h"
#include "backend/shim.h"

#define IN_PROGRAM "STATIC_PLUGIN"
#define NAME_MOST 254 /* NCCL cuts what is longer */

/* NCCL linked into the program, or loaded by it. */
extern int ncclGetVersion(int *version) __attribute__((weak));

/* The functions, for a table of our own: what a shim gets, and what it is known by. */
#define TABLE(V, INIT, STATE)                                                                      \
    static const pki_nccl_table_v##V table_v##V = PKI_NCCL_FUNCTIONS(V, INIT, STATE);
PKI_NCCL_TABLES(TABLE)

static bool nccl_is_here(void)
{
    void *library;
    if (&ncclGetVersion || dlsym(RTLD_DEFAULT, "ncclGetVersion"))
        return true;
    library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library != NULL;
}

static const char *claimed(void)
{
    const char *name = secure_getenv(PKI_NCCL_VARIABLE);
    return name && *name ? name : NULL;
}

/* ---- where we are ---- */

/* A table of ours has our functions in it, wherever it lies. A program may export one of them only,
 * that of its NCCL. */
static bool is_ours(void *library)
{
    bool ours = false;
#define LOOK(V, INIT, STATE)                                                                       \
    const pki_nccl_table_v##V *v##V = library ? dlsym(library, "ncclProfiler_v" #V) : NULL;        \
    ours |= v##V && v##V->start == table_v##V.start;
    PKI_NCCL_TABLES(LOOK)
#undef LOOK
    return ours;
}

/* Does whoever looks into that file find us? NULL: the program and what it is linked with. */
static bool leads_here(const char *path)
{
    void *library = dlopen(path, path ? RTLD_LAZY | RTLD_NOLOAD : RTLD_LAZY);
    bool ours = is_ours(library);
    if (library)
        dlclose(library); /* was there before */
    return ours;
}

static bool own_library(char path[PATH_MAX])
{
    Dl_info self;
    return dladdr(&pki_nccl_open, &self) && self.dli_fname && realpath(self.dli_fname, path) &&
           strlen(path) <= NAME_MOST && leads_here(path);
}

/* ---- the shim ---- */

/* All of it, or nothing: it has one user. */
static bool fill_shim(void *shim)
{
    pki_nccl_table_v5 *five = dlsym(shim, "ncclProfiler_v5");
    if (!five || (five->name[0] && five->start != table_v5.start))
        return false;
#define FILL(V, INIT, STATE)                                                                       \
    pki_nccl_table_v##V *v##V = dlsym(shim, "ncclProfiler_v" #V);                                  \
    if (!v##V)                                                                                     \
        return false;                                                                              \
    *v##V = table_v##V;
    PKI_NCCL_TABLES(FILL)
    return true;
}

static bool use_shim(const char *given, char path[PATH_MAX])
{
    Dl_info info;
    void *shim = pki_dl_possible() ? pki_shim_open(given) : NULL;
    void *table = shim ? dlsym(shim, "ncclProfiler_v5") : NULL;
    return table && dladdr(table, &info) && info.dli_fname && realpath(info.dli_fname, path) &&
           strlen(path) <= NAME_MOST && fill_shim(shim); /* never closed: NCCL is inside */
}

/* ---- being found ---- */

static bool find_way(const pki_config *config, char path[PATH_MAX])
{
    if (leads_here(NULL)) {
        strcpy(path, IN_PROGRAM);
        return true;
    }
    return own_library(path) || use_shim(config->nvtx_shim, path);
}

/* Somebody has said who is to be found: that may be us. */
static bool is_way(const char *name, const char *path)
{
    char full[PATH_MAX];
    if (strcasecmp(name, IN_PROGRAM) == 0)
        return leads_here(NULL);
    return strcmp(name, path) == 0 || (realpath(name, full) && strcmp(full, path) == 0) ||
           leads_here(name);
}

static bool refuse(char *reason, size_t size, const char *format, const char *what)
{
    snprintf(reason, size, format, what);
    return false;
}

bool pki_nccl_make_discoverable(const pki_config *config, bool named, char *reason, size_t size)
{
    char path[PATH_MAX] = "";
    const char *there = claimed();
    if (!there && !named && !nccl_is_here())
        return refuse(reason, size, "%s",
                      "NCCL is not in this process; if it comes later, name nccl among"
                      " the backends");
    bool found = find_way(config, path);
    if (there && !is_way(there, path))
        return refuse(reason, size, PKI_NCCL_VARIABLE " is another's: %.120s", there);
    if (!there && !found && !pki_dl_possible())
        return refuse(reason, size, "%s", PKI_DL_STATIC);
    if (!there && !found)
        return refuse(reason, size,
                      "perfkit is linked statically, and %.100s cannot be used: see"
                      " docs/backends.md",
                      *config->nvtx_shim ? config->nvtx_shim : PKI_SHIM);
    if (!there && setenv(PKI_NCCL_VARIABLE, path, 1) != 0)
        return refuse(reason, size, "%s cannot be set", PKI_NCCL_VARIABLE);
    snprintf(reason, size, PKI_NCCL_VARIABLE "=%.140s", there ? there : path);
    return true;
}
