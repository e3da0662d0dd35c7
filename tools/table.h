/* tools/table.h - numbers for texts, for a command: there is memory, or the command ends. */
#pragma once

#include "base/map.h"
#include "base/text.h"
#include "memory.h"

typedef pki_texts table;

#define TABLE_NONE PKI_TEXTS_NONE

static inline void table_finish(table *t)
{
    pki_texts_finish(t);
}

/* The text's number, TABLE_NONE if it is not there. */
static inline uint32_t table_find(const table *t, const char *text)
{
    return pki_texts_find(t, text);
}

/* The same, new if need be (then it is t->count - 1). */
static inline uint32_t table_add(table *t, const char *text)
{
    uint32_t at = pki_texts_add(t, text);
    memory_needed(at != PKI_TEXTS_NONE);
    return at;
}
