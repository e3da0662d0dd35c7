#include "backend/none.h"

PKI_BACKEND_NONE(nccl, true, "this version of perfkit has no nccl backend");
