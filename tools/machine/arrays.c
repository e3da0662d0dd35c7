#include "machine/arrays.h"

#include "base/compiler.h"
#include "machine/kernels.h"
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define TIMES_CACHE 4u
#define CACHE_GUESS ((uint64_t)32 << 20)
#define APART 2048u /* bytes: the three do not begin at the same place of their pages */
#define STEP_BYTES (MEMORY_STEP * sizeof(double))

/* ---- how large ---- */

/* Kilobytes in /proc/meminfo; 0: not known. */
static uint64_t available(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && kib == 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu", &kib) != 1)
            kib = 0;
    if (file)
        fclose(file);
    return (uint64_t)kib << 10;
}

static uint64_t memory_to_use(const machine_found *f, uint32_t memory_mib)
{
    uint64_t free_bytes = available(), fence = f->environment.cgroup_memory_bytes;
    if (memory_mib)
        return (uint64_t)memory_mib << 20;
    if (fence && (free_bytes == 0 || fence < free_bytes))
        free_bytes = fence;
    return free_bytes ? free_bytes / 4 : UINT64_MAX;
}

void arrays_choose(machine_found *f, uint32_t memory_mib)
{
    const pki_bench_cache *largest = NULL;
    for (size_t i = 0; i < f->environment.cache_count; i++) {
        const pki_bench_cache *c = &f->environment.caches[i];
        if (strcmp(c->type, "Instruction") != 0 && (!largest || c->level > largest->level))
            largest = c;
    }
    f->cache_known = largest && largest->bytes;
    unsigned sharing = f->cache_known && largest->sharing ? largest->sharing : f->processors;
    unsigned caches = (f->processors + sharing - 1) / sharing;
    f->cache_bytes = f->cache_known ? largest->bytes * caches : CACHE_GUESS;
    uint64_t most = memory_to_use(f, memory_mib) / 3;
    uint64_t step = (uint64_t)STEP_BYTES * f->processors;
    f->array_bytes = PKI_MIN(f->cache_bytes * TIMES_CACHE, most) / step * step;
    f->array_bytes = PKI_MAX(f->array_bytes, step);
}

/* ---- the arrays ---- */

bool arrays_make(arrays *a, unsigned threads, uint64_t bytes, complaint *why)
{
    size_t each = (size_t)(bytes / threads / STEP_BYTES * STEP_BYTES);
    size_t apart = 3 * (each + APART);
    a->threads = threads;
    a->bytes = apart * threads;
    a->memory = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a->memory == MAP_FAILED)
        return complaint_set(why, "no memory for arrays of %zu MiB (--memory takes less): %s",
                             a->bytes >> 20, strerror(errno));
    a->sets = memory_zeroed(threads, sizeof *a->sets);
    for (unsigned i = 0; i < threads; i++) {
        char *at = (char *)a->memory + i * apart;
        array_set *s = &a->sets[i];
        s->count = each / sizeof(double);
        s->a = (double *)(void *)at;
        s->b = (double *)(void *)(at + each + APART);
        s->c = (double *)(void *)(at + 2 * (each + APART));
    }
    return true;
}

void arrays_touch(arrays *a, unsigned thread)
{
    const array_set *s = &a->sets[thread];
    for (size_t i = 0; i < s->count; i++) {
        s->a[i] = 1;
        s->b[i] = 2;
        s->c[i] = 0.5;
    }
}

size_t arrays_count(const arrays *a)
{
    return a->sets[0].count * a->threads;
}

void arrays_free(arrays *a)
{
    munmap(a->memory, a->bytes);
    free(a->sets);
}
