#include "backend/cupti/calls.h"

#include <string.h>

#include "backend/cupti/names.h"
#include "base/array.h"
#include "base/compiler.h"

#define IDS_MOST 16384u /* beyond any table of callback ids */
#define GAP 64u         /* so many unknown ids in a row are the end */

typedef struct table {
    pki_cupti_call *calls;
    uint32_t count;
} table;

static table runtime, driver;

typedef struct trait {
    const char *beginning;
    unsigned traits;
} trait;

/* Without the cuda or cu in front. */
static const trait traits[] = {
    {"LaunchHostFunc", 0},
    {"Launch", PKI_CUPTI_LAUNCHES},
    {"GraphLaunch", PKI_CUPTI_LAUNCHES},
    {"Memcpy", PKI_CUPTI_LAUNCHES},
    {"MemPrefetch", PKI_CUPTI_LAUNCHES},
    {"Memset", PKI_CUPTI_LAUNCHES},
    {"DeviceSynchronize", PKI_CUPTI_WAITS},
    {"CtxSynchronize", PKI_CUPTI_WAITS},
    {"StreamSynchronize", PKI_CUPTI_WAITS},
    {"StreamWaitEvent", PKI_CUPTI_WAITS},
    {"EventSynchronize", PKI_CUPTI_WAITS},
    {"EventQuery", PKI_CUPTI_ASKS},
    {"StreamQuery", PKI_CUPTI_ASKS},
    {"EventRecord", PKI_CUPTI_RECORDS},
    {"Malloc", PKI_CUPTI_ALLOCATES},
    {"Free", PKI_CUPTI_ALLOCATES},
    {"HostAlloc", PKI_CUPTI_ALLOCATES},
    {"HostRegister", PKI_CUPTI_ALLOCATES},
    {"HostUnregister", PKI_CUPTI_ALLOCATES},
    {"MemAlloc", PKI_CUPTI_ALLOCATES},
    {"MemFree", PKI_CUPTI_ALLOCATES},
    {"MemHost", PKI_CUPTI_ALLOCATES},
    {"MemCreate", PKI_CUPTI_ALLOCATES},
    {"MemRelease", PKI_CUPTI_ALLOCATES},
    {"MemMap", PKI_CUPTI_ALLOCATES},
    {"MemUnmap", PKI_CUPTI_ALLOCATES},
    {"MemPoolTrim", PKI_CUPTI_ALLOCATES},
    {"ArrayCreate", PKI_CUPTI_ALLOCATES},
    {"Array3DCreate", PKI_CUPTI_ALLOCATES},
    {"ArrayDestroy", PKI_CUPTI_ALLOCATES},
    {"MipmappedArray", PKI_CUPTI_ALLOCATES},
    {"GetDevice", PKI_CUPTI_QUIET},
    {"SetDevice", PKI_CUPTI_QUIET},
    {"GetLastError", PKI_CUPTI_QUIET},
    {"PeekAtLastError", PKI_CUPTI_QUIET},
    {"PushCallConfiguration", PKI_CUPTI_QUIET},
    {"PopCallConfiguration", PKI_CUPTI_QUIET},
    {"DeviceGetAttribute", PKI_CUPTI_QUIET},
    {"StreamIsCapturing", PKI_CUPTI_QUIET},
    {"StreamGetCaptureInfo", PKI_CUPTI_QUIET},
    {"ThreadExchangeStreamCaptureMode", PKI_CUPTI_QUIET},
};

unsigned pki_cupti_traits(CUpti_CallbackDomain domain, const char *name)
{
    const char *front = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "cuda" : "cu";
    if (strncmp(name, front, strlen(front)) != 0)
        return 0;
    name += strlen(front);
    for (size_t i = 0; i < PKI_COUNT_OF(traits); i++) {
        size_t n = strlen(traits[i].beginning);
        bool whole = traits[i].traits == PKI_CUPTI_QUIET;
        if (strncmp(name, traits[i].beginning, n) == 0 && (!whole || !name[n]))
            return traits[i].traits;
    }
    return 0;
}

static bool learn(CUpti_CallbackDomain domain, table *t)
{
    size_t room = 0;
    for (uint32_t id = 1; id < IDS_MOST && id < t->count + GAP; id++) {
        char plain[128];
        const char *name = NULL;
        if (!pki_array_fit(&t->calls, &room, id + (size_t)1, sizeof *t->calls))
            return false;
        if (pki_cupti.GetCallbackName(domain, id, &name) != CUPTI_SUCCESS || !name)
            continue;
        pki_cupti_plain_name(name, plain, sizeof plain);
        t->calls[id] = (pki_cupti_call){strdup(plain), pki_cupti_traits(domain, plain)};
        t->count = id + 1;
    }
    return true;
}

bool pki_cupti_calls_learn(void)
{
    return (runtime.count || learn(CUPTI_CB_DOMAIN_RUNTIME_API, &runtime)) &&
           (driver.count || learn(CUPTI_CB_DOMAIN_DRIVER_API, &driver));
}

static const table *table_of(CUpti_CallbackDomain domain)
{
    return domain == CUPTI_CB_DOMAIN_RUNTIME_API ? &runtime : &driver;
}

uint32_t pki_cupti_calls_count(CUpti_CallbackDomain domain)
{
    return table_of(domain)->count;
}

const pki_cupti_call *pki_cupti_call_of(CUpti_CallbackDomain domain, uint32_t id)
{
    static char runtime_name[] = "cuda (unknown call)", driver_name[] = "cu (unknown call)";
    static const pki_cupti_call nobody[] = {{runtime_name, 0}, {driver_name, 0}};
    const table *t = table_of(domain);
    if (id < t->count && t->calls[id].name)
        return &t->calls[id];
    return &nobody[domain != CUPTI_CB_DOMAIN_RUNTIME_API];
}
