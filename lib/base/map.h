/* lib/base/map.h - which of a caller's entries is the one that is sought; numbers for texts */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- a map ---- */

/* The caller keeps the entries, in an array or however, and gives each a number; the map knows
 * numbers and hashes. No entry leaves it. All zero: it is empty. Threads: one at a time. */

typedef struct pki_map_place {
    uint32_t hash;
    uint32_t number; /* + 1; 0: free */
} pki_map_place;

typedef struct pki_map {
    uint32_t used, places; /* a power of two, or 0 */
    pki_map_place *place;
} pki_map;

#define PKI_MAP_NONE UINT32_MAX

/* Is it the entry of this number? Asked of those with the same hash. */
typedef bool pki_map_is(const void *entries, uint32_t number, const void *sought);

/* PKI_MAP_NONE: it is not there. Entries may come from whoever made a file, and the worst that they
 * can do is to make this slow. */
uint32_t pki_map_find(const pki_map *map, uint32_t hash, pki_map_is *is, const void *entries,
                      const void *sought);

/* One that is not there. False without memory: nothing has changed. */
bool pki_map_put(pki_map *map, uint32_t hash, uint32_t number);

void pki_map_finish(pki_map *map);

/* A hash of two words. */
static inline uint32_t pki_map_hash(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ b * UINT64_C(0xC2B2AE3D27D4EB4F)) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(hash >> 32);
}

/* ---- numbers for texts: the n-th different text gets n, from 0 ---- */

#define PKI_TEXTS_NONE PKI_MAP_NONE

/* All zero: there are none. */
typedef struct pki_texts {
    uint32_t count;
    char **texts; /* by number */
    size_t text_room;
    pki_map map;
} pki_texts;

void pki_texts_finish(pki_texts *t);

/* The text's number, PKI_TEXTS_NONE if it is not there. */
uint32_t pki_texts_find(const pki_texts *t, const char *text);

/* The same, new if need be (then it is t->count - 1). PKI_TEXTS_NONE without memory: nothing has
 * changed. */
uint32_t pki_texts_add(pki_texts *t, const char *text);
