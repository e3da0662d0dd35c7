#include "read/scan.h"

#include "memory.h"

#include <stdlib.h>
#include <string.h>

/* Is the value that comes of that kind, by what it begins with? */
static inline bool begins(scan *s, char first, const char *wanted)
{
    return token_peek(s) == first || token_wrong(s, wanted);
}

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
        n = token_uint(s);
        u32 = (uint32_t)n;
        if (n > UINT32_MAX)
            token_no_uint(s, 0);
        memcpy(at, &u32, sizeof u32);
        break;
    case PKI_I32:
        negative = token_accept(s, '-');
        n = token_uint(s);
        if (n > (uint64_t)INT32_MAX + negative)
            token_wrong(s, "an integer in its range");
        i32 = (int32_t)(negative ? -(int64_t)n : (int64_t)n);
        memcpy(at, &i32, sizeof i32);
        break;
    default:
        real = token_real(s);
        memcpy(at, &real, sizeof real);
        break;
    }
}

/* ---- members ---- */

#define ROWS_AT_FIRST 8

static size_t memory_most = SCAN_MEMORY_MOST;

void scan_limit_memory(size_t bytes)
{
    memory_most = bytes;
}

/* Each time much wider: what has been read is moved then, and is most of what there is to do. What
 * is too much is not there: then the old ones. */
static void *wider(scan *s, void *rows, size_t *room, size_t size)
{
    size_t wanted = *room ? 4 * *room : ROWS_AT_FIRST;
    if (s->taken > memory_most || wanted > (memory_most - s->taken) / size) {
        complaint_set(s->why, "is too large: what it says would take more memory than is good");
        s->failed = true;
        return rows;
    }
    s->taken += (wanted - *room) * size;
    *room = wanted;
    return memory_resized(rows, wanted * size);
}

/* One more, of zeros; NULL: there cannot be. */
static inline char *add_row(scan *s, char **rows, size_t *room, size_t count, size_t size)
{
    if (count == *room)
        *rows = wider(s, *rows, room, size);
    return count < *room ? memset(*rows + count * size, 0, size) : NULL;
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
    char *rows = NULL, *row;
    size_t count = 0, room = 0, size = m->shape->size;
    token_expect(s, '[');
    for (; token_more(s, ']', count) && begins(s, '{', "an array of objects") &&
           (row = add_row(s, &rows, &room, count, size));
         count++) {
        scan_object(s, m->shape, row);
        s->key = m->key;
    }
    put_rows(m, object, rows, count, size);
}

/* Later versions may have more numbers in a row, earlier ones lack those that are optional. */
static void read_tuple(scan *s, const pki_member *m, char *row)
{
    const pki_shape *shape = m->shape;
    size_t i = 0;
    token_expect(s, '[');
    for (; token_more(s, ']', i); i++)
        if (i < shape->count) {
            s->key = shape->members[i].key;
            read_number(s, &shape->members[i], row + shape->members[i].offset);
        } else {
            token_skip(s);
        }
    s->key = m->key;
    if (i < shape->count && !shape->members[i].optional)
        token_wrong(s, "an array of arrays of numbers");
}

static void read_table(scan *s, const pki_member *m, char *object)
{
    char *rows = NULL, *row;
    size_t count = 0, room = 0, size = m->shape->size;
    token_expect(s, '[');
    for (; token_more(s, ']', count) && begins(s, '[', "an array of arrays of numbers") &&
           (row = add_row(s, &rows, &room, count, size));
         count++) {
        read_tuple(s, m, row);
    }
    put_rows(m, object, rows, count, size);
}

static void read_numbers(scan *s, const pki_member *m, char *object)
{
    uint64_t *numbers = NULL;
    size_t count = 0, room = 0;
    token_expect(s, '[');
    for (; token_more(s, ']', count); count++) {
        if (count == room)
            numbers = wider(s, numbers, &room, sizeof *numbers);
        if (count == room)
            break;
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
        if (token_is(text, length, m->choice->name(found)))
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
    char first = token_peek(s);
    bool value = first == 't';
    if (first != 't' && first != 'f')
        token_wrong(s, "true or false");
    token_skip(s);
    memcpy(at, &value, sizeof value);
}

static void read_keyed(scan *s, const pki_member *m, char *at)
{
    size_t size = m->shape ? m->shape->size : sizeof(uint64_t), length;
    const char *key;
    token_expect(s, '{');
    for (size_t n = 0; token_more(s, '}', n) && token_key(s, &key, &length); n++) {
        size_t i = 0;
        while (i < m->count && !token_is(key, length, m->keys[i]))
            i++;
        s->key = i < m->count ? m->keys[i] : NULL;
        if (i == m->count)
            token_skip(s);
        else if (m->shape)
            scan_object(s, m->shape, at + i * size);
        else
            read_number(s, &(pki_member){.type = PKI_UINT}, at + i * size);
    }
}

/* As far as the value's first character tells. */
static inline bool is_of_type(scan *s, pki_member_type type)
{
    switch (type) {
    case PKI_TEXT:
    case PKI_HEX:
    case PKI_CHOICE:
        return begins(s, '"', "a string");
    case PKI_OBJECT:
    case PKI_KEYED:
        return begins(s, '{', "an object");
    case PKI_ROWS:
    case PKI_TABLE:
    case PKI_NUMBERS:
        return begins(s, '[', "an array");
    default:
        return true;
    }
}

/* The value there, which has turned out to be another than it has to be, if that is fine. */
static void pass_over(scan *s, const char *from)
{
    if (!s->lenient)
        return;
    s->failed = false;
    s->why->text[0] = '\0';
    s->at = from;
    token_skip(s);
}

static void read_plain(scan *s, const pki_member *m, char *at)
{
    const char *from = s->at;
    if (m->type == PKI_TEXT)
        replace_text(at, token_text(s));
    else if (m->type == PKI_BOOL)
        read_bool(s, at);
    else if (m->type == PKI_HEX)
        read_hex(s, at);
    else if (m->type == PKI_CHOICE)
        read_choice(s, m, at);
    else
        read_number(s, m, at);
    if (s->failed)
        pass_over(s, from);
}

static void read_member(scan *s, const pki_member *m, char *object)
{
    char *at = object + m->offset;
    if (m->type != PKI_REAL && token_null(s))
        return;
    s->key = m->key;
    if (!is_of_type(s, m->type)) {
        pass_over(s, s->at);
        return;
    }
    if (m->type == PKI_ROWS || m->type == PKI_TABLE || m->type == PKI_NUMBERS)
        pki_shape_finish(&(pki_shape){m->shape ? m->shape->size : 0, 1, m}, object);
    switch (m->type) {
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
        read_plain(s, m, at);
        break;
    }
}

static const pki_member *find(const pki_shape *shape, const char *key, size_t length, size_t from)
{
    for (size_t n = 0, i = from; n < shape->count; n++, i++) {
        i = i < shape->count ? i : 0;
        if (token_is(key, length, shape->members[i].key))
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
    if (!token_key(s, &key, &length))
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
    for (size_t n = 0; token_more(s, '}', n); n++) {
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
