#include "backend/shim/pkshim.h"

#define EXPORT __attribute__((visibility("default")))

extern EXPORT pk_shim_calls pk_shim;
pk_shim_calls pk_shim = {.size = sizeof pk_shim};

EXPORT int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));
EXPORT int InitializeInjectionNvtxExtension(void *module);

int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id))
{
    return pk_shim.nvtx ? pk_shim.nvtx(get_export_table) : 0;
}

int InitializeInjectionNvtxExtension(void *module)
{
    return pk_shim.nvtx_extension ? pk_shim.nvtx_extension(module) : 0;
}
