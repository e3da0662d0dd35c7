#include "backend/none.h"

PKI_BACKEND_NONE(cupti, false,
                 "perfkit was built without CUPTI's headers (cupti.h of CUDA 13.0 or newer)");
