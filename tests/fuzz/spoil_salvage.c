/* spoil_salvage.c - every field of a killed run's arena set to every value that may matter, and
 * many random patches; the same every time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "arena.h"
#include "fuzz_salvage.h"

static uint64_t chance = 88172645463325252u;

static uint64_t next(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance;
}

static unsigned long spoil_fields(const arena_copy *a, size_t stride)
{
    unsigned long n = 0;
    for (size_t area = 0; area < a->area_count; area++)
        for (size_t at = 0; at < a->areas[area].bytes; at += stride)
            for (unsigned value = 0; value < 2 * FUZZ_VALUES; value++, n++) {
                uint8_t patch[] = {(uint8_t)area, (uint8_t)at, (uint8_t)(at >> 8),
                                   (uint8_t)(128 + value)};
                LLVMFuzzerTestOneInput(patch, sizeof patch);
            }
    return n;
}

static void spoil_at_random(unsigned long times)
{
    uint8_t patches[200];
    for (unsigned long n = 0; n < times; n++) {
        size_t size = next() % sizeof patches;
        for (size_t i = 0; i < size; i++)
            patches[i] = (uint8_t)(next() >> 32);
        LLVMFuzzerTestOneInput(patches, size);
    }
}

static void cut(unsigned long times)
{
    for (unsigned long n = 0; n < times; n++) {
        uint8_t patch[] = {FUZZ_CUT, (uint8_t)next(), (uint8_t)next()};
        LLVMFuzzerTestOneInput(patch, sizeof patch);
    }
}

static void repeat_a_block(void)
{
    uint8_t patch[] = {FUZZ_SAME};
    LLVMFuzzerTestOneInput(patch, sizeof patch);
}

/* STRIDE TIMES: fields every so many bytes, so many random ones. */
int main(int argc, char **argv)
{
    size_t stride = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
    unsigned long times = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    const arena_copy *a = arena_made();
    /* Whatever it finds, it ends; by its own time, not by that of a busy machine. */
    setrlimit(RLIMIT_CPU, &(struct rlimit){280, 280});
    unsigned long fields = spoil_fields(a, stride ? stride : 4);
    spoil_at_random(times);
    cut(times / 10);
    repeat_a_block();
    printf("%lu fields spoilt, %lu random patches\n", fields, times);
    return 0;
}
