#include "backend/none.h"

PKI_BACKEND_NONE(cuda, true, "this version of perfkit has no cuda backend");
