/* lib/core/names.h - names of regions and counters, interned for the process's life */
#pragma once

#include <pk/counter.h>
#include <pk/region.h>

#include <stddef.h>
#include <stdint.h>

#include "stats/slot.h"

/* ---- names of regions and counters, interned for the process's life ---- */

/* A pk_region may lie in a plugin that is unloaded, and its name with it; so the first use copies
 * the name, and from then on only the id travels. Ids are dense, 1 .. 65535, never reused. Look-ups
 * take no lock; entries are published whole and never change. */

#define PKI_NAMES_MAX 65536
#define PKI_NAME_BYTES 255

enum {
    PKI_NAME_TOO_MANY = 1, /* shared by all that found no room */
    PKI_NAME_STEP = 2,     /* the steps' own distribution */
    PKI_NAME_FIRST = 3
};

typedef struct pki_name {
    uint32_t id;
    uint32_t kind; /* stats/slot.h */
    uint32_t hash;
    uint16_t length;     /* of name, bytes */
    uint16_t key_length; /* of key; for a counter, of its unit */
    uint32_t base;       /* of a variant: the id of what it is one of; 0: no variant */
    int64_t value;       /* of a variant */
    uint64_t place;      /* whose name it is, of PK_FUNCTION's; 0: nobody's. Atomic */
    uint64_t limit_ns;   /* how long a call may take (pk_region_set_limit); 0: not said. Atomic */
    union {
        pk_region region; /* what pk_region_named hands out */
        pk_counter counter;
    } handle;
    const char *name, *key; /* both end in NUL */
} pki_name;

/* The id for a static pk_region or pk_counter on first use. */
uint32_t pki_region_id(pk_region *region);
uint32_t pki_counter_id(pk_counter *counter);

/* The same without writing to the region, which may be constant and unused: 0 if nobody has used
 * the name. */
uint32_t pki_region_id_of(const pk_region *region);

/* The region of that name and kind, with a key and value that are its arguments in the trace; they
 * are those of the name's first use. */
pk_region *pki_region_tagged(pk_kind kind, const char *name, const char *key, int64_t value);

/* The id of a name that is no region's and no counter's. */
uint32_t pki_name_internal(const char *name, const char *key, int64_t value);

/* NULL for ids that were never given out. */
const pki_name *pki_name_at(uint32_t id);

/* What it is of; PK_OTHER for ids that were never given out. */
uint32_t pki_name_kind(uint32_t id);

/* How long a call of it may take, ns; 0: nobody has said. */
uint64_t pki_name_limit(uint32_t id);

/* Ids below this have been given out. */
uint32_t pki_name_count(void);

/* Called with each name that is not yet among those counted below, by the thread that interns it,
 * without locks. */
void pki_names_on_new(void (*called)(uint32_t id));

void pki_names_after_fork(void);
