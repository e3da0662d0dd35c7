#include "base/clock.h"

bool pki_cycle_counter_trusted(const char **why_not)
{
    *why_not = "perfkit knows no cycle counter for this architecture";
    return false;
}

bool pki_cycle_counter_constant(void)
{
    return false;
}
