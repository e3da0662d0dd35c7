/* In libpk.so these are what users of NVTX look for. In libpk.a they lie in an object that nothing
 * refers to, so a program gets them only if it asks for them. */
#include "backend/nvtx/nvtx.h"

PK_API int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
PK_API int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    return pki_nvtx_attach(get);
}

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
    return pki_nvtx_attach_extension(module);
}
