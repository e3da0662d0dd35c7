#include "rows/order.h"

#include "memory.h"
#include "rows/layout.h"

#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define SIGN (UINT64_C(1) << 63)

/* What makes keys of cells: texts by their places in the alphabet. */
typedef struct keys {
    rows *r;
    uint32_t *ranks; /* of names */
} keys;

static int by_text(const void *a, const void *b, void *user)
{
    char **texts = user;
    return strcmp(texts[*(const uint32_t *)a], texts[*(const uint32_t *)b]);
}

static uint32_t *rank_names(const rows *r)
{
    uint32_t count = r->names.count;
    uint32_t *sorted = memory_zeroed(count, sizeof *sorted);
    uint32_t *ranks = memory_zeroed(count, sizeof *ranks);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = i;
    qsort_r(sorted, count, sizeof *sorted, by_text, r->names.texts);
    for (uint32_t i = 0; i < count; i++)
        ranks[sorted[i]] = i + 1;
    free(sorted);
    return ranks;
}

static uint64_t key_of_real(double value)
{
    uint64_t bits;
    value += 0.0; /* -0 is 0 */
    memcpy(&bits, &value, sizeof bits);
    return bits & SIGN ? ~bits : bits | SIGN;
}

/* Kinds are few and not among the names; twice as far apart, so that what is none lies between. */
static uint64_t key_of_kind(const char *text)
{
    uint64_t key = 1;
    for (size_t i = 0; i < PKI_SHARES; i++) {
        int apart = strcmp(pki_kind_names[i], text);
        key += (uint64_t)(apart < 0) + (apart <= 0);
    }
    return key;
}

static uint64_t key_of_text(const keys *k, const char *text)
{
    uint32_t id = table_find(&k->r->names, text);
    return id == TABLE_NONE ? 0 : k->ranks[id];
}

static uint64_t key_of(const keys *k, const cell *c, bool kind)
{
    switch (c->type) {
    case CELL_INTEGER:
        return (uint64_t)c->integer ^ SIGN;
    case CELL_REAL:
        return key_of_real(c->real);
    case CELL_TEXT:
        return kind ? key_of_kind(c->text) : key_of_text(k, c->text);
    default:
        return 0;
    }
}

static bool is_kind(rows_table of, unsigned column)
{
    uint8_t form = rows_about_table(of)->columns[column].form;
    return form == FORM_KIND || form == FORM_REGION_KIND;
}

/* Neighbours often have the same name: asking for its number again is spared. */
static void fill_keys(const keys *k, rows_table of, unsigned column, uint64_t *out, size_t count)
{
    bool kind = is_kind(of, column);
    const char *last = NULL;
    uint64_t last_key = 0;
    for (size_t i = 0; i < count; i++) {
        cell c = rows_cell(k->r, of, i, column);
        bool again = c.type == CELL_TEXT && c.text == last;
        out[i] = again ? last_key : key_of(k, &c, kind);
        last = c.type == CELL_TEXT ? c.text : NULL;
        last_key = out[i];
    }
}

/* ---- radix ---- */

static void sort_by_digit(const uint64_t *key, unsigned shift, const uint32_t *from, uint32_t *to,
                          size_t count)
{
    static size_t starts[DIGITS];
    memset(starts, 0, sizeof starts);
    for (size_t i = 0; i < count; i++)
        starts[key[i] >> shift & (DIGITS - 1)]++;
    size_t sum = 0;
    for (unsigned d = 0; d < DIGITS; d++) {
        size_t here = starts[d];
        starts[d] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[key[from[i]] >> shift & (DIGITS - 1)]++] = from[i];
}

/* Stable; only by digits that differ. */
static void sort_by(const uint64_t *key, uint32_t **places, uint32_t **spare, size_t count)
{
    uint64_t differs = 0;
    for (size_t i = 1; i < count; i++)
        differs |= key[i] ^ key[0];
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!(differs >> shift & (DIGITS - 1)))
            continue;
        sort_by_digit(key, shift, *places, *spare, count);
        uint32_t *sorted = *spare;
        *spare = *places;
        *places = sorted;
    }
}

static void sort_all(order *o, const keys *k, uint32_t **spare)
{
    for (unsigned c = o->by.count; c-- > 0;) {
        fill_keys(k, o->by.of, o->by.columns[c], o->keys, o->count);
        for (size_t i = 0; o->by.descending[c] && i < o->count; i++)
            o->keys[i] = ~o->keys[i];
        sort_by(o->keys, &o->places, spare, o->count);
    }
}

bool order_make(order *o, rows *r, const order_by *by)
{
    size_t count = (size_t)rows_count(r, by->of);
    *o = (order){.by = *by, .count = count};
    if (count >= UINT32_MAX)
        return false;
    o->places = memory_zeroed(count, sizeof *o->places);
    o->keys = memory_zeroed(count, sizeof *o->keys);
    o->ranks = rank_names(r);
    uint32_t *spare = memory_zeroed(count, sizeof *spare);
    for (size_t i = 0; i < count; i++)
        o->places[i] = (uint32_t)i;
    sort_all(o, &(keys){r, o->ranks}, &spare);
    free(spare);
    return true;
}

void order_finish(order *o)
{
    free(o->places);
    free(o->keys);
    free(o->ranks);
    *o = (order){0};
}

/* ---- search ---- */

/* A name that no row has stands nowhere. */
static bool key_to_find(const order *o, rows *r, const cell *value, uint64_t *key)
{
    keys k = {.r = r, .ranks = o->ranks};
    bool kind = is_kind(o->by.of, o->by.columns[0]);
    if (value->type == CELL_NULL)
        return false;
    if (value->type == CELL_TEXT && !kind && table_find(&r->names, value->text) == TABLE_NONE)
        return false;
    *key = key_of(&k, value, kind);
    return true;
}

static size_t first_from(const order *o, uint64_t key, size_t low)
{
    size_t high = o->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->keys[o->places[middle]] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void order_find(const order *o, rows *r, const cell *value, size_t *first, size_t *end)
{
    uint64_t key;
    *first = *end = 0;
    if (!key_to_find(o, r, value, &key))
        return;
    *first = first_from(o, key, 0);
    *end = first_from(o, key + 1, *first);
}
