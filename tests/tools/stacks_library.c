/* What stacks_program opens while it runs. */
#include <stdint.h>

void loaded_heavy(uint64_t parts);

static volatile double sink;

void loaded_heavy(uint64_t parts)
{
    for (uint64_t i = 0; i < parts; i++) {
        double x = 1;
        for (uint64_t n = 0; n < 4000000; n++)
            x = x * 1.0000001 + 0.3;
        sink = sink + x;
    }
}
