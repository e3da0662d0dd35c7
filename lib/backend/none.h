/* lib/backend/none.h - the backend that is not there: what a NAME/none.c consists of. Behind WHY
 * further members may follow. */
#pragma once

#include <stdio.h>

#include "session/backend.h"

#define PKI_BACKEND_NONE(NAME, BY_DEFAULT, ...)                                                    \
    PKI_BACKEND_NONE_(NAME, BY_DEFAULT, __VA_ARGS__, .stop = NULL)
#define PKI_BACKEND_NONE_(NAME, BY_DEFAULT, WHY, ...)                                              \
    static void probe_##NAME(pk_backend_info *info)                                                \
    {                                                                                              \
        snprintf(info->reason, sizeof info->reason, "%s", WHY);                                    \
    }                                                                                              \
    extern const pki_backend pki_backend_##NAME;                                                   \
    const pki_backend pki_backend_##NAME = {                                                       \
        .name = #NAME, .by_default = (BY_DEFAULT), .probe = probe_##NAME, __VA_ARGS__}
