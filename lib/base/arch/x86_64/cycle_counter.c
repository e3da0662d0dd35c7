#include "base/clock.h"

#include <cpuid.h>
#include <string.h>

/* The CPU promises a constant rate in all power states; the kernel, which watches it against other
 * clocks, strikes "tsc" off this list when the promise is not kept (unsynchronised sockets, live
 * migration). */
bool pki_cycle_counter_constant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));
}

bool pki_cycle_counter_trusted(const char **why_not)
{
    char text[256];
    if (!pki_cycle_counter_constant()) {
        *why_not = "the CPU has no invariant TSC";
        return false;
    }
    if (pki_read_line("/sys/devices/system/clocksource/clocksource0/available_clocksource", text,
                      sizeof text) &&
        !strstr(text, "tsc")) {
        *why_not = "the kernel does not trust the TSC";
        return false;
    }
    return true;
}
