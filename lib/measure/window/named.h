/* lib/measure/window/named.h - numbers for names of a kind, in the order in which they come. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pki_named_name {
    char *name;
    uint32_t kind;
} pki_named_name;

/* All zero is empty. */
typedef struct pki_named {
    size_t count, room;
    pki_named_name *names; /* by number */
    size_t places;         /* of the hash table, a power of two */
    uint32_t *numbers;     /* from 1; 0: a free place */
} pki_named;

/* Its number, a new one if need be. UINT32_MAX without memory. */
uint32_t pki_named_find(pki_named *named, const char *name, uint32_t kind);

void pki_named_finish(pki_named *named);
