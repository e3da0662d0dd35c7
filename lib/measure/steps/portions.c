#include "measure/steps/portions.h"

#include <string.h>

#include "base/compiler.h"

void pki_portions_expect(pki_portions *p, uint64_t every)
{
    if (p->every == every)
        return;
    *p = (pki_portions){.every = every};
}

/* One in which no usual step was is none. */
static void close_portion(pki_portions *p)
{
    if (p->open && p->now.steps) {
        if (p->count == PKI_PORTIONS_KEPT)
            memmove(p->whole, p->whole + 1, --p->count * sizeof *p->whole);
        p->whole[p->count++] = p->now;
    }
    p->open = false;
}

void pki_portions_reach(pki_portions *p, uint64_t index)
{
    if (!p->every || (p->open && p->now.number == index / p->every))
        return;
    close_portion(p);
    p->now = (pki_portion){.number = index / p->every};
    p->open = true;
}

static size_t index_of_stage(pki_portions *p, uint32_t id, uint32_t kind)
{
    for (size_t i = 0; i < p->stage_count; i++)
        if (p->ids[i] == id)
            return i;
    if (p->stage_count == PKI_PORTION_OWN)
        return kind == PK_COMM || kind == PK_WAIT ? PKI_PORTION_WAITS : PKI_PORTION_OWN;
    p->ids[p->stage_count] = id;
    p->kinds[p->stage_count] = kind;
    return p->stage_count++;
}

void pki_portions_add_self(pki_portions *p, uint32_t id, uint32_t kind, uint64_t self)
{
    if (p->every)
        p->now.selves[index_of_stage(p, id, kind)] += self;
}

void pki_portions_add(pki_portions *p, const pki_stage_block *step)
{
    if (!p->every)
        return;
    p->now.steps += step->steps;
    p->now.time += step->time;
    p->now.items += step->items;
    p->now.no_processor += step->no_processor;
    p->now.told += step->told;
    pki_seats_join(&p->now.seats, &step->seats);
    if ((step->index + 1) % p->every == 0)
        close_portion(p);
}

bool pki_portions_pop(pki_portions *p, pki_portion *out)
{
    if (!p->count)
        return false;
    *out = p->whole[0];
    memmove(p->whole, p->whole + 1, --p->count * sizeof *p->whole);
    return true;
}
