#include "read/scan.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

static inline void read_number(scan *s, const pki_member *m, char *at)
{
    uint64_t n;
    uint32_t u32;
    int32_t i32;
    double real;
    bool negative;
    switch (m->type) {
    case PKI_UINT:
        n = token_uint(s);
        memcpy(at, &n, sizeof n);
        break;
    case PKI_U32:
        u32 = (uint32_t)token_uint(s);
        memcpy(at, &u32, sizeof u32);
        break;
    case PKI_I32:
        negative = token_accept(s, '-');
        i32 = (int32_t)(token_uint(s) & INT32_MAX);
        i32 = negative ? -i32 : i32;
        memcpy(at, &i32, sizeof i32);
        break;
    default:
        real = token_real(s);
        memcpy(at, &real, sizeof real);
        break;
    }
}

/* ---- members ---- */

static inline bool begins_element(scan *s, size_t count)
{
    return !token_accept(s, ']') && (count == 0 || token_expect(s, ',')) && !s->failed;
}

#define ROWS_AT_FIRST 8

/* Each time much wider: what has been read is moved then, and is most of what there is to do. */
static void *wider(void *rows, size_t *room, size_t size)
{
    *room = *room ? 4 * *room : ROWS_AT_FIRST;
    memory_needed(*room <= SIZE_MAX / 4 / size);
    return memory_resized(rows, *room * size);
}

/* One more, of zeros. */
static inline char *add_row(char **rows, size_t *room, size_t count, size_t size)
{
    if (count == *room)
        *rows = wider(*rows, room, size);
    return memset(*rows + count * size, 0, size);
}

/* Without the room for more. */
static void put_rows(const pki_member *m, char *object, void *rows, size_t count, size_t size)
{
    rows = count ? memory_resized(rows, count * size) : memory_zeroed(1, 1);
    memcpy(object + m->offset, &rows, sizeof rows);
    memcpy(object + m->count, &count, sizeof count);
}

static void read_rows(scan *s, const pki_member *m, char *object)
{
    char *rows = NULL;
    size_t count = 0, room = 0;
    token_expect(s, '[');
    for (; begins_element(s, count); count++)
        scan_object(s, m->shape, add_row(&rows, &room, count, m->shape->size));
    put_rows(m, object, rows, count, m->shape->size);
}

/* Later versions may have more numbers in a row. */
static void read_tuple(scan *s, const pki_shape *shape, char *row)
{
    size_t i = 0;
    token_expect(s, '[');
    for (; begins_element(s, i); i++)
        if (i < shape->count)
            read_number(s, &shape->members[i], row + shape->members[i].offset);
        else
            token_skip(s);
    if (i < shape->count)
        token_fail(s, "a row has too few numbers");
}

static void read_table(scan *s, const pki_member *m, char *object)
{
    char *rows = NULL;
    size_t count = 0, room = 0;
    token_expect(s, '[');
    for (; begins_element(s, count); count++)
        read_tuple(s, m->shape, add_row(&rows, &room, count, m->shape->size));
    put_rows(m, object, rows, count, m->shape->size);
}

static void read_numbers(scan *s, const pki_member *m, char *object)
{
    uint64_t *numbers = NULL;
    size_t count = 0, room = 0;
    token_expect(s, '[');
    for (; begins_element(s, count); count++) {
        if (count == room)
            numbers = wider(numbers, &room, sizeof *numbers);
        numbers[count] = token_uint(s);
    }
    put_rows(m, object, numbers, count, sizeof *numbers);
}

static void read_choice(scan *s, const pki_member *m, char *at)
{
    const char *text = "";
    size_t length = 0;
    uint32_t found = 0;
    token_raw(s, &text, &length);
    for (; found < m->choice->count; found++) {
        const char *name = m->choice->name(found);
        if (strlen(name) == length && memcmp(name, text, length) == 0)
            break;
    }
    found = found < m->choice->count ? found : m->choice->other;
    memcpy(at, &found, sizeof found);
}

static void read_hex(scan *s, char *at)
{
    char *text = token_text(s);
    uint64_t value = strtoull(text, NULL, 16);
    memcpy(at, &value, sizeof value);
    free(text);
}

/* A key said twice has its last value, as elsewhere. */
static void replace_text(char *at, char *text)
{
    char *before;
    memcpy(&before, at, sizeof before);
    free(before);
    memcpy(at, &text, sizeof text);
}

static void read_bool(scan *s, char *at)
{
    bool value = token_peek(s) == 't';
    token_skip(s);
    memcpy(at, &value, sizeof value);
}

static void read_keyed(scan *s, const pki_member *m, char *at)
{
    size_t size = m->shape ? m->shape->size : sizeof(uint64_t), length;
    const char *key;
    token_expect(s, '{');
    for (size_t n = 0; !token_accept(s, '}') && (n == 0 || token_expect(s, ',')) &&
                       token_raw(s, &key, &length) && token_expect(s, ':');
         n++) {
        size_t i = 0;
        while (i < m->count && (strlen(m->keys[i]) != length || memcmp(m->keys[i], key, length)))
            i++;
        if (i == m->count)
            token_skip(s);
        else if (m->shape)
            scan_object(s, m->shape, at + i * size);
        else
            read_number(s, &(pki_member){.type = PKI_UINT}, at + i * size);
    }
}

static void read_member(scan *s, const pki_member *m, char *object)
{
    char *at = object + m->offset;
    bool is_array = m->type == PKI_ROWS || m->type == PKI_TABLE || m->type == PKI_NUMBERS;
    if (m->type != PKI_REAL && token_null(s))
        return;
    if (is_array)
        pki_shape_finish(&(pki_shape){m->shape ? m->shape->size : 0, 1, m}, object);
    switch (m->type) {
    case PKI_TEXT:
        replace_text(at, token_text(s));
        break;
    case PKI_BOOL:
        read_bool(s, at);
        break;
    case PKI_HEX:
        read_hex(s, at);
        break;
    case PKI_CHOICE:
        read_choice(s, m, at);
        break;
    case PKI_OBJECT:
        scan_object(s, m->shape, at);
        break;
    case PKI_KEYED:
        read_keyed(s, m, at);
        break;
    case PKI_ROWS:
        read_rows(s, m, object);
        break;
    case PKI_TABLE:
        read_table(s, m, object);
        break;
    case PKI_NUMBERS:
        read_numbers(s, m, object);
        break;
    default:
        read_number(s, m, at);
        break;
    }
}

static const pki_member *find(const pki_shape *shape, const char *key, size_t length, size_t from)
{
    for (size_t n = 0, i = from; n < shape->count; n++, i++) {
        i = i < shape->count ? i : 0;
        const char *name = shape->members[i].key;
        if (strlen(name) == length && memcmp(name, key, length) == 0)
            return &shape->members[i];
    }
    return NULL;
}

/* `"key":` of this member, as perfkit writes it. */
static bool accept_key(scan *s, const pki_member *m)
{
    size_t length = strlen(m->key);
    const char *at = s->at;
    bool comes = (size_t)(s->end - at) > length + 2 && at[0] == '"' &&
                 memcmp(at + 1, m->key, length) == 0 && at[length + 1] == '"' &&
                 at[length + 2] == ':';
    s->at += comes ? length + 3 : 0;
    return comes;
}

/* The member whose key comes next, NULL if it is of none. Members come in the order of the shape as
 * a rule: the one behind `before` is tried first. */
static const pki_member *read_key(scan *s, const pki_shape *shape, const pki_member *before)
{
    size_t next = before ? (size_t)(before - shape->members) + 1 : 0, length = 0;
    const char *key = "";
    token_peek(s);
    if (next < shape->count && accept_key(s, &shape->members[next]))
        return &shape->members[next];
    if (!token_raw(s, &key, &length) || !token_expect(s, ':'))
        return NULL;
    return find(shape, key, length, next);
}

/* As everybody who reads files expects: no text is NULL. */
static void complete_texts(const pki_shape *shape, char *object)
{
    for (size_t i = 0; i < shape->count; i++) {
        char *text, *at = object + shape->members[i].offset;
        if (shape->members[i].type != PKI_TEXT)
            continue;
        memcpy(&text, at, sizeof text);
        text = text ? text : memory_copy("");
        memcpy(at, &text, sizeof text);
    }
}

bool scan_object(scan *s, const pki_shape *shape, void *object)
{
    const pki_member *last = NULL;
    token_expect(s, '{');
    for (size_t n = 0; !s->failed && !token_accept(s, '}') && (n == 0 || token_expect(s, ','));
         n++) {
        const pki_member *m = read_key(s, shape, last);
        last = m ? m : last;
        if (m)
            read_member(s, m, object);
        else if (!s->failed)
            token_skip(s);
    }
    complete_texts(shape, object);
    return !s->failed;
}
