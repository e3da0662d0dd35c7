/* lib/backend/nvtx/attach.c - how users of NVTX find us */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/nvtx/nvtx.h"
#include "backend/shim.h"
#include "base/loader.h"
#include "base/tuning.h"
#include "core/names.h"

/* ---- tool ---- */

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
        dlclose(library); /* it stays: see lib/session/control.c */
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

/* Says yes to those who come from here on, in this process, session or not. */
static bool welcome;

/* From here on whoever calls NVTX for the first time finds us. False, and why in words. */
/* Somebody who has injected a tool before us is left alone. */
static bool pki_nvtx_inject(const pki_config *config, char *reason, size_t size)
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
    pki_store(&welcome, true);
    return true;
}

/* ---- the functions that a user of NVTX calls from its first call on ---- */

/* Each library has its own copy of NVTX, and each asks by itself. What is filled in stays for the
 * process's life, so every function here first asks whether a session wants to know. */

static unsigned attached;

/* How many users of NVTX have found us. */
static unsigned pki_nvtx_attached(void)
{
    return pki_load(&attached);
}

static bool unwanted(const pki_nvtx_domain *domain)
{
    return domain->ours || !pki_nvtx_consuming();
}

/* ---- ranges of a thread, and marks ---- */

static void mark_ex(nvtxDomainHandle_t handle, const nvtxEventAttributes_t *attr)
{
    const pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (unwanted(domain))
        return;
    pki_nvtx_event event = pki_nvtx_event_of(domain, attr);
    pki_nvtx_mark(&event);
}

static int push_default(const nvtxEventAttributes_t *attr)
{
    return pki_nvtx_push_ex(NULL, attr);
}

static void mark_default(const nvtxEventAttributes_t *attr)
{
    mark_ex(NULL, attr);
}

static void mark_text(const char *message)
{
    if (!pki_nvtx_consuming())
        return;
    pki_nvtx_event event = pki_nvtx_event_of_text(message);
    pki_nvtx_mark(&event);
}

/* ---- ranges of the process ---- */

static nvtxRangeId_t start_ex(nvtxDomainHandle_t handle, const nvtxEventAttributes_t *attr)
{
    const pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (unwanted(domain))
        return 0;
    pki_nvtx_event event = pki_nvtx_event_of(domain, attr);
    return pki_nvtx_range_start(&event);
}

static void end_in(nvtxDomainHandle_t handle, nvtxRangeId_t id)
{
    (void)handle;
    pki_nvtx_range_end(id, NULL);
}

static nvtxRangeId_t start_default(const nvtxEventAttributes_t *attr)
{
    return start_ex(NULL, attr);
}

static nvtxRangeId_t start_text(const char *message)
{
    if (!pki_nvtx_consuming())
        return 0;
    pki_nvtx_event event = pki_nvtx_event_of_text(message);
    return pki_nvtx_range_start(&event);
}

static void end_default(nvtxRangeId_t id)
{
    pki_nvtx_range_end(id, NULL);
}

/* ---- names: kept whether or not a session is open ---- */

static nvtxDomainHandle_t create_domain(const char *name)
{
    return (nvtxDomainHandle_t)pki_nvtx_domain_create(name);
}

static nvtxStringHandle_t register_text(nvtxDomainHandle_t handle, const char *text)
{
    pki_nvtx_meaning meaning;
    return (nvtxStringHandle_t)pki_nvtx_region(pki_nvtx_domain_of(handle), text, 0, &meaning);
}

static void name_category_in(nvtxDomainHandle_t handle, uint32_t id, const char *name)
{
    pki_nvtx_name_category(pki_nvtx_domain_of(handle), id, name);
}

static void name_category(uint32_t id, const char *name)
{
    name_category_in(NULL, id, name);
}

static void name_thread(uint32_t tid, const char *name)
{
    if (name)
        pki_nvtx_name_thread(tid, name);
}

/* ---- the same for text that is wide ---- */

/* On the stack: an address that other texts will have, too, and each is looked up. */
#define WIDE(TYPE, NAME, PARAMS, DO)                                                               \
    static TYPE NAME##_wide PARAMS                                                                 \
    {                                                                                              \
        char text[PKI_NAME_BYTES + 1];                                                             \
        pki_nvtx_narrow(text, sizeof text, wide);                                                  \
        DO;                                                                                        \
    }

WIDE(int, push, (const wchar_t *wide), return pki_nvtx_push_text(text))
WIDE(void, mark, (const wchar_t *wide), mark_text(text))
WIDE(nvtxRangeId_t, start, (const wchar_t *wide), return start_text(text))
WIDE(nvtxDomainHandle_t, create_domain, (const wchar_t *wide), return create_domain(text))
WIDE(nvtxStringHandle_t, register, (nvtxDomainHandle_t handle, const wchar_t *wide),
     return register_text(handle, text))
WIDE(void, name_category_in, (nvtxDomainHandle_t handle, uint32_t id, const wchar_t *wide),
     name_category_in(handle, id, text))
WIDE(void, name_category, (uint32_t id, const wchar_t *wide), name_category(id, text))
WIDE(void, name_thread, (uint32_t tid, const wchar_t *wide), name_thread(tid, text))

/* ---- resources ---- */

static bool is_calling_thread(const nvtxResourceAttributes_t *attr)
{
    pthread_t self = pthread_self();
    return memcmp(&attr->identifier, &self, sizeof self) == 0;
}

/* Of all resources that may have a name, threads are those that a trace shows. */
static nvtxResourceHandle_t create_resource(nvtxDomainHandle_t handle,
                                            nvtxResourceAttributes_t *attr)
{
    char name[PKI_NAME_BYTES + 1] = "";
    (void)handle;
    if (!attr || attr->size < sizeof *attr)
        return NULL;
    if (attr->messageType == NVTX_MESSAGE_TYPE_ASCII && attr->message.ascii)
        strncpy(name, attr->message.ascii, sizeof name - 1);
    else if (attr->messageType == NVTX_MESSAGE_TYPE_UNICODE)
        pki_nvtx_narrow(name, sizeof name, attr->message.unicode);
    if (*name && attr->identifierType == NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE)
        pki_nvtx_name_thread((uint32_t)attr->identifier.ullValue, name);
    else if (*name && attr->identifierType == NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX &&
             is_calling_thread(attr))
        pki_nvtx_name_thread((uint32_t)syscall(SYS_gettid), name);
    return NULL;
}

/* ---- ranges whose attributes are a payload ---- */

static int push_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t *data, size_t n)
{
    pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (unwanted(domain))
        return domain->ours ? NVTX_NO_PUSH_POP_TRACKING : pki_nvtx_push(domain, NULL);
    pki_nvtx_event event = {pki_nvtx_payload_region(domain, data, n), {0}};
    pki_nvtx_read_payloads(domain, data, n, &event.work);
    return pki_nvtx_push(domain, &event);
}

static int pop_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t *data, size_t n)
{
    pki_work more = {0};
    pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (domain->ours)
        return NVTX_NO_PUSH_POP_TRACKING;
    pki_nvtx_read_payloads(domain, data, n, &more);
    return pki_nvtx_pop_with(domain, &more);
}

static void mark_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t *data, size_t n)
{
    const pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (unwanted(domain))
        return;
    pki_nvtx_event event = {pki_nvtx_payload_region(domain, data, n), {0}};
    pki_nvtx_read_payloads(domain, data, n, &event.work);
    pki_nvtx_mark(&event);
}

static nvtxRangeId_t start_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t *data,
                                   size_t n)
{
    const pki_nvtx_domain *domain = pki_nvtx_domain_of(handle);
    if (unwanted(domain))
        return 0;
    pki_nvtx_event event = {pki_nvtx_payload_region(domain, data, n), {0}};
    pki_nvtx_read_payloads(domain, data, n, &event.work);
    return pki_nvtx_range_start(&event);
}

static void end_payload(nvtxDomainHandle_t handle, nvtxRangeId_t id, const nvtxPayloadData_t *data,
                        size_t n)
{
    pki_work more = {0};
    pki_nvtx_read_payloads(pki_nvtx_domain_of(handle), data, n, &more);
    pki_nvtx_range_end(id, &more);
}

static uint8_t is_enabled(nvtxDomainHandle_t handle)
{
    return !unwanted(pki_nvtx_domain_of(handle));
}

/* ---- filling in ---- */

typedef void (*any_function)(void);

#define AT(id, name) [id] = (any_function)(name)

static const any_function core[] = {AT(NVTX_CBID_CORE_MarkEx, mark_default),
                                    AT(NVTX_CBID_CORE_MarkA, mark_text),
                                    AT(NVTX_CBID_CORE_MarkW, mark_wide),
                                    AT(NVTX_CBID_CORE_RangeStartEx, start_default),
                                    AT(NVTX_CBID_CORE_RangeStartA, start_text),
                                    AT(NVTX_CBID_CORE_RangeStartW, start_wide),
                                    AT(NVTX_CBID_CORE_RangeEnd, end_default),
                                    AT(NVTX_CBID_CORE_RangePushEx, push_default),
                                    AT(NVTX_CBID_CORE_RangePushA, pki_nvtx_push_text),
                                    AT(NVTX_CBID_CORE_RangePushW, push_wide),
                                    AT(NVTX_CBID_CORE_RangePop, pki_nvtx_pop_default),
                                    AT(NVTX_CBID_CORE_NameCategoryA, name_category),
                                    AT(NVTX_CBID_CORE_NameCategoryW, name_category_wide),
                                    AT(NVTX_CBID_CORE_NameOsThreadA, name_thread),
                                    AT(NVTX_CBID_CORE_NameOsThreadW, name_thread_wide)};

static const any_function core2[] = {AT(NVTX_CBID_CORE2_DomainMarkEx, mark_ex),
                                     AT(NVTX_CBID_CORE2_DomainRangeStartEx, start_ex),
                                     AT(NVTX_CBID_CORE2_DomainRangeEnd, end_in),
                                     AT(NVTX_CBID_CORE2_DomainRangePushEx, pki_nvtx_push_ex),
                                     AT(NVTX_CBID_CORE2_DomainRangePop, pki_nvtx_pop),
                                     AT(NVTX_CBID_CORE2_DomainResourceCreate, create_resource),
                                     AT(NVTX_CBID_CORE2_DomainNameCategoryA, name_category_in),
                                     AT(NVTX_CBID_CORE2_DomainNameCategoryW, name_category_in_wide),
                                     AT(NVTX_CBID_CORE2_DomainRegisterStringA, register_text),
                                     AT(NVTX_CBID_CORE2_DomainRegisterStringW, register_wide),
                                     AT(NVTX_CBID_CORE2_DomainCreateA, create_domain),
                                     AT(NVTX_CBID_CORE2_DomainCreateW, create_domain_wide)};

static const any_function extension[] = {
    AT(NVTX3EXT_CBID_nvtxPayloadSchemaRegister, pki_nvtx_register_schema),
    AT(NVTX3EXT_CBID_nvtxMarkPayload, mark_payload),
    AT(NVTX3EXT_CBID_nvtxRangePushPayload, push_payload),
    AT(NVTX3EXT_CBID_nvtxRangePopPayload, pop_payload),
    AT(NVTX3EXT_CBID_nvtxRangeStartPayload, start_payload),
    AT(NVTX3EXT_CBID_nvtxRangeEndPayload, end_payload),
    AT(NVTX3EXT_CBID_nvtxDomainIsEnabled, is_enabled)};

static bool fill(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
                 const any_function *ours, size_t n)
{
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(module, &table, &size) || !table)
        return false;
    for (size_t i = 0; i < n && i < size; i++)
        if (ours[i] && table[i])
            *table[i] = ours[i];
    return true;
}

/* The variable may come from outside, before anybody has called pk_start. */
static bool are_welcome(void)
{
    char text[8];
    return pki_load(&welcome) ||
           (pki_tuning_of_environment(PKI_TUNING_NVTX_CONSUME, text, sizeof text) &&
            strcmp(text, "1") == 0);
}

int pki_nvtx_attach(NvtxGetExportTableFunc_t get)
{
    const NvtxExportTableCallbacks *callbacks =
        get && are_welcome() ? get(NVTX_ETID_CALLBACKS) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks ||
        !fill(callbacks, NVTX_CB_MODULE_CORE, core, PKI_COUNT_OF(core)))
        return 0;
    fill(callbacks, NVTX_CB_MODULE_CORE2, core2, PKI_COUNT_OF(core2));
    pki_fetch_add(&attached, 1);
    return 1;
}

/* Those of a module that is not ours are told so: nothing of it is called then. */
int pki_nvtx_attach_extension(nvtxExtModuleInfo_t *module)
{
    if (!are_welcome() || !module || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID ||
        module->segmentsCount == 0)
        return 0;
    const nvtxExtModuleSegment_t *segment = &module->segments[0];
    for (size_t i = 0; i < PKI_COUNT_OF(extension) && i < segment->slotCount; i++)
        if (extension[i])
            segment->functionSlots[i] = (intptr_t)extension[i];
    return 1;
}

/* ---- what the files of the NVTX backend share ---- */

static char emitting[192],
    not_consuming[192]; /* of the last start; "" if there was nothing to say */
static bool emits, consumes, started;

static bool start(const pki_config *config)
{
    started = true;
    not_consuming[0] = '\0';
    consumes = config->nvtx_consume && pki_nvtx_inject(config, not_consuming, sizeof not_consuming);
    emits = pki_nvtx_emit_start(emitting, sizeof emitting);
    pki_nvtx_consume(consumes);
    return emits || consumes;
}

/* Whoever wants other people's ranges wants this backend. */
static bool is_requested(const pki_config *config)
{
    return config->nvtx_consume;
}

static void collect(void)
{
    if (consumes)
        pki_nvtx_ranges_collect();
}

/* Nobody in the process has called NVTX yet. */
static bool is_idle(void)
{
    return pki_nvtx_attached() == 0;
}

static void stop(void)
{
    pki_nvtx_consume(false);
    if (consumes)
        pki_nvtx_ranges_stop();
}

static void after_fork(void)
{
    pki_nvtx_consume(false);
    pki_nvtx_domains_after_fork();
    pki_nvtx_ranges_after_fork();
}

/* ---- in words ---- */

/* Before pk_start: nothing is opened only to be asked. */
static void describe_before_start(pk_backend_info *info)
{
    const char *path = secure_getenv(PKI_NVTX_VARIABLE);
    char consume[8] = "";
    pki_tuning_of_environment(PKI_TUNING_NVTX_CONSUME, consume, sizeof consume);
    info->live = (path && *path) || strcmp(consume, "1") == 0;
    if (path && *path)
        snprintf(info->reason, sizeof info->reason, PKI_NVTX_VARIABLE " names %.120s", path);
    else if (info->live)
        snprintf(info->reason, sizeof info->reason, "to consume the ranges of other libraries");
    else
        snprintf(info->reason, sizeof info->reason,
                 "no tool listens (" PKI_NVTX_VARIABLE " is not set)");
}

static void describe(pk_backend_info *info)
{
    size_t n = 0, size = sizeof info->reason;
    unsigned users = pki_nvtx_attached();
    info->live = emits || consumes;
    if (consumes)
        n = (size_t)snprintf(info->reason, size, "consuming the ranges of %u user%s of NVTX", users,
                             users == 1 ? "" : "s");
    if (*emitting)
        n += (size_t)snprintf(info->reason + n, size - n, "%s%s", n ? "; " : "", emitting);
    if (*not_consuming && n < size)
        n += (size_t)snprintf(info->reason + n, size - n, "%s%s", n ? "; " : "", not_consuming);
    if (n == 0)
        snprintf(info->reason, size, "no tool listens (" PKI_NVTX_VARIABLE " is not set)");
}

static void probe(pk_backend_info *info)
{
    snprintf(info->version, sizeof info->version, "%d", NVTX_VERSION);
    if (started)
        describe(info);
    else
        describe_before_start(info);
}

extern const pki_backend pki_backend_nvtx;
const pki_backend pki_backend_nvtx = {.name = "nvtx",
                                      .by_default = true,
                                      .probe = probe,
                                      .start = start,
                                      .mirror = &pki_nvtx_mirror,
                                      .requested = is_requested,
                                      .collect = collect,
                                      .idle = is_idle,
                                      .stop = stop,
                                      .after_fork = after_fork};
