#include "backend/shim.h"

#include <dlfcn.h>
#include <stddef.h>

#ifndef PKI_SHIM_FOLDER             /* tests/gpu/by_hand.sh gives it */
#include <backend/shim/installed.h> /* made by meson */
#endif

void *pki_shim_open(const char *given)
{
    void *shim = dlopen(*given ? given : PKI_SHIM, RTLD_LAZY | RTLD_LOCAL);
    return shim || *given ? shim : dlopen(PKI_SHIM_FOLDER "/" PKI_SHIM, RTLD_LAZY | RTLD_LOCAL);
}
