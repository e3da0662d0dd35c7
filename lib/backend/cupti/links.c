#include "backend/cupti/links.h"

#include <stdlib.h>

typedef struct table {
    pki_cupti_link *links;
    uint32_t room, count; /* room: 0 or a power of two */
} table;

static table young, old;

static uint32_t slot_of(const table *t, uint32_t correlation)
{
    uint32_t i = correlation * 2654435761u & (t->room - 1);
    while (t->links[i].correlation && t->links[i].correlation != correlation)
        i = (i + 1) & (t->room - 1);
    return i;
}

static pki_cupti_link *find(const table *t, uint32_t correlation)
{
    pki_cupti_link *l = t->room ? &t->links[slot_of(t, correlation)] : NULL;
    return l && l->correlation ? l : NULL;
}

static bool make_room(table *t)
{
    if (t->count < t->room / 2)
        return true;
    table more = {NULL, t->room ? 2 * t->room : 1024, t->count};
    more.links = more.room ? calloc(more.room, sizeof *more.links) : NULL;
    if (!more.links)
        return t->count + 1 < t->room; /* slower, as long as there is a free place */
    for (uint32_t i = 0; i < t->room; i++)
        if (t->links[i].correlation)
            more.links[slot_of(&more, t->links[i].correlation)] = t->links[i];
    free(t->links);
    *t = more;
    return true;
}

pki_cupti_link *pki_cupti_link_at(uint32_t correlation)
{
    pki_cupti_link *l = correlation ? find(&young, correlation) : NULL;
    if (l || !correlation || !make_room(&young))
        return l;
    const pki_cupti_link *before = find(&old, correlation);
    l = &young.links[slot_of(&young, correlation)];
    if (before)
        *l = *before;
    l->correlation = correlation;
    young.count++;
    return l;
}

static void retain(const pki_cupti_link *l)
{
    if (l->age >= PKI_CUPTI_LINK_AGES || find(&old, l->correlation))
        return;
    pki_cupti_link *kept = pki_cupti_link_at(l->correlation);
    if (!kept)
        return;
    *kept = *l;
    kept->age++;
}

void pki_cupti_links_age(void)
{
    table oldest = old;
    old = young;
    young = (table){NULL, 0, 0};
    for (uint32_t i = 0; i < oldest.room; i++)
        if (oldest.links[i].correlation && oldest.links[i].launches && !oldest.links[i].on_device)
            retain(&oldest.links[i]);
    free(oldest.links);
}

void pki_cupti_links_forget(void)
{
    free(young.links);
    free(old.links);
    pki_cupti_links_after_fork();
}

void pki_cupti_links_after_fork(void)
{
    young = old = (table){NULL, 0, 0};
}
