/* tools/load/report.c - the report file of docs/report-format.md as a summary: what
 * pki_summary_shape says, in whatever order. */
#include "load/load.h"

#include "measure/shape.h"
#include "out/report/report.h"
#include "read/json_read.h"

#include <stdlib.h>
#include <string.h>

static void read_members(json_reader *j, json_t *from, const pki_shape *shape, char *object);

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
            read_members(j, json_read_object(j, object, m->keys[i]), m->shape, at);
        else
            json_read_uint(j, object, m->keys[i], (uint64_t *)(void *)at);
}

/* Every row is read, whatever has failed before: none is without its strings. */
static void read_rows(json_reader *j, json_t *from, const pki_member *m, char *object)
{
    size_t count;
    char *rows = json_read_rows(j, from, m->key, m->shape->size, &count);
    for (size_t i = 0; i < count; i++)
        read_members(j, json_array_get(json_object_get(from, m->key), i), m->shape,
                     rows + i * m->shape->size);
    memcpy(object + m->offset, &rows, sizeof rows);
    memcpy(object + m->count, &count, sizeof count);
}

/* An array of numbers as the object that it stands for. NULL without memory. */
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
            read_members(j, row, m->shape, rows + i * m->shape->size);
        else
            j->failed = !complaint_set(j->why, "out of memory");
        json_decref(row);
    }
    memcpy(object + m->offset, &rows, sizeof rows);
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
        read_members(j, json_read_object(j, from, m->key), m->shape, at);
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
    default:
        read_number(j, from, m, at);
        break;
    }
}

static void read_members(json_reader *j, json_t *from, const pki_shape *shape, char *object)
{
    for (size_t i = 0; i < shape->count; i++)
        read_member(j, from, &shape->members[i], object);
}

static bool check_schema(json_reader *j, json_t *report)
{
    uint64_t schema = 0;
    json_read_uint(j, report, "schema", &schema);
    if (j->failed)
        return false;
    if (schema == 0)
        return complaint_set(j->why, "is a report without its \"schema\" number");
    if (schema > PKI_REPORT_SCHEMA)
        return complaint_set(
            j->why, "is a report of schema %llu, and this pk reads up to %d: a newer pk can",
            (unsigned long long)schema, PKI_REPORT_SCHEMA);
    return true;
}

/* Rows of a communicator that the file does not have would lead nowhere. */
static void check_comms(json_reader *j, const pki_comm_summary *c)
{
    bool known = true;
    for (size_t i = 0; i < c->collective_count; i++)
        known &= c->collectives[i].comm < c->comm_count;
    for (size_t i = 0; i < c->region_count; i++)
        known &= c->regions[i].comm < c->comm_count;
    for (size_t i = 0; i < c->slowest_count; i++)
        known &= c->slowest[i].comm < c->comm_count;
    if (!j->failed && !known)
        j->failed = !complaint_set(j->why, "has operations on a communicator that is not in it");
}

bool load_report(json_t *report, pki_summary *out, complaint *why)
{
    json_reader j = {.why = why};
    pki_summary_init(out);
    if (!check_schema(&j, report))
        return false;
    read_members(&j, report, &pki_summary_shape, (char *)out);
    out->counts.size = sizeof out->counts;
    check_comms(&j, &out->comm);
    if (!j.failed)
        return true;
    pki_summary_finish(out);
    return false;
}
