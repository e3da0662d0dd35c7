#include "backend/none.h"

PKI_BACKEND_NONE(cupti, false, "this version of perfkit has no cupti backend");
