#include "table.h"

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

/* FNV-1a; files come from whoever made them, and the worst that they can do is to make this slow.
 * */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

/* Where the text is, or where it would go. */
static uint32_t place_of(const table *t, const char *text)
{
    uint32_t place = hash_of(text) & (t->slots - 1);
    while (t->slot[place] && strcmp(t->texts[t->slot[place] - 1], text) != 0)
        place = (place + 1) & (t->slots - 1);
    return place;
}

uint32_t table_find(const table *t, const char *text)
{
    if (t->slots == 0)
        return TABLE_NONE;
    return t->slot[place_of(t, text)] - 1;
}

static bool grow_slots(table *t)
{
    table bigger = *t;
    bigger.slots = t->slots ? 2 * t->slots : FIRST_SLOTS;
    bigger.slot = calloc(bigger.slots, sizeof *bigger.slot);
    if (!bigger.slot)
        return false;
    for (uint32_t i = 0; i < t->count; i++)
        bigger.slot[place_of(&bigger, t->texts[i])] = i + 1;
    free(t->slot);
    *t = bigger;
    return true;
}

static bool grow_texts(table *t)
{
    uint32_t room = t->text_room ? 2 * t->text_room : FIRST_SLOTS / 2;
    char **grown = realloc(t->texts, room * sizeof(char *));
    if (!grown)
        return false;
    t->texts = grown;
    t->text_room = room;
    return true;
}

uint32_t table_add(table *t, const char *text)
{
    uint32_t found = table_find(t, text);
    if (found != TABLE_NONE)
        return found;
    if (2 * (t->count + 1) > t->slots && !grow_slots(t))
        return TABLE_NONE;
    if (t->count == t->text_room && !grow_texts(t))
        return TABLE_NONE;
    char *copy = strdup(text);
    if (!copy)
        return TABLE_NONE;
    t->slot[place_of(t, copy)] = t->count + 1;
    t->texts[t->count] = copy;
    return t->count++;
}
