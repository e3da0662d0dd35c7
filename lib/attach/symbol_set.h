/* lib/attach/symbol_set.h - sets of symbols by their numbers, 0 to 255 (repeats.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct symbol_set {
    uint64_t word[4];
} symbol_set;

static inline void set_add(symbol_set *set, uint32_t number)
{
    set->word[number / 64] |= UINT64_C(1) << number % 64;
}

static inline bool set_has(const symbol_set *set, uint32_t number)
{
    return set->word[number / 64] >> number % 64 & 1;
}

static inline bool set_within(const symbol_set *inner, const symbol_set *outer)
{
    uint64_t rest = 0;
    for (int i = 0; i < 4; i++)
        rest |= inner->word[i] & ~outer->word[i];
    return !rest;
}

static inline void set_join(symbol_set *to, const symbol_set *more)
{
    for (int i = 0; i < 4; i++)
        to->word[i] |= more->word[i];
}

static inline int set_size(const symbol_set *set)
{
    int size = 0;
    for (int i = 0; i < 4; i++)
        size += __builtin_popcountll(set->word[i]);
    return size;
}

static inline bool set_equal(const symbol_set *a, const symbol_set *b)
{
    return !memcmp(a, b, sizeof *a);
}
