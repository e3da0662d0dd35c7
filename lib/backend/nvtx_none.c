#include "backend/none.h"

PKI_BACKEND_NONE(nvtx, true, "this version of perfkit has no nvtx backend");
