/* lib/backend/cupti/api.h - libcupti's functions, found while the program runs.
 *
 * Compiled against the newest header, run with whatever library is there: records are read field by
 * field up to what its version has (cupti/records.h), functions that came later may be NULL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cupti.h>

/* cuptiGetVersion counted 1 to 28; since CUDA 13.0 it is major, minor and patch in two digits each.
 */
enum {
    PKI_CUPTI_11_6 = 17, /* takes somebody else's clock: the oldest that is used */
    PKI_CUPTI_11_8 = 18,
    PKI_CUPTI_12_2 = 20,
    PKI_CUPTI_12_5 = 23,
    PKI_CUPTI_12_9 = 27,
    PKI_CUPTI_13_0 = 130000,
    PKI_CUPTI_13_0_U1 = 130001,
    PKI_CUPTI_13_1 = 130100,
    PKI_CUPTI_13_1_U1 = 130101
};

/* F(name), or L(name): a later one, NULL where the library is older. */
#define PKI_CUPTI_FUNCTIONS(F, L)                                                                  \
    F(GetVersion)                                                                                  \
    F(GetResultString)                                                                             \
    F(GetCallbackName)                                                                             \
    F(Subscribe)                                                                                   \
    L(Subscribe_v2) /* since 13.0 */                                                               \
    F(Unsubscribe)                                                                                 \
    F(EnableCallback)                                                                              \
    F(SetThreadIdType)                                                                             \
    F(ActivitySetAttribute)                                                                        \
    F(ActivityRegisterCallbacks)                                                                   \
    F(ActivityRegisterTimestampCallback)                                                           \
    F(ActivityEnable)                                                                              \
    F(ActivityDisable)                                                                             \
    L(ActivityEnableRuntimeApi)     /* since 12.5 */                                               \
    L(ActivityEnableDriverApi)      /* since 12.5 */                                               \
    L(ActivityEnableAllSyncRecords) /* later than 11.6 */                                          \
    F(ActivityFlushAll)                                                                            \
    F(ActivityGetNextRecord)                                                                       \
    F(ActivityGetNumDroppedRecords)                                                                \
    F(ActivityPushExternalCorrelationId)                                                           \
    F(ActivityPopExternalCorrelationId)

#define PKI_CUPTI_MEMBER(name) __typeof__(cupti##name) *name;
typedef struct pki_cupti_table {
    PKI_CUPTI_FUNCTIONS(PKI_CUPTI_MEMBER, PKI_CUPTI_MEMBER)
} pki_cupti_table;

/* Filled by pki_cupti_load, and never changed after that: its functions may be called for ever. */
extern pki_cupti_table pki_cupti;

/* Opens the library, once per process: true if it is there and of a version that can be used. It
 * does not ask whether there is a driver. If not, why not. */
bool pki_cupti_load(char *reason, size_t size);

uint32_t pki_cupti_version(void); /* 0: not loaded */

/* "12.8", from cuptiGetVersion's number. */
void pki_cupti_version_text(uint32_t version, char *text, size_t size);

/* Why a version is not used, or what it does wrong; NULL if nothing is known against it. */
typedef struct pki_cupti_fault {
    uint32_t from, until; /* versions, the last one not included */
    bool refused;
    const char *why;
} pki_cupti_fault;
const pki_cupti_fault *pki_cupti_fault_of(uint32_t version);

/* A result in words, with what can be done about it. */
const char *pki_cupti_result_text(CUptiResult result);
