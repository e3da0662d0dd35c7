#include "session/windows/metrics_costs.h"

#include <stdio.h>
#include <string.h>

#include "core/phase.h"
#include "session/report/cpu_side.h"
#include "session/costs/energy.h"
#include "session/job/goodput_account.h"
#include "session/costs/gpu_memory.h"
#include "session/costs/io.h"

static pki_phases last_known; /* the last time that they were */

void pki_metrics_costs_reset(void)
{
    memset(&last_known, 0, sizeof last_known);
}

/* Of the run, and of as many counters as there is room for. Under the fold lock. */
static void fill_energy(pki_metrics_costs *c)
{
    pki_energy_sums sums;
    bool known = pki_energy_so_far(&sums);
    for (size_t i = 0; known && i < sums.row_count && c->energy_count < PKI_METRICS_ENERGY; i++) {
        const pki_energy_sum *row = &sums.rows[i];
        pki_metrics_energy *out = &c->energy[c->energy_count];
        if (strcmp(row->step_kind, PKI_ENERGY_RUN) != 0)
            continue;
        snprintf(out->name, sizeof out->name, "%s", row->counter);
        out->microjoules = row->microjoules;
        c->energy_count++;
    }
    pki_energy_sums_finish(&sums);
}

/* The first ones; pinned memory has room of its own, as the last. */
static void fill_places(pki_metrics_costs *c)
{
    pki_gpu_memory_sums sums = {0};
    bool known = pki_gpu_memory_so_far(&sums);
    for (size_t i = 0; known && i < sums.place_count; i++) {
        const pki_gpu_memory_sum *s = &sums.places[i];
        size_t most = PKI_METRICS_PLACES - (s->place[0] != 'h');
        if (c->place_count >= most)
            continue;
        pki_metrics_place *p = &c->places[c->place_count++];
        snprintf(p->name, sizeof p->name, "%s", s->place);
        p->live = s->live;
        p->peak = s->peak_so_far;
        p->pool_reserved = s->pool_reserved;
        p->pool_used = s->pool_used;
    }
    pki_gpu_sums_finish(&sums);
}

static void fill_checkpoints(pki_metrics_costs *c)
{
    pki_phases phases = pki_phases_now();
    if (phases.known)
        last_known = phases;
    c->saves = last_known.saves;
    c->save_bytes = last_known.save_bytes;
    c->save_time = last_known.time[PK_PHASE_CHECKPOINT];
}

void pki_metrics_costs_fill(pki_metrics *m)
{
    pki_metrics_costs *c = &m->costs;
    c->io_known = pki_io_so_far(&c->io);
    fill_energy(c);
    fill_places(c);
    fill_checkpoints(c);
    pki_goodput_fill(m->wall, !m->running, &c->goodput);
    pki_cpu_side_switches(&c->forced, &c->own);
}

static bool is_of_place(const char *place, const char *counter)
{
    size_t length = strlen(place);
    if (strncmp(counter, place, length) != 0)
        return false;
    return strcmp(counter + length, ".allocated") == 0 ||
           strcmp(counter + length, ".pool_reserved") == 0;
}

/* What a step has of them, where metrics have sums. */
static bool is_of_files(const char *counter)
{
    static const char *const all[] = {"io.read",           "io.written",    "io.device_read",
                                      "io.device_written", "io.operations", "io.steps"};
    for (size_t i = 0; i < PKI_COUNT_OF(all); i++)
        if (strcmp(counter, all[i]) == 0)
            return true;
    return false;
}

bool pki_metrics_costs_have(const pki_metrics_costs *c, const char *counter)
{
    if (strcmp(counter, "memory.resident") == 0)
        return c->memory.looks;
    if (strcmp(counter, "memory.allocated") == 0)
        return c->allocated_known;
    if (is_of_files(counter))
        return c->io_known;
    bool pinned = strcmp(counter, "memory.pinned") == 0;
    for (size_t i = 0; i < c->place_count; i++) {
        const char *place = c->places[i].name;
        if (pinned ? strcmp(place, "host") == 0 : is_of_place(place, counter))
            return true;
    }
    return false;
}
