/* lib/out/report/json.c - the report file, and the file of a rank */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "comm/figures/figures.h"
#include "measure/shape.h"
#include "out/json_write.h"
#include "out/report/report.h"
#include "out/report/sections.h"

/* ---- the file of a rank ---- */

/* Of the report what a job of many ranks is made of, in 64 KiB for 100 regions and any number of
 * steps. */

#define REGIONS 256     /* those with the most self time */
#define COLLECTIVES 8   /* those with the most time */
#define SITES 16        /* of operations: those with the most time */
#define PARTNERS 64     /* of messages: those with most bytes, and one of all others */
#define SEQUENCES 192   /* single operations; their number is a half, a quarter, ... of all */
#define BUCKETS 3000    /* of all regions together... */
#define BUCKETS_LEAST 8 /* ...but of each so many */

static bool copy_buckets(pki_region_row *row, size_t most)
{
    pki_tally *t = &row->exact.buckets;
    pki_tally_bucket *copy = malloc((t->used + 1) * sizeof *copy);
    if (!copy)
        return false;
    if (t->used)
        memcpy(copy, t->buckets, t->used * sizeof *copy);
    t->buckets = copy;
    pki_window_sum_narrow(&row->exact, most);
    return true;
}

static bool copy_regions(const pki_summary *from, pki_summary *to)
{
    size_t count = from->region_count < REGIONS ? from->region_count : REGIONS;
    size_t most = count ? BUCKETS / count : 0;
    to->region_count = 0;
    to->regions = calloc(count + 1, sizeof *to->regions);
    for (size_t i = 0; to->regions && i < count; i++) {
        to->regions[i] = from->regions[i];
        if (!copy_buckets(&to->regions[i], most > BUCKETS_LEAST ? most : BUCKETS_LEAST))
            return false;
        to->region_count++;
    }
    return to->regions;
}

static int most_time_first(const void *a, const void *b)
{
    const pki_operation_row *x = a, *y = b;
    if (x->time.sum != y->time.sum)
        return x->time.sum < y->time.sum ? 1 : -1;
    return (x->comm > y->comm) - (x->comm < y->comm);
}

static bool copy_collectives(const pki_summary *from, pki_summary *to)
{
    size_t count = from->comm.collective_count;
    pki_operation_row *rows = calloc(count + 1, sizeof *rows);
    if (!rows)
        return false;
    if (count)
        memcpy(rows, from->comm.collectives, count * sizeof *rows);
    qsort(rows, count, sizeof *rows, most_time_first);
    to->comm.collectives = rows;
    to->comm.collective_count = count < COLLECTIVES ? count : COLLECTIVES;
    to->comm.region_count = from->comm.region_count < SITES ? from->comm.region_count : SITES;
    return true;
}

static void *copy_rows(const void *rows, size_t count, size_t size)
{
    char *copy = calloc(count + 1, size);
    if (copy && count)
        memcpy(copy, rows, count * size);
    return copy;
}

static bool copy_exchange(const pki_summary *from, pki_summary *to)
{
    const pki_comm_summary *c = &from->comm;
    pki_sequences *q = &to->comm.sequences;
    to->comm.partners = copy_rows(c->partners, c->partner_count, sizeof *c->partners);
    q->rows = copy_rows(c->sequences.rows, c->sequences.row_count, sizeof *q->rows);
    if (!to->comm.partners || !q->rows)
        return false;
    to->comm.partner_count = pki_partners_narrow(to->comm.partners, c->partner_count, PARTNERS);
    q->row_count = pki_sequences_narrow(q->rows, q->row_count, &q->one_in, SEQUENCES);
    return true;
}

/* The copy shares all but what is smaller in it. */
static void finish_copy(pki_summary *copy)
{
    for (size_t i = 0; copy->regions && i < copy->region_count; i++)
        free(copy->regions[i].exact.buckets.buckets);
    free(copy->regions);
    free(copy->comm.collectives);
    free(copy->comm.partners);
    free(copy->comm.sequences.rows);
}

static int write_json(const pki_summary *summary, const pki_shape *shape, FILE *file, bool rows);

int pki_report_rank(const pki_summary *summary, FILE *file)
{
    pki_summary copy = *summary;
    int error = -ENOMEM;
    copy.comm.collectives = NULL;
    copy.comm.partners = NULL;
    copy.comm.sequences.rows = NULL;
    if (copy_regions(summary, &copy) && copy_collectives(summary, &copy) &&
        copy_exchange(summary, &copy))
        error = write_json(&copy, &pki_rank_shape, file, true);
    finish_copy(&copy);
    return error;
}

/* ---- the report file: what pki_summary_shape says, in that order ---- */

static void put_members(pki_json *j, const pki_shape *shape, const void *object);

void pki_json_object(pki_json *j, const char *key, const pki_shape *shape, const void *object)
{
    pki_json_open(j, key, '{');
    put_members(j, shape, object);
    pki_json_close(j, '}');
}

static uint64_t uint_at(const void *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t u32_at(const void *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void put_hex(pki_json *j, const char *key, uint64_t value)
{
    char text[17];
    snprintf(text, sizeof text, "%" PRIx64, value);
    pki_json_text(j, key, text);
}

static void put_choice(pki_json *j, const char *key, const pki_choice *choice, uint32_t value)
{
    pki_json_text(j, key, choice->name(value < choice->count ? value : choice->other));
}

static void put_keyed(pki_json *j, const pki_member *m, const char *at)
{
    size_t size = m->shape ? m->shape->size : sizeof(uint64_t);
    pki_json_open(j, m->key, '{');
    for (size_t i = 0; i < m->count; i++, at += size)
        if (!m->shape)
            pki_json_uint(j, m->keys[i], uint_at(at));
        else if (!m->optional || uint_at(at))
            pki_json_object(j, m->keys[i], m->shape, at);
    pki_json_close(j, '}');
}

static void put_rows(pki_json *j, const pki_member *m, const void *object)
{
    size_t count = uint_at((const char *)object + m->count);
    const char *rows;
    if (m->optional && count == 0)
        return;
    memcpy(&rows, pki_member_at(m, object), sizeof rows);
    pki_json_open(j, m->key, '[');
    for (size_t i = 0; i < count; i++) {
        if (m->lines)
            pki_json_row(j);
        pki_json_object(j, NULL, m->shape, rows + i * m->shape->size);
    }
    pki_json_close(j, ']');
}

static void put_number(pki_json *j, const pki_member *m, const char *key, const void *at)
{
    int32_t i32;
    double real;
    switch (m->type) {
    case PKI_UINT:
        pki_json_uint(j, key, uint_at(at));
        break;
    case PKI_U32:
        pki_json_uint(j, key, u32_at(at));
        break;
    case PKI_I32:
        memcpy(&i32, at, sizeof i32);
        pki_json_int(j, key, i32);
        break;
    default: /* PKI_REAL */
        memcpy(&real, at, sizeof real);
        pki_json_real(j, key, real);
        break;
    }
}

static void put_table(pki_json *j, const pki_member *m, const void *object)
{
    size_t count = uint_at((const char *)object + m->count);
    const char *rows;
    memcpy(&rows, pki_member_at(m, object), sizeof rows);
    if (count == 0)
        return;
    pki_json_open(j, m->key, '[');
    for (size_t i = 0; i < count; i++, rows += m->shape->size) {
        pki_json_open(j, NULL, '[');
        for (size_t k = 0; k < m->shape->count; k++)
            put_number(j, &m->shape->members[k], NULL, pki_member_at(&m->shape->members[k], rows));
        pki_json_close(j, ']');
    }
    pki_json_close(j, ']');
}

static void put_numbers(pki_json *j, const pki_member *m, const void *object)
{
    size_t count = uint_at((const char *)object + m->count);
    const char *numbers;
    memcpy(&numbers, pki_member_at(m, object), sizeof numbers);
    if (count == 0)
        return;
    pki_json_open(j, m->key, '[');
    for (size_t i = 0; i < count; i++)
        pki_json_uint(j, NULL, uint_at(numbers + i * sizeof(uint64_t)));
    pki_json_close(j, ']');
}

static bool is_left_out(const pki_member *m, const void *object)
{
    const char *first = object;
    size_t what = m->type == PKI_ROWS ? m->count : m->offset;
    bool may = m->optional && (m->type == PKI_OBJECT || m->type == PKI_ROWS);
    return may && !uint_at(first + what);
}

void pki_json_member(pki_json *j, const pki_member *m, const void *object)
{
    const void *at = pki_member_at(m, object);
    const char *text;
    if (is_left_out(m, object))
        return;
    switch (m->type) {
    case PKI_TEXT:
        memcpy(&text, at, sizeof text);
        pki_json_text(j, m->key, text);
        break;
    case PKI_BOOL:
        pki_json_bool(j, m->key, *(const bool *)at);
        break;
    case PKI_HEX:
        put_hex(j, m->key, uint_at(at));
        break;
    case PKI_CHOICE:
        put_choice(j, m->key, m->choice, u32_at(at));
        break;
    case PKI_OBJECT:
        pki_json_object(j, m->key, m->shape, at);
        break;
    case PKI_KEYED:
        put_keyed(j, m, at);
        break;
    case PKI_ROWS:
        put_rows(j, m, object);
        break;
    case PKI_TABLE:
        put_table(j, m, object);
        break;
    case PKI_NUMBERS:
        put_numbers(j, m, object);
        break;
    default:
        put_number(j, m, m->key, at);
        break;
    }
}

static void put_members(pki_json *j, const pki_shape *shape, const void *object)
{
    for (size_t i = 0; i < shape->count; i++) {
        const pki_member *m = &shape->members[i];
        if (is_left_out(m, object))
            continue;
        if (m->line)
            pki_json_row(j);
        pki_json_member(j, m, object);
    }
}

static void put_summary(pki_json *j, const pki_shape *shape, const pki_summary *summary)
{
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "format", PKI_REPORT_FORMAT);
    pki_json_uint(j, "schema", PKI_REPORT_SCHEMA);
    put_members(j, shape, summary);
    pki_json_close(j, '}');
}

static int write_json(const pki_summary *summary, const pki_shape *shape, FILE *file, bool rows)
{
    pki_plain plain;
    if (!pki_plain_enter(&plain))
        return -ENOMEM;
    pki_json json = {.file = file, .rows = rows};
    errno = 0;
    put_summary(&json, shape, summary);
    if (rows)
        fputc('\n', file);
    bool written = fflush(file) == 0 && !ferror(file);
    int error = errno ? errno : EIO;
    pki_plain_leave(&plain);
    return written ? 0 : -error;
}

int pki_report_json(const pki_summary *summary, FILE *file)
{
    return write_json(summary, &pki_summary_shape, file, true);
}

int pki_report_json_line(const pki_summary *summary, FILE *file)
{
    return write_json(summary, &pki_summary_shape, file, false);
}
