#include "session/costs/memory_steps.h"
#include "session/service.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/files.h"
#include "core/counter.h"
#include "core/registry.h"

#define TRIES 3

static pk_counter resident = PK_COUNTER("memory.resident", "bytes");
static pk_counter allocated = PK_COUNTER("memory.allocated", "bytes");

/* A thread may be amid a step's end as its session ends. */
static struct {
    uint32_t on;
    const pki_alloc_interface *alloc;
    uint64_t page;
    uint64_t last;  /* ticks of the last reading; 0: none */
    uint64_t looks; /* of this session... */
    uint64_t each;  /* ...and what one takes, ns */
} x;

static bool read_resident(uint64_t *bytes)
{
    char text[128], *end;
    *bytes = 0;
    if (!pki_small_file_quiet("/proc/self/statm", text, sizeof text))
        return false; /* of a text without a number strtoull may set errno, which is the program's
                       */
    strtoull(text, &end, 10);
    *bytes = strtoull(end, NULL, 10) * pki_load(&x.page);
    return *bytes > 0;
}

static void record_memory(pki_thread *t, uint64_t now)
{
    const pki_alloc_interface *alloc = pki_load(&x.alloc);
    uint64_t bytes;
    if (read_resident(&bytes))
        pki_counter_record(t, &resident, (double)bytes, now);
    if (alloc)
        pki_counter_record(t, &allocated, (double)alloc->total(), now);
}

/* One thread at a time: whoever ends a step. */
static void at_step(pki_thread *t, uint64_t now, bool between)
{
    uint64_t last = pki_load(&x.last);
    if (between)
        return;
    if (last && pki_thread_ns(t, last, pki_not_negative(now - last)) < PKI_MEMORY_STEP_LEAST)
        return;
    pki_store(&x.last, now);
    pki_store(&x.looks, pki_load(&x.looks) + 1);
    record_memory(t, now);
}

static uint64_t measure(void)
{
    uint64_t least = UINT64_MAX, bytes;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = pki_monotonic_ns();
        read_resident(&bytes);
        least = PKI_MIN(least, pki_monotonic_ns() - before);
    }
    return least;
}

void pki_memory_steps_begin(pki_session *s, const pki_alloc_interface *alloc)
{
    if (!s->config.costs_memory)
        return;
    pki_store(&x.page, (uint64_t)sysconf(_SC_PAGESIZE));
    pki_store(&x.alloc, alloc);
    pki_store(&x.each, measure());
    pki_store(&x.on, 1u);
    pki_registry_lock();
    pki_registry_on_step(s->registry, PKI_AT_STEP_MEMORY, at_step);
    pki_registry_unlock();
}

bool pki_memory_steps_on(void)
{
    return pki_load(&x.on);
}

uint64_t pki_memory_steps_spent(void)
{
    return pki_load(&x.looks) * pki_load(&x.each);
}

void pki_memory_steps_forget(void)
{
    pki_store(&x.on, 0u);
    pki_store(&x.alloc, (const pki_alloc_interface *)NULL);
    pki_store(&x.page, (uint64_t)0);
    pki_store(&x.last, (uint64_t)0);
    pki_store(&x.looks, (uint64_t)0);
    pki_store(&x.each, (uint64_t)0);
}

const pki_service pki_service_memory_steps = {
    .name = "memory_steps",
    .spent = pki_memory_steps_spent,
};
