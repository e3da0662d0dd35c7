/* lib/comm/nccl/real.c - NCCL's own functions: as references (the static library), or looked for
 * (the shared one, PKI_WRAP_LOADED). */
#include <dlfcn.h>
#include <errno.h>

#include "comm/nccl/calls.h"

#ifndef PKI_WRAP_LOADED

#define DECLARE(NAME, PARAMS, ...) extern pki_wrap_result pnccl##NAME PARAMS;
#define DECLARE_WEAK(NAME, PARAMS, ...)                                                            \
    extern pki_wrap_result pnccl##NAME PARAMS __attribute__((weak));
PKI_WRAP_COLLECTIVES(DECLARE)
PKI_WRAP_LATER_COLLECTIVES(DECLARE_WEAK)
PKI_WRAP_OTHERS(DECLARE)
PKI_WRAP_LATER_OTHERS(DECLARE_WEAK)
PKI_WRAP_ONE_SIDED(DECLARE_WEAK)
PKI_WRAP_NEWEST_OTHERS(DECLARE_WEAK)

pki_wrap_table pki_wrap_real = {
#define POINT(NAME, PARAMS, ...) .NAME = pnccl##NAME,
    PKI_WRAP_COLLECTIVES(POINT) PKI_WRAP_LATER_COLLECTIVES(POINT) PKI_WRAP_OTHERS(POINT)
        PKI_WRAP_LATER_OTHERS(POINT) PKI_WRAP_ONE_SIDED(POINT) PKI_WRAP_NEWEST_OTHERS(POINT)
#undef POINT
};

void pki_wrap_resolve(void) {}

#else

pki_wrap_table pki_wrap_real;

/* Behind us in the order of look-up; else in a library that was loaded for somebody alone, as
 * Python loads what PyTorch is made of. It stays: its users' handles are not ours. */
static void *find(void *library, const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);
    return address || !library ? address : dlsym(library, name);
}

static void *loaded_library(void)
{
    void *library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    return library ? library : dlopen("libnccl.so", RTLD_LAZY | RTLD_NOLOAD);
}

/* Two threads find the same. */
void pki_wrap_resolve(void)
{
    int saved = errno;
    void *library = loaded_library(), *address;
#define FIND(NAME, PARAMS, ...)                                                                    \
    address = find(library, "pnccl" #NAME);                                                        \
    __atomic_store_n((void **)(void *)&pki_wrap_real.NAME, address, __ATOMIC_RELAXED);
    PKI_WRAP_COLLECTIVES(FIND)
    PKI_WRAP_LATER_COLLECTIVES(FIND)
    PKI_WRAP_OTHERS(FIND)
    PKI_WRAP_LATER_OTHERS(FIND)
    PKI_WRAP_ONE_SIDED(FIND)
    PKI_WRAP_NEWEST_OTHERS(FIND)
#undef FIND
    errno = saved;
}

#endif
