/* lib/out/salvage_head.c - what a killed run's trace says of the run. */
#include <stdio.h>

#include "core/registry.h"
#include "out/salvage.h"

static void settle_counts(const pki_salvage *s, pk_counts *c)
{
    *c = s->counts;
    c->recorded = c->begun - PKI_MIN(c->dropped, c->begun); /* the rest is in the trace now */
    c->threads = (uint32_t)PKI_MIN(s->header->joined, UINT32_MAX);
    c->written = s->commit.events;
    c->unwritten = s->commit.unwritten;
    for (uint32_t id = PKI_NAME_FIRST; id < PKI_NAMES_MAX; id++)
        c->regions += s->names[id] && s->names[id]->kind <= PK_WAIT;
}

size_t pki_salvage_head(const pki_salvage *s, char out[PKI_HEAD_BYTES])
{
    const pki_arena_header *h = s->header;
    const pki_clock_map *clock = &h->clock;
    char host[sizeof h->host + 1], program[sizeof h->program + 1], id[sizeof h->clock_id + 1];
    char job[sizeof h->job + 1];
    snprintf(host, sizeof host, "%.*s", (int)sizeof h->host, h->host);
    snprintf(program, sizeof program, "%.*s", (int)sizeof h->program, h->program);
    snprintf(id, sizeof id, "%.*s", (int)sizeof h->clock_id, h->clock_id);
    snprintf(job, sizeof job, "%.*s", (int)sizeof h->job, h->job);
    pki_chrome_run run = {.host = host,
                          .program = program,
                          .rank = h->rank,
                          .world_size = h->world_size,
                          .local_rank = h->local_rank,
                          .local_size = h->local_size,
                          .node = h->node,
                          .job = job,
                          .start_unix = h->start_unix,
                          .base_ns = clock->origin_ns,
                          .clock_id = id,
                          .clock_name = clock->monotonic ? "monotonic" : PKI_CYCLE_COUNTER_NAME,
                          .clock_hz = pki_clock_hz(clock),
                          .clock_step_ns = (double)clock->step_ticks * pki_clock_unit_ns(clock),
                          .clock_uncertainty_ns = (double)clock->uncertainty_ns,
                          .clock_ppm = pki_clock_ppm(clock),
                          .toll = h->toll};
    settle_counts(s, &run.counts);
    return pki_chrome_head(&s->chrome, out, &run);
}
