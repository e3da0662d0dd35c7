#include "read/read_shape.h"

#include <stdlib.h>
#include <string.h>

static void read_text(json_reader *j, json_t *from, const char *key, char *at)
{
    char *text;
    memcpy(&text, at, sizeof text);
    json_read_text(j, from, key, &text);
    memcpy(at, &text, sizeof text);
}

static void read_hex(json_reader *j, json_t *from, const char *key, char *at)
{
    char *text = NULL;
    json_read_text(j, from, key, &text);
    uint64_t value = text ? strtoull(text, NULL, 16) : 0;
    memcpy(at, &value, sizeof value);
    free(text);
}

static void read_choice(json_reader *j, json_t *from, const pki_member *m, char *at)
{
    char *text = NULL;
    json_read_text(j, from, m->key, &text);
    uint32_t found = 0;
    while (found < m->choice->count && (!text || strcmp(text, m->choice->name(found)) != 0))
        found++;
    found = found < m->choice->count ? found : m->choice->other;
    memcpy(at, &found, sizeof found);
    free(text);
}

static void read_keyed(json_reader *j, json_t *from, const pki_member *m, char *at)
{
    json_t *object = json_read_object(j, from, m->key);
    size_t size = m->shape ? m->shape->size : sizeof(uint64_t);
    for (size_t i = 0; i < m->count; i++, at += size)
        if (m->shape)
            read_shape(j, json_read_object(j, object, m->keys[i]), m->shape, at);
        else
            json_read_uint(j, object, m->keys[i], (uint64_t *)(void *)at);
}

/* Every row is read, whatever has failed before: none is without its strings. */
static void read_rows(json_reader *j, json_t *from, const pki_member *m, char *object)
{
    size_t count;
    char *rows = json_read_rows(j, from, m->key, m->shape->size, &count);
    for (size_t i = 0; i < count; i++)
        read_shape(j, json_array_get(json_object_get(from, m->key), i), m->shape,
                   rows + i * m->shape->size);
    memcpy(object + m->offset, &rows, sizeof rows);
    memcpy(object + m->count, &count, sizeof count);
}

/* An array of numbers as the object that it stands for. NULL if jansson gets no memory for it. */
static json_t *named(json_t *numbers, const pki_shape *shape)
{
    json_t *object = json_object();
    for (size_t i = 0; object && i < shape->count; i++)
        if (json_object_set(object, shape->members[i].key, json_array_get(numbers, i))) {
            json_decref(object);
            return NULL;
        }
    return object;
}

static void read_table(json_reader *j, json_t *from, const pki_member *m, char *object)
{
    size_t count;
    char *rows = json_read_tuples(j, from, m->key, m->shape->size, m->shape->count, &count);
    for (size_t i = 0; i < count && !j->failed; i++) {
        json_t *row = named(json_array_get(json_object_get(from, m->key), i), m->shape);
        if (row)
            read_shape(j, row, m->shape, rows + i * m->shape->size);
        else
            j->failed = !complaint_set(j->why, "out of memory");
        json_decref(row);
    }
    memcpy(object + m->offset, &rows, sizeof rows);
    memcpy(object + m->count, &count, sizeof count);
}

static void read_numbers(json_reader *j, json_t *from, const pki_member *m, char *object)
{
    json_t *all = json_read_array(j, from, m->key);
    size_t count = json_array_size(all);
    uint64_t *numbers = calloc(count ? count : 1, sizeof *numbers);
    if (!numbers) {
        j->failed = !complaint_set(j->why, "out of memory");
        count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        json_int_t n = json_integer_value(json_array_get(all, i));
        numbers[i] = n > 0 ? (uint64_t)n : 0;
    }
    memcpy(object + m->offset, &numbers, sizeof numbers);
    memcpy(object + m->count, &count, sizeof count);
}

static void read_number(json_reader *j, json_t *from, const pki_member *m, void *at)
{
    switch (m->type) {
    case PKI_UINT:
        json_read_uint(j, from, m->key, at);
        break;
    case PKI_U32:
        json_read_u32(j, from, m->key, at);
        break;
    case PKI_I32:
        json_read_i32(j, from, m->key, at);
        break;
    default: /* PKI_REAL */
        json_read_real(j, from, m->key, at);
        break;
    }
}

static void read_member(json_reader *j, json_t *from, const pki_member *m, char *object)
{
    char *at = object + m->offset;
    switch (m->type) {
    case PKI_TEXT:
        read_text(j, from, m->key, at);
        break;
    case PKI_BOOL:
        json_read_bool(j, from, m->key, (bool *)at);
        break;
    case PKI_HEX:
        read_hex(j, from, m->key, at);
        break;
    case PKI_CHOICE:
        read_choice(j, from, m, at);
        break;
    case PKI_OBJECT:
        read_shape(j, json_read_object(j, from, m->key), m->shape, at);
        break;
    case PKI_KEYED:
        read_keyed(j, from, m, at);
        break;
    case PKI_ROWS:
        read_rows(j, from, m, object);
        break;
    case PKI_TABLE:
        read_table(j, from, m, object);
        break;
    case PKI_NUMBERS:
        read_numbers(j, from, m, object);
        break;
    default:
        read_number(j, from, m, at);
        break;
    }
}

void read_shape(json_reader *j, json_t *from, const pki_shape *shape, void *object)
{
    for (size_t i = 0; i < shape->count; i++)
        read_member(j, from, &shape->members[i], object);
}
