/* lib/session/costs/none.c - built without what a run costs beside time (-Dservices=): asked for,
 * it is refused at the start. */
#include "base/log.h"
#include "session/costs/energy.h"
#include "session/costs/events.h"
#include "session/costs/gpu_load.h"
#include "session/costs/gpu_memory.h"
#include "session/costs/io.h"
#include "session/session.h"

static pk_status open_none(pki_session *s)
{
    const pki_config *c = &s->config;
    return c->costs_io || c->costs_energy || c->costs_hardware || c->costs_software ||
                   c->costs_topdown || c->costs_memory
               ? pki_fail(PK_ENOTSUP, "costs: this build of perfkit has no costs")
               : PK_OK;
}

const pki_service pki_service_io = {.name = "io", .open = open_none};
const pki_service pki_service_io_steps = {.name = "io_steps"};
const pki_service pki_service_energy = {.name = "energy"};
const pki_service pki_service_events = {.name = "events"};
const pki_service pki_service_memory = {.name = "memory"};
const pki_service pki_service_memory_steps = {.name = "memory_steps"};
const pki_service pki_service_gpu_memory = {.name = "gpu_memory"};
const pki_service pki_service_gpu_load = {.name = "gpu_load"};

uint64_t pki_events_spent(void)
{
    return 0;
}

double pki_events_bound(const pki_config *config)
{
    (void)config;
    return 0;
}

/* ---- the collector's own I/O ---- */

void pki_io_on_collector(void) {}

void pki_io_works(void) {}

void pki_io_rests(void) {}

/* ---- what backends tell ---- */

void pki_energy_of_gpu(unsigned ordinal, double joules, uint64_t when)
{
    (void)ordinal, (void)joules, (void)when;
}

void pki_energy_of_clocks(unsigned ordinal, const char *why)
{
    (void)ordinal, (void)why;
}

void pki_gpu_memory_do(const pki_gpu_operation *operation)
{
    (void)operation;
}

void pki_gpu_memory_pool(uint32_t device, uint64_t address, uint64_t size, uint64_t used, bool gone,
                         uint64_t ns)
{
    (void)device, (void)address, (void)size, (void)used, (void)gone, (void)ns;
}

void pki_gpu_memory_total(uint32_t device, uint64_t bytes)
{
    (void)device, (void)bytes;
}

void pki_gpu_memory_complete(uint64_t dropped, uint64_t lost)
{
    (void)dropped, (void)lost;
}

void pki_gpu_event(uint32_t device, const char *what, uint64_t number, const char *text,
                   uint64_t from, uint64_t to)
{
    (void)device, (void)what, (void)number, (void)text, (void)from, (void)to;
}

void pki_gpu_load_read(uint32_t device, uint64_t from, uint64_t to, const double values[PKI_LOADS])
{
    (void)device, (void)from, (void)to, (void)values;
}
