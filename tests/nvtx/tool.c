/* tool.c - a tool that listens to NVTX and writes down what it hears, one line for each call.
 *
 * TOOL_MANNERS=refuse: it wants nothing. plain: it does not know payloads. deaf: no ranges of
 * threads.
 */
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
EXPORT int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);
EXPORT extern char tool_log[1 << 20];
char tool_log[1 << 20];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t used;
static char domains[16][64];
static char strings[64][64];
static unsigned domain_count, string_count;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&lock);
    used = strlen(tool_log); /* its reader may have emptied it */
    int n = vsnprintf(tool_log + used, sizeof tool_log - used - 2, format, args);
    strcpy(tool_log + used + (n > 0 ? n : 0), "\n");
    pthread_mutex_unlock(&lock);
    va_end(args);
    errno = EIO; /* as a tool might */
}

static bool behaves(const char *manners)
{
    const char *wanted = getenv("TOOL_MANNERS");
    return wanted && strcmp(wanted, manners) == 0;
}

static nvtxDomainHandle_t create(const char *name)
{
    char *copy = domains[domain_count++ % 16];
    snprintf(copy, sizeof domains[0], "%s", name);
    note("domain %s", copy);
    return (nvtxDomainHandle_t)(void *)copy;
}

static nvtxStringHandle_t add_string(nvtxDomainHandle_t domain, const char *text)
{
    pthread_mutex_lock(&lock);
    char *copy = strings[string_count++ % 64];
    pthread_mutex_unlock(&lock);
    snprintf(copy, sizeof strings[0], "%s", text);
    note("string %s in %s", copy, (const char *)domain);
    return (nvtxStringHandle_t)(void *)copy;
}

static void name_category(nvtxDomainHandle_t domain, uint32_t id, const char *name)
{
    note("category %u %s in %s", id, name, (const char *)domain);
}

static void describe(const char *what, nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    bool registered = a->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
    char payload[32] = "";
    if (a->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64)
        snprintf(payload, sizeof payload, " =%llu", (unsigned long long)a->payload.ullValue);
    note("%s %s%s category %u colour %08x%s in %s", what, registered ? "" : "text ",
         a->message.ascii, a->category, a->color, payload, (const char *)domain);
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    describe("push", domain, a);
    return 0;
}

static int pop(nvtxDomainHandle_t domain)
{
    note("pop in %s", (const char *)domain);
    return 0;
}

static void mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    describe("mark", domain, a);
}

static int push_default(const char *message)
{
    note("push %s", message);
    return 0;
}

static uint64_t add_schema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *attr)
{
    note("schema %s of %zu in %s", attr->name, attr->numEntries, (const char *)domain);
    return NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START;
}

static int pop_payload(nvtxDomainHandle_t domain, const nvtxPayloadData_t *data, size_t n)
{
    uint64_t values[2] = {0, 0};
    if (n == 1 && data->schemaId == NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START &&
        data->size == sizeof values)
        memcpy(values, data->payload, sizeof values);
    note("pop bytes %llu flops %llu in %s", (unsigned long long)values[0],
         (unsigned long long)values[1], (const char *)domain);
    return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    const NvtxExportTableVersionInfo *version = get(NVTX_ETID_VERSIONINFO);
    NvtxFunctionTable core, core2;
    unsigned size, size2;
    note("attach version %u", version->version);
    version->SetInjectionNvtxVersion(1);
    if (behaves("refuse") || get(77) ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size) ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &size2) ||
        size != NVTX_CBID_CORE_SIZE || size2 != NVTX_CBID_CORE2_SIZE)
        return 0;
    *core[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push_default;
    *core2[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *core2[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)add_string;
    *core2[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)name_category;
    *core2[NVTX_CBID_CORE2_DomainMarkEx] = (NvtxFunctionPointer)mark;
    if (!behaves("deaf")) {
        *core2[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
        *core2[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    }
    return 1;
}

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
    const nvtxPayloadEntryTypeInfo_t *types = module->extInfo;
    if (behaves("plain") || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID)
        return 0;
    if (types[NVTX_PAYLOAD_ENTRY_TYPE_UINT64].size != 8 ||
        types[0].size != NVTX_PAYLOAD_ENTRY_TYPE_INFO_ARRAY_SIZE)
        note("types are wrong");
    module->segments->functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] = (intptr_t)add_schema;
    module->segments->functionSlots[NVTX3EXT_CBID_nvtxRangePopPayload] = (intptr_t)pop_payload;
    return 1;
}
