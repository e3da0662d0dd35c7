#include "comm/nccl/real.h"

#define DECLARE(NAME, PARAMS, ...) extern pki_wrap_result pnccl##NAME PARAMS;
#define DECLARE_WEAK(NAME, PARAMS, ...)                                                            \
    extern pki_wrap_result pnccl##NAME PARAMS __attribute__((weak));
PKI_WRAP_COLLECTIVES(DECLARE)
PKI_WRAP_LATER_COLLECTIVES(DECLARE_WEAK)
PKI_WRAP_OTHERS(DECLARE)
PKI_WRAP_LATER_OTHERS(DECLARE_WEAK)
PKI_WRAP_ONE_SIDED(DECLARE_WEAK)
PKI_WRAP_NEWEST_OTHERS(DECLARE_WEAK)

pki_wrap_table pki_wrap_real = {
#define POINT(NAME, PARAMS, ...) .NAME = pnccl##NAME,
    PKI_WRAP_COLLECTIVES(POINT) PKI_WRAP_LATER_COLLECTIVES(POINT) PKI_WRAP_OTHERS(POINT)
        PKI_WRAP_LATER_OTHERS(POINT) PKI_WRAP_ONE_SIDED(POINT) PKI_WRAP_NEWEST_OTHERS(POINT)
#undef POINT
};

void pki_wrap_resolve(void) {}
