#include "base/clock.h"

/* The architecture guarantees what an x86 has to promise (Arm ARM, D11: constant frequency, one
 * system count). */
bool pki_cycle_counter_trusted(const char **why_not)
{
    (void)why_not;
    return true;
}

bool pki_cycle_counter_constant(void)
{
    return true;
}
