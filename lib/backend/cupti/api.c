#include "backend/cupti/api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/dl.h"
#include "base/wheels.h"

pki_cupti_table pki_cupti;
static uint32_t loaded_version;
static bool usable;
static char why_not[192];

#define FUNCTION(name) PKI_DL_FUNCTION(pki_cupti_table, name, "cupti" #name, false),
#define LATER_FUNCTION(name) PKI_DL_FUNCTION(pki_cupti_table, name, "cupti" #name, true),

static const pki_dl_function functions[] = {PKI_CUPTI_FUNCTIONS(FUNCTION, LATER_FUNCTION)};

/* What NVIDIA's release notes and other tools' users have met. */
static const pki_cupti_fault faults[] = {
    {0, PKI_CUPTI_11_6, true, "it is older than CUDA 11.6 and does not take our clock"},
    {PKI_CUPTI_13_0, PKI_CUPTI_13_0_U1, true,
     "that of CUDA 13.0 without update 1 can lock up when it is switched off"},
    {PKI_CUPTI_13_1, PKI_CUPTI_13_1_U1, false,
     "that of CUDA 13.1 without update 1 ties graph launches to the wrong calls in a process's later "
     "sessions"},
};

const pki_cupti_fault *pki_cupti_fault_of(uint32_t version)
{
    for (size_t i = 0; i < PKI_COUNT_OF(faults); i++)
        if (version >= faults[i].from && version < faults[i].until)
            return &faults[i];
    return NULL;
}

void pki_cupti_version_text(uint32_t version, char *text, size_t size)
{
    static const char *const old[] = {
        [17] = "11.6", [18] = "11.8", [19] = "12.0", [20] = "12.2",
        [21] = "12.3", [22] = "12.4", [23] = "12.5", [24] = "12.6",
        [25] = "12.6", [26] = "12.8", [27] = "12.9", [28] = "12.9 update 1"};
    if (version >= 10000)
        snprintf(text, size, "%u.%u (%u)", version / 10000, version / 100 % 100, version);
    else if (version < PKI_COUNT_OF(old) && old[version])
        snprintf(text, size, "%s (%u)", old[version], version);
    else
        snprintf(text, size, "%u", version);
}

/* By what it calls itself, for the loader, then where the toolkit puts it, then in Python's
 * packages: those of CUDA 13 share a folder. */
static void *open_library(void)
{
    static const char *const files[] = {"libcupti.so.13", "libcupti.so.12", NULL};
    static const char *const packages[] = {"cu13", "cuda_cupti", NULL};
    const char *given = secure_getenv("PK_CUPTI_LIBRARY");
    static const char *const names[] = {"libcupti.so.13",
                                        "libcupti.so.12",
                                        "libcupti.so",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                                        "/usr/local/cuda/lib64/libcupti.so",
                                        NULL};
    void *library = pki_dl_open("PK_CUPTI_LIBRARY", names, why_not, sizeof why_not);
    return library || (given && *given) ? library
                                        : pki_wheel_open(files, packages, why_not, sizeof why_not);
}

static void load(void)
{
    char text[32];
    void *library = open_library();
    if (!library || !pki_dl_bind(library, functions, PKI_COUNT_OF(functions), &pki_cupti, why_not,
                                 sizeof why_not))
        return;
    CUptiResult result = pki_cupti.GetVersion(&loaded_version);
    if (result != CUPTI_SUCCESS) {
        snprintf(why_not, sizeof why_not, "cuptiGetVersion: %s", pki_cupti_result_text(result));
        return;
    }
    const pki_cupti_fault *fault = pki_cupti_fault_of(loaded_version);
    pki_cupti_version_text(loaded_version, text, sizeof text);
    usable = !fault || !fault->refused;
    if (!usable)
        snprintf(why_not, sizeof why_not, "CUPTI %s: %s", text, fault->why);
}

bool pki_cupti_load(char *reason, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!usable)
        snprintf(reason, size, "%s", why_not);
    return usable;
}

uint32_t pki_cupti_version(void)
{
    return loaded_version;
}

const char *pki_cupti_result_text(CUptiResult result)
{
    const char *name = NULL;
    switch (result) {
    case CUPTI_ERROR_NOT_INITIALIZED:
        return "CUPTI does not start with this driver: it may be newer than the driver is (15)";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return "not on this virtual GPU: its host has to allow tracing (33, 40)";
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
        return "the driver lets only root trace (35): NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_MAX_LIMIT_REACHED:
        return "another tool in this process uses CUPTI (39, 12)";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
        return "not in confidential computing mode (41)";
    case CUPTI_ERROR_UNKNOWN:
        return "CUPTI finds no working driver (999)";
    default:
        break;
    }
    if (!pki_cupti.GetResultString || pki_cupti.GetResultString(result, &name) != CUPTI_SUCCESS)
        name = NULL;
    return name ? name : "an error that CUPTI has no name for";
}
