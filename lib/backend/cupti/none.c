#include "backend/none.h"

PKI_BACKEND_NONE(cupti, false,
                 "this build has no cupti backend: cupti.h of CUDA 13.0 or newer was not there");
