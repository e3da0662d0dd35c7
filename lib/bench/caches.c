#include "bench/caches.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_of(unsigned index, const char *what, char *line, size_t size)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, what);
    return pki_read_line(path, line, size);
}

/* "2048K" */
static size_t bytes_of(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    return (size_t)(*end == 'K' ? n << 10 : *end == 'M' ? n << 20 : n);
}

unsigned pki_bench_processors_in(const char *list)
{
    unsigned count = 0;
    while (*list) {
        char *end;
        unsigned long from = strtoul(list, &end, 10), to = from;
        if (end == list)
            break;
        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        count += (unsigned)(to - from + 1);
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

size_t pki_bench_caches(pki_bench_cache caches[PKI_BENCH_CACHES])
{
    size_t count = 0;
    char line[256];
    for (unsigned i = 0; i < PKI_BENCH_CACHES && read_of(i, "size", line, sizeof line); i++) {
        pki_bench_cache *cache = &caches[count++];
        memset(cache, 0, sizeof *cache);
        cache->bytes = bytes_of(line);
        if (read_of(i, "level", line, sizeof line))
            cache->level = (unsigned)strtoul(line, NULL, 10);
        if (read_of(i, "type", line, sizeof line))
            snprintf(cache->type, sizeof cache->type, "%.15s", line);
        if (read_of(i, "shared_cpu_list", line, sizeof line))
            cache->sharing = pki_bench_processors_in(line);
    }
    return count;
}

size_t pki_bench_largest_cache(void)
{
    pki_bench_cache caches[PKI_BENCH_CACHES];
    size_t count = pki_bench_caches(caches), largest = 0;
    for (size_t i = 0; i < PKI_BENCH_CACHES && i < count; i++)
        if (strcmp(caches[i].type, "Instruction") != 0 && caches[i].bytes > largest)
            largest = caches[i].bytes;
    return largest;
}
