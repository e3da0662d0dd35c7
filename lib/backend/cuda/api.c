#include "backend/cuda/api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/loader.h"

pki_cuda_api pki_cuda;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_cuda_verdict verdict; /* release; readers acquire: why and the table are set before */
static char why[192];

/* A function, the version of CUDA that brought the form in which we call it, and the symbol for
 * drivers without cuGetProcAddress_v2 (before 12.0). */
typedef struct entry {
    const char *name;
    int version;
    const char *symbol;
    size_t offset;
    bool optional;
} entry;

#define NEED(member, name, version, symbol)                                                        \
    {                                                                                              \
        name, version, symbol, offsetof(pki_cuda_api, member), false                               \
    }
#define MAYBE(member, name, version, symbol)                                                       \
    {                                                                                              \
        name, version, symbol, offsetof(pki_cuda_api, member), true                                \
    }

static const entry entries[] = {
    NEED(driver_version, "cuDriverGetVersion", 2020, "cuDriverGetVersion"), /* the first */
    NEED(init, "cuInit", 2000, "cuInit"),
    NEED(device_count, "cuDeviceGetCount", 2000, "cuDeviceGetCount"),
    MAYBE(error_name, "cuGetErrorName", 6000, "cuGetErrorName"),
    NEED(ctx_current, "cuCtxGetCurrent", 4000, "cuCtxGetCurrent"),
    NEED(ctx_push, "cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"),
    NEED(ctx_pop, "cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"),
    NEED(ctx_device, "cuCtxGetDevice", 2000, "cuCtxGetDevice"),
    NEED(ctx_api_version, "cuCtxGetApiVersion", 3020, "cuCtxGetApiVersion"),
    MAYBE(ctx_id, "cuCtxGetId", 12000, "cuCtxGetId"),
    NEED(exchange_mode, "cuThreadExchangeStreamCaptureMode", 10010,
         "cuThreadExchangeStreamCaptureMode"),
    NEED(stream_ctx, "cuStreamGetCtx", 9020, "cuStreamGetCtx"),
    MAYBE(stream_ctx_v2, "cuStreamGetCtx", 12050, "cuStreamGetCtx_v2"),
    MAYBE(stream_id, "cuStreamGetId", 12000, "cuStreamGetId"),
    NEED(stream_create, "cuStreamCreate", 2000, "cuStreamCreate"),
    MAYBE(stream_create_priority, "cuStreamCreateWithPriority", 5050, "cuStreamCreateWithPriority"),
    MAYBE(priority_range, "cuCtxGetStreamPriorityRange", 5050, "cuCtxGetStreamPriorityRange"),
    NEED(is_capturing, "cuStreamIsCapturing", 10000, "cuStreamIsCapturing"),
    NEED(event_create, "cuEventCreate", 2000, "cuEventCreate"),
    NEED(event_destroy, "cuEventDestroy", 4000, "cuEventDestroy_v2"),
    NEED(event_record, "cuEventRecord", 2000, "cuEventRecord"),
    NEED(event_query, "cuEventQuery", 2000, "cuEventQuery"),
    MAYBE(event_elapsed, "cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"),
    MAYBE(event_record_flags, "cuEventRecordWithFlags", 11010, "cuEventRecordWithFlags"),
    MAYBE(capture_info_v3, "cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"),
    MAYBE(capture_info_v2, "cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"),
    MAYBE(depend_v2, "cuStreamUpdateCaptureDependencies", 12030,
          "cuStreamUpdateCaptureDependencies_v2"),
    MAYBE(depend_v1, "cuStreamUpdateCaptureDependencies", 11030,
          "cuStreamUpdateCaptureDependencies"),
    MAYBE(add_event_node, "cuGraphAddEventRecordNode", 11010, "cuGraphAddEventRecordNode"),
    MAYBE(exec_set_event, "cuGraphExecEventRecordNodeSetEvent", 11010,
          "cuGraphExecEventRecordNodeSetEvent"),
    MAYBE(graph_nodes, "cuGraphGetNodes", 10000, "cuGraphGetNodes"),
    MAYBE(node_event, "cuGraphEventRecordNodeGetEvent", 11010, "cuGraphEventRecordNodeGetEvent"),
    MAYBE(object_create, "cuUserObjectCreate", 11030, "cuUserObjectCreate"),
    MAYBE(object_release, "cuUserObjectRelease", 11030, "cuUserObjectRelease"),
    MAYBE(graph_retain, "cuGraphRetainUserObject", 11030, "cuGraphRetainUserObject"),
};

/* Before 12.8 the second form of it was not there. */
static const entry old_elapsed =
    NEED(event_elapsed, "cuEventElapsedTime", 2000, "cuEventElapsedTime");

typedef CUresult(CUDAAPI *get_address)(const char *symbol, void **function, int version,
                                       cuuint64_t flags,
                                       CUdriverProcAddressQueryResult *symbolStatus);

/* An older driver hands out the form that it has, which may take other arguments. */
static bool is_new_enough(const entry *e)
{
    int version = 0;
    return !pki_cuda.driver_version || pki_cuda.driver_version(&version) || version >= e->version;
}

static void describe_missing(const entry *e, CUresult code)
{
    if (code == CUDA_ERROR_STUB_LIBRARY)
        snprintf(why, sizeof why,
                 "no CUDA driver: libcuda is the toolkit's stub, for linking only");
    else
        snprintf(why, sizeof why, "the CUDA driver is too old: it has no %s", e->name);
}

static bool bind(void *library, get_address get, const entry *e)
{
    void *function = NULL;
    CUresult code = CUDA_SUCCESS;
    if (is_new_enough(e) && get)
        code = get(e->name, &function, e->version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL);
    else if (is_new_enough(e))
        function = dlsym(library, e->symbol);
    function = code ? NULL : function;
    if (!function && !e->optional)
        describe_missing(e, code);
    memcpy((char *)&pki_cuda + e->offset, &function, sizeof function);
    return function || e->optional;
}

static bool bind_all(void *library)
{
    get_address get;
    void *address = dlsym(library, "cuGetProcAddress_v2");
    memcpy(&get, &address, sizeof get);
    for (size_t i = 0; i < PKI_COUNT_OF(entries); i++)
        if (!bind(library, get, &entries[i]))
            return false;
    return pki_cuda.event_elapsed || bind(library, get, &old_elapsed);
}

static pki_cuda_verdict open_library(void)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    char reason[sizeof why];
    void *library = pki_dl_open("PK_CUDA_LIBRARY", names, reason, sizeof reason);
    if (!library) {
        snprintf(why, sizeof why, "no CUDA driver: %.160s", reason);
        return PKI_CUDA_ABSENT;
    }
    return bind_all(library) ? PKI_CUDA_FOUND : PKI_CUDA_ABSENT;
}

/* ---- what the driver says, asked without the lock: who records may be here, too ---- */

typedef char sentence[sizeof why];

static pki_cuda_verdict refuse(const char *call, CUresult code, sentence said)
{
    snprintf(said, sizeof(sentence), "no GPU to use: %s says %s (%d)", call,
             pki_cuda_error_name(code), (int)code);
    return PKI_CUDA_NO_GPU;
}

static pki_cuda_verdict count_devices(sentence said)
{
    int count = 0;
    CUresult code = pki_cuda.device_count(&count);
    if (code == CUDA_ERROR_NOT_INITIALIZED)
        return PKI_CUDA_FOUND;
    if (code)
        return refuse("cuDeviceGetCount", code, said);
    if (count > 0)
        return PKI_CUDA_LIVE;
    snprintf(said, sizeof(sentence), "no GPU to use: the CUDA driver counts 0 devices");
    return PKI_CUDA_NO_GPU;
}

static pki_cuda_verdict initialise(sentence said)
{
    CUresult code = pki_cuda.init(0);
    if (code)
        return refuse("cuInit", code, said);
    pki_cuda_verdict answer = count_devices(said);
    return answer == PKI_CUDA_FOUND ? refuse("cuDeviceGetCount", CUDA_ERROR_NOT_INITIALIZED, said)
                                    : answer;
}

/* The first answer counts. */
static pki_cuda_verdict conclude(pki_cuda_verdict answer, const sentence said)
{
    pthread_mutex_lock(&lock);
    if (verdict == PKI_CUDA_FOUND && answer != PKI_CUDA_FOUND) {
        memcpy(why, said, sizeof why);
        pki_store_release(&verdict, answer);
    }
    answer = verdict;
    pthread_mutex_unlock(&lock);
    return answer;
}

pki_cuda_verdict pki_cuda_find(void)
{
    sentence said = "";
    pthread_mutex_lock(&lock);
    if (verdict == PKI_CUDA_UNTRIED)
        pki_store_release(&verdict, open_library());
    pki_cuda_verdict answer = verdict;
    pthread_mutex_unlock(&lock);
    return answer == PKI_CUDA_FOUND ? conclude(count_devices(said), said) : answer;
}

pki_cuda_verdict pki_cuda_decide(void)
{
    sentence said = "";
    pki_cuda_verdict answer = pki_cuda_find();
    return answer == PKI_CUDA_FOUND ? conclude(initialise(said), said) : answer;
}

pki_cuda_verdict pki_cuda_known(void)
{
    return pki_load_acquire(&verdict); /* pairs with the releases above */
}

const char *pki_cuda_why(void)
{
    return why;
}

/* What was initialised before the fork cannot be used after it, and not be initialised again. */
void pki_cuda_api_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    if (verdict != PKI_CUDA_LIVE)
        return;
    snprintf(why, sizeof why,
             "CUDA was in use when this process was forked; a child cannot use it");
    verdict = PKI_CUDA_NO_GPU;
}

PKI_COLD CUresult pki_cuda_record_in(CUcontext context, CUevent event, CUstream stream,
                                     unsigned flags)
{
    CUresult code = pki_cuda_enter(context);
    if (code)
        return code;
    code = flags ? pki_cuda.event_record_flags(event, stream, flags)
                 : pki_cuda.event_record(event, stream);
    pki_cuda_leave();
    return code;
}

const char *pki_cuda_error_name(CUresult code)
{
    const char *name = NULL;
    return pki_cuda.error_name && pki_cuda.error_name(code, &name) == CUDA_SUCCESS && name
               ? name
               : "error";
}
