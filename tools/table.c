#include "table.h"

#include "base/text.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64u

void table_finish(table *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->texts[i]);
    free(t->texts);
    free(t->slot);
    *t = (table){0};
}

/* Where the text is, or where it would go. Files come from whoever made them, and the worst that
 * they can do is to make this slow. */
static uint32_t slot_of(const table *t, const char *text)
{
    uint32_t place = pki_hash(text, strlen(text), 0) & (t->slots - 1);
    while (t->slot[place] && strcmp(t->texts[t->slot[place] - 1], text) != 0)
        place = (place + 1) & (t->slots - 1);
    return place;
}

uint32_t table_find(const table *t, const char *text)
{
    if (t->slots == 0)
        return TABLE_NONE;
    return t->slot[slot_of(t, text)] - 1;
}

static void grow_slots(table *t)
{
    table bigger = *t;
    bigger.slots = t->slots ? 2 * t->slots : FIRST_SLOTS;
    bigger.slot = memory_zeroed(bigger.slots, sizeof *bigger.slot);
    for (uint32_t i = 0; i < t->count; i++)
        bigger.slot[slot_of(&bigger, t->texts[i])] = i + 1;
    free(t->slot);
    *t = bigger;
}

uint32_t table_add(table *t, const char *text)
{
    uint32_t found = table_find(t, text);
    if (found != TABLE_NONE)
        return found;
    if (2 * (t->count + 1) > t->slots)
        grow_slots(t);
    memory_fit(&t->texts, &t->text_room, t->count + (size_t)1, sizeof *t->texts);
    t->texts[t->count] = memory_copy(text);
    t->slot[slot_of(t, text)] = t->count + 1;
    return t->count++;
}
