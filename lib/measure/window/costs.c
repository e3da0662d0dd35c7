#include "measure/window/costs.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "measure/memory/gpu.h"

bool pki_window_costs_more(const pki_window_costs *now, const pki_window_costs *before,
                           pki_window_costs *out)
{
    out->io = pki_io_sums_more(&now->io, &before->io);
    out->io.why_not = now->io.why_not ? strdup(now->io.why_not) : NULL;
    out->memory = now->memory;
    out->memory.looks -= before->memory.looks;
    out->memory.minor_faults -= before->memory.minor_faults;
    out->memory.major_faults -= before->memory.major_faults;
    out->goodput = now->goodput;
    return (out->io.why_not || !now->io.why_not) &&
           (!now->gpu_memory.asked ||
            pki_gpu_sums_more(&now->gpu_memory, &before->gpu_memory, &out->gpu_memory)) &&
           (!now->energy.asked || pki_energy_more(&now->energy, &before->energy, &out->energy));
}

static bool add_io(pki_io_summary *into, const pki_io_summary *more)
{
    char *why = more->why_not ? strdup(more->why_not) : NULL;
    pki_io_sums_add(into, more);
    if (!more->why_not)
        return true;
    free(into->why_not);
    into->why_not = why;
    return why;
}

/* A window in which nobody has looked knows nothing. */
static void add_memory(pki_memory_sum *into, const pki_memory_sum *more)
{
    if (!more->looks)
        return;
    into->looks += more->looks;
    into->resident = more->resident;
    into->most_resident = PKI_MAX(into->most_resident, more->most_resident);
    into->most_private = PKI_MAX(into->most_private, more->most_private);
    into->minor_faults += more->minor_faults;
    into->major_faults += more->major_faults;
}

bool pki_window_costs_add(pki_window_costs *into, const pki_window_costs *more)
{
    add_memory(&into->memory, &more->memory);
    if (more->goodput.up)
        into->goodput = more->goodput;
    return (!more->io.asked || add_io(&into->io, &more->io)) &&
           pki_gpu_sums_add(&into->gpu_memory, &more->gpu_memory) &&
           pki_energy_add(&into->energy, &more->energy);
}

static bool fill_memory(const pki_memory_sum *m, pki_memory_summary *out)
{
    if (!m->looks)
        return true;
    *out = (pki_memory_summary){.looks = m->looks,
                                .resident = m->resident,
                                .most_resident = m->most_resident,
                                .most_private = m->most_private,
                                .minor_faults = m->minor_faults,
                                .major_faults = m->major_faults,
                                .limit_of = strdup(""),
                                .allocator = strdup(""),
                                .uncounted = strdup("")};
    return out->limit_of && out->allocator && out->uncounted;
}

bool pki_window_costs_fill(const pki_window_costs *costs, pki_summary *out)
{
    out->io = costs->io;
    out->io.why_not = costs->io.asked ? strdup(costs->io.why_not ? costs->io.why_not : "") : NULL;
    out->goodput = costs->goodput;
    return (out->io.why_not || !costs->io.asked) && fill_memory(&costs->memory, &out->memory) &&
           pki_gpu_sums_summarise(&costs->gpu_memory, &out->gpu_memory) &&
           pki_energy_fill(&costs->energy, &out->energy);
}

void pki_window_costs_finish(pki_window_costs *costs)
{
    free(costs->io.why_not);
    pki_energy_sums_finish(&costs->energy);
    pki_gpu_sums_finish(&costs->gpu_memory);
    *costs = (pki_window_costs){0};
}
