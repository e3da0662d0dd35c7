#include "backend/none.h"

PKI_BACKEND_NONE(nvtx, true, "perfkit was built without NVTX's headers");
