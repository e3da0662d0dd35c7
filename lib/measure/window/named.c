#include "measure/window/named.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* FNV-1a */
static uint32_t hash_of(const char *name, uint32_t kind)
{
    uint32_t hash = 2166136261u ^ kind;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

/* Where it stands, or would. */
static size_t slot_of(const pki_named *n, const char *name, uint32_t kind)
{
    size_t at = hash_of(name, kind) & (n->places - 1);
    while (n->numbers[at]) {
        const pki_named_name *there = &n->names[n->numbers[at] - 1];
        if (there->kind == kind && strcmp(there->name, name) == 0)
            break;
        at = (at + 1) & (n->places - 1);
    }
    return at;
}

static bool grow(pki_named *n)
{
    pki_named larger = *n;
    if (2 * (n->count + 1) <= n->places)
        return true;
    larger.places = n->places ? 2 * n->places : 64;
    larger.numbers = calloc(larger.places, sizeof *larger.numbers);
    if (!larger.numbers)
        return false;
    for (size_t i = 0; i < n->count; i++)
        larger.numbers[slot_of(&larger, n->names[i].name, n->names[i].kind)] = (uint32_t)i + 1;
    free(n->numbers);
    *n = larger;
    return true;
}

uint32_t pki_named_find(pki_named *n, const char *name, uint32_t kind)
{
    if (!grow(n))
        return UINT32_MAX;
    size_t at = slot_of(n, name, kind);
    if (n->numbers[at])
        return n->numbers[at] - 1;
    if (!pki_array_fit(&n->names, &n->room, n->count + 1, sizeof *n->names))
        return UINT32_MAX;
    char *copy = strdup(name);
    if (!copy)
        return UINT32_MAX;
    n->names[n->count] = (pki_named_name){copy, kind};
    n->numbers[at] = (uint32_t)++n->count;
    return (uint32_t)n->count - 1;
}

void pki_named_finish(pki_named *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->names[i].name);
    free(n->names);
    free(n->numbers);
    *n = (pki_named){0};
}
