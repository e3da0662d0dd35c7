/* lib/comm/plugin/backend.c - how NCCL is made to find us */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/shim.h"
#include "base/loader.h"
#include "comm/plugin/abi.h"
#include "comm/plugin/callbacks.h"
#include "comm/plugin/plugin.h"

/* ---- how NCCL is made to find us ---- */

/* It opens what NCCL_PROFILER_PLUGIN names, or itself and all that is linked with it if that is
 * STATIC_PLUGIN, and looks for ncclProfiler_v6 and older ones. With a static perfkit nobody finds
 * those unless the program exports them (-u and --export-dynamic-symbol, as pk.pc and CMake's
 * package say); libpkshim.so has them otherwise, and gets our functions. A search that failed is
 * not repeated by NCCL, so it has to find us before the first communicator. */

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

/* From here on a first communicator finds us, unless somebody else is to be found: false, and why
 * in reason, which otherwise says how it finds us. */
static bool pki_nccl_make_discoverable(const pki_config *config, bool named, char *reason,
                                       size_t size)
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
                      " docs/nccl.md",
                      *config->nvtx_shim ? config->nvtx_shim : PKI_SHIM);
    if (!there && setenv(PKI_NCCL_VARIABLE, path, 1) != 0)
        return refuse(reason, size, "%s cannot be set", PKI_NCCL_VARIABLE);
    snprintf(reason, size, PKI_NCCL_VARIABLE "=%.140s", there ? there : path);
    return true;
}

/* ---- backend ---- */

static char how[192]; /* NCCL finds us, or why not; of the last start */
static bool started, backend_found;
static uint64_t dropped, unknown, stale; /* before the session */

static bool is_named(const char *list)
{
    for (const char *p = list; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        if (n == 4 && memcmp(p, "nccl", 4) == 0)
            return true;
        p += n;
    }
    return false;
}

/* A communicator that is there already tells us whoever the variable names: it has found us. */
static bool start(const pki_config *config)
{
    started = true;
    pki_store(&pki_comms_wrapped, 0u); /* who wraps says so with the first call */
    backend_found = pki_nccl_make_discoverable(config, is_named(config->backends), how, sizeof how);
    if (!backend_found && pki_nccl_contexts_live() == 0)
        return false;
    pki_nccl_mask_choose();
    pki_nccl_assemble_start();
    pki_nccl_emit_start();
    pki_nccl_tracks_start();
    dropped = pki_load(&pki_nccl_lost.dropped);
    unknown = pki_load(&pki_nccl_lost.unknown);
    stale = pki_load(&pki_nccl_lost.stale);
    pki_store(&pki_nccl_open.monotonic, config->monotonic);
    pki_store_release(&pki_nccl_open.recording, 1); /* pairs with the acquire of a start */
    pki_nccl_mask_turn(true);
    return true;
}

static void stop(void)
{
    pki_nccl_mask_turn(false);
    pki_store(&pki_nccl_open.recording, 0);
    pki_nccl_assemble_stop();
}

static void after_fork(void)
{
    pki_nccl_callbacks_after_fork();
    pki_nccl_pool_after_fork();
    pki_nccl_contexts_after_fork();
    pki_nccl_mask_after_fork();
    pki_nccl_assemble_after_fork();
    backend_found = false;
}

/* ---- what it says of itself ---- */

static void describe_future(pk_backend_info *info)
{
    const char *name = secure_getenv(PKI_NCCL_VARIABLE);
    info->live = 0;
    if (name && *name)
        snprintf(info->reason, sizeof info->reason, PKI_NCCL_VARIABLE " names %.120s", name);
    else
        snprintf(info->reason, sizeof info->reason,
                 "listens to NCCL from pk_start on, if that is in the process");
}

static size_t put_losses(char *text, size_t size, const char *words, uint64_t n)
{
    int length = n ? snprintf(text, size, "; %llu %s", (unsigned long long)n, words) : 0;
    return length > 0 ? PKI_MIN((size_t)length, size - 1) : 0;
}

static void describe(pk_backend_info *info)
{
    size_t size = sizeof info->reason;
    uint32_t live = pki_nccl_contexts_live();
    info->live = backend_found || live;
    if (!info->live || (live == 0 && pki_nccl_operations() == 0)) {
        snprintf(info->reason, size, "%.180s", how);
        return;
    }
    size_t n = (size_t)snprintf(info->reason, size, "%u communicators, %llu operations", live,
                                (unsigned long long)pki_nccl_operations());
    n += put_losses(info->reason + n, size - n, "events dropped: the pool was full",
                    pki_load(&pki_nccl_lost.dropped) - dropped);
    n += put_losses(info->reason + n, size - n, "events of unknown types",
                    pki_load(&pki_nccl_lost.unknown) - unknown);
    n += put_losses(info->reason + n, size - n, "ends of events that were not open",
                    pki_load(&pki_nccl_lost.stale) - stale);
    put_losses(info->reason + n, size - n, "communicators refused", pki_nccl_contexts_refused());
}

static void probe(pk_backend_info *info)
{
    snprintf(info->version, sizeof info->version, "profiler 2 to 6");
    if (started)
        describe(info);
    else
        describe_future(info);
}

extern const pki_backend pki_backend_nccl;
const pki_backend pki_backend_nccl = {.name = "nccl",
                                      .by_default = true,
                                      .probe = probe,
                                      .start = start,
                                      .collect = pki_nccl_assemble_collect,
                                      .stop = stop,
                                      .after_fork = after_fork};
