#include "backend/nvtx/nvtx.h"
#include "base/dl.h"
#include "backend/shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRY "InitializeInjectionNvtx2"
#define EXTENSION_ENTRY "InitializeInjectionNvtxExtension"

/* A tool may be linked into the program. */
extern NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr __attribute__((weak));
extern NvtxExtInitializeInjectionFunc_t InitializeInjectionNvtxExtension_fnptr
    __attribute__((weak));

static void *function(void *library, const char *name, void *where, size_t size)
{
    void *found = dlsym(library, name);
    memcpy(where, &found, size);
    return found;
}

static const char *wanted_tool(void)
{
    const char *path = secure_getenv(PKI_NVTX_VARIABLE);
    return path && *path ? path : NULL;
}

static bool find_linked_tool(pki_nvtx_tool *tool)
{
    if (!&InitializeInjectionNvtx2_fnptr || !InitializeInjectionNvtx2_fnptr)
        return false;
    snprintf(tool->name, sizeof tool->name, "the tool in the program");
    tool->init = InitializeInjectionNvtx2_fnptr;
    if (&InitializeInjectionNvtxExtension_fnptr)
        tool->init_extension = InitializeInjectionNvtxExtension_fnptr;
    return true;
}

/* Every perfkit, this one or another, and every shim would only hear itself. */
static bool is_perfkit(void *library)
{
    return dlsym(library, "pk_backend_status") || dlsym(library, PK_SHIM_NAME);
}

bool pki_nvtx_find_tool(pki_nvtx_tool *tool)
{
    const char *path = wanted_tool();
    memset(tool, 0, sizeof *tool);
    if (!path)
        return find_linked_tool(tool);
    snprintf(tool->name, sizeof tool->name, "%s", path);
    void *library = pki_dl_possible() ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (!library)
        return false;
    if (is_perfkit(library))
        tool->name[0] = '\0';
    if (!tool->name[0] || !function(library, ENTRY, &tool->init, sizeof tool->init)) {
        dlclose(library);
        return false;
    }
    function(library, EXTENSION_ENTRY, &tool->init_extension, sizeof tool->init_extension);
    return true; /* never closed: its functions are called from now on */
}

/* ---- being found ---- */

static bool lies_in(const void *address, const void *base)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fbase == base;
}

static bool is_program(const char *path)
{
    char program[PATH_MAX], file[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0 || !realpath(path, file))
        return true;
    program[n] = '\0';
    return strcmp(program, file) == 0;
}

/* The library that this code lies in, if it is one and has the entry point. */
static bool own_library(char path[PATH_MAX])
{
    static const char here;
    Dl_info self;
    if (!dladdr(&here, &self) || !self.dli_fname || is_program(self.dli_fname))
        return false;
    void *library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *entry = library ? dlsym(library, ENTRY) : NULL;
    bool found = entry && lies_in(entry, self.dli_fbase) && realpath(self.dli_fname, path);
    if (library)
        dlclose(library); /* it stays: see lib/session/process.c */
    return found;
}

static int attach(const void *(*get_export_table)(uint32_t id))
{
    return pki_nvtx_attach(get_export_table);
}

static int attach_extension(void *module)
{
    return pki_nvtx_attach_extension(module);
}

static bool fill_shim(pk_shim_calls *calls, char *reason, size_t size)
{
    if (calls->size < offsetof(pk_shim_calls, nvtx_extension) + sizeof calls->nvtx_extension) {
        snprintf(reason, size, "%s is that of another perfkit", PKI_SHIM);
        return false;
    }
    if (calls->nvtx && calls->nvtx != attach) {
        snprintf(reason, size, "another perfkit in this process consumes NVTX already");
        return false;
    }
    calls->nvtx = attach;
    calls->nvtx_extension = attach_extension;
    return true;
}

static bool use_shim(const char *given, char path[PATH_MAX], char *reason, size_t size)
{
    Dl_info info;
    if (!pki_dl_possible()) {
        snprintf(reason, size, "%s", PKI_DL_STATIC);
        return false;
    }
    void *shim = pki_shim_open(given);
    void *calls = shim ? dlsym(shim, PK_SHIM_NAME) : NULL;
    if (!calls || !dladdr(calls, &info) || !info.dli_fname || !realpath(info.dli_fname, path)) {
        snprintf(reason, size,
                 "perfkit is linked statically, and %.100s cannot be opened: set nvtx_shim",
                 *given ? given : PKI_SHIM);
        return false;
    }
    return fill_shim(calls, reason, size); /* never closed: users of NVTX are inside */
}

static bool is_same_file(const char *a, const char *b)
{
    char full[PATH_MAX];
    return realpath(a, full) && strcmp(full, b) == 0;
}

/* Somebody who has injected a tool before us is left alone. */
bool pki_nvtx_inject(const pki_config *config, char *reason, size_t size)
{
    char path[PATH_MAX];
    const char *there = wanted_tool();
    bool found = own_library(path) || use_shim(config->nvtx_shim, path, reason, size);
    if (there && (!found || !is_same_file(there, path))) {
        snprintf(reason, size, "another tool reads NVTX ranges: %.120s", there);
        return false;
    }
    if (!found)
        return false;
    if (!there && setenv(PKI_NVTX_VARIABLE, path, 1) != 0) {
        snprintf(reason, size, PKI_NVTX_VARIABLE " cannot be set");
        return false;
    }
    pki_nvtx_welcome();
    return true;
}
