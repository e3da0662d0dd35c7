/* plugin_module.c - a library that uses NVTX, loaded and unloaded by plugin.c. */
#include <nvtx3/nvToolsExt.h>

__attribute__((visibility("default"))) void use_nvtx(int leave_open);

void use_nvtx(int leave_open)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("plugin");
    nvtxEventAttributes_t a = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxDomainRangePushEx(domain, &a);
    nvtxRangePushA("a literal of the plug-in");
    nvtxMarkA("a mark of the plug-in");
    nvtxRangeEnd(nvtxRangeStartA("a range of the plug-in"));
    nvtxRangePop();
    if (!leave_open)
        nvtxDomainRangePop(domain);
    nvtxDomainDestroy(domain);
}
