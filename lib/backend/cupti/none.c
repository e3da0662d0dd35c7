#include "backend/none.h"

/* As the real one is, so that the report says why not. */
static bool is_requested(const pki_config *config)
{
    return config->costs_memory;
}

PKI_BACKEND_NONE(cupti, false,
                 "perfkit was built without CUPTI's headers (cupti.h of CUDA 13.0 or newer)",
                 .requested = is_requested);
