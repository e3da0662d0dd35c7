#include "backend/none.h"

PKI_BACKEND_NONE(nccl, true, "built without it (-Dnccl=disabled)");
