#include "backend/none.h"

PKI_BACKEND_NONE(nvml, true, "this build of perfkit has no costs (-Dservices=)");
