#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* ---- a map ---- */

#define FIRST_PLACES 64u

uint32_t pki_map_find(const pki_map *map, uint32_t hash, pki_map_is *is, const void *entries,
                      const void *sought)
{
    uint32_t last = map->places - 1;
    for (uint32_t i = hash & last; map->places && map->place[i].number; i = (i + 1) & last)
        if (map->place[i].hash == hash && is(entries, map->place[i].number - 1, sought))
            return map->place[i].number - 1;
    return PKI_MAP_NONE;
}

static void put(pki_map *map, pki_map_place place)
{
    uint32_t last = map->places - 1, i = place.hash & last;
    while (map->place[i].number)
        i = (i + 1) & last;
    map->place[i] = place;
    map->used++;
}

static bool grow(pki_map *map)
{
    pki_map bigger = {.places = map->places ? 2 * map->places : FIRST_PLACES};
    bigger.place = calloc(bigger.places, sizeof *bigger.place);
    if (!bigger.place)
        return false;
    for (uint32_t i = 0; i < map->places; i++)
        if (map->place[i].number)
            put(&bigger, map->place[i]);
    free(map->place);
    *map = bigger;
    return true;
}

bool pki_map_put(pki_map *map, uint32_t hash, uint32_t number)
{
    if (2 * (map->used + (uint64_t)1) > map->places && !grow(map))
        return false;
    put(map, (pki_map_place){hash, number + 1});
    return true;
}

void pki_map_finish(pki_map *map)
{
    free(map->place);
    *map = (pki_map){0};
}

/* ---- numbers for texts ---- */

void pki_texts_finish(pki_texts *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->texts[i]);
    free(t->texts);
    pki_map_finish(&t->map);
    *t = (pki_texts){0};
}

static uint32_t hash_of(const char *text)
{
    return pki_hash(text, strlen(text), 0);
}

static bool is(const void *texts, uint32_t number, const void *sought)
{
    return strcmp(((char *const *)texts)[number], sought) == 0;
}

uint32_t pki_texts_find(const pki_texts *t, const char *text)
{
    return pki_map_find(&t->map, hash_of(text), is, t->texts, text);
}

uint32_t pki_texts_add(pki_texts *t, const char *text)
{
    uint32_t found = pki_texts_find(t, text);
    if (found != PKI_TEXTS_NONE)
        return found;
    if (!pki_array_fit(&t->texts, &t->text_room, t->count + (size_t)1, sizeof *t->texts))
        return PKI_TEXTS_NONE;
    char *copy = strdup(text);
    if (!copy || !pki_map_put(&t->map, hash_of(text), t->count)) {
        free(copy);
        return PKI_TEXTS_NONE;
    }
    t->texts[t->count] = copy;
    return t->count++;
}
