#include "measure/costs/energy.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

void pki_energy_begin(pki_energy_account *a)
{
    memset(a, 0, sizeof *a);
    a->kind_count = 1;
    a->last_kind = -1;
}

int pki_energy_counter_of(pki_energy_account *a, const char *name, double range)
{
    for (size_t i = 0; i < a->count; i++)
        if (strncmp(a->counters[i].name, name, sizeof a->counters[i].name - 1) == 0)
            return (int)i;
    if (a->count == PKI_ENERGY_COUNTERS)
        return -1;
    pki_energy_counter *c = &a->counters[a->count];
    snprintf(c->name, sizeof c->name, "%s", name);
    c->range = range;
    return (int)a->count++;
}

/* J since the reading before; below 0: unknown. */
static double grown(pki_energy_counter *c, double joules)
{
    double more = joules - c->last;
    if (more >= 0)
        return more;
    if (c->range > 0 && c->last > c->range / 2 && joules <= c->range / 2)
        return more + c->range;
    c->resets++;
    return -1;
}

void pki_energy_read(pki_energy_account *a, int counter, double joules, uint64_t now)
{
    if (counter < 0 || (size_t)counter >= a->count)
        return;
    pki_energy_counter *c = &a->counters[counter];
    double more = c->begun ? grown(c, joules) : 0;
    if (!c->begun)
        c->since = now;
    c->fresh += PKI_MAX(more, 0);
    if (c->begun && more >= 0 && now > c->at) {
        double watts = more * 1e9 / (double)(now - c->at);
        c->joules += more;
        c->lowest = c->readings > 1 ? PKI_MIN(c->lowest, watts) : watts;
        c->highest = PKI_MAX(c->highest, watts);
    }
    c->begun = true;
    c->last = joules;
    c->at = now;
    c->readings++;
}

static size_t kind_of(pki_energy_account *a, const char *kind)
{
    size_t i = 1;
    if (!kind)
        return 0;
    while (i < a->kind_count && strncmp(a->kinds[i], kind, sizeof a->kinds[i] - 1) != 0)
        i++;
    if (i == a->kind_count && i < PKI_ENERGY_KINDS)
        snprintf(a->kinds[a->kind_count++], sizeof a->kinds[0], "%s", kind);
    return PKI_MIN(i, PKI_ENERGY_KINDS - 1u);
}

void pki_energy_step(pki_energy_account *a, const char *kind, uint64_t start, uint64_t end,
                     uint64_t items)
{
    size_t k = kind_of(a, kind);
    a->stretches[k] += a->last_kind != (int)k || start != a->last_end;
    a->last_kind = (int)k;
    a->last_end = end;
    if (k == 0) {
        *(a->held_in_step ? &a->held_steps : &a->free_steps) += 1;
        *(a->held_in_step ? &a->held_time : &a->free_time) += pki_saturating_sub(end, start);
    }
    a->held_in_step = a->held != 0;
    a->steps[k]++;
    a->items[k] += items;
    a->time[k] += pki_saturating_sub(end, start);
    a->pending[k] += pki_saturating_sub(end, start);
}

void pki_energy_held(pki_energy_account *a, unsigned gpu, const char *why)
{
    uint32_t bit = 1u << gpu % 32;
    a->held = why ? a->held | bit : a->held & ~bit;
    a->held_in_step |= why != NULL;
    if (why && !*a->held_by)
        snprintf(a->held_by, sizeof a->held_by, "%s", why);
}

void pki_energy_round(pki_energy_account *a, uint64_t now)
{
    double window = (double)(now - a->round_at), all = 0;
    for (size_t k = 0; k < a->kind_count; k++)
        all += (double)a->pending[k];
    window = PKI_MAX(window, all); /* a step that ends has begun before */
    for (size_t i = 0; i < a->count; i++) {
        for (size_t k = 0; k < a->kind_count && window > 0 && a->round_at; k++)
            a->counters[i].kinds[k] += a->counters[i].fresh * (double)a->pending[k] / window;
        a->counters[i].fresh = 0;
    }
    memset(a->pending, 0, sizeof a->pending);
    a->round_at = now;
}
