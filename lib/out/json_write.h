/* lib/out/json_write.h - JSON onto a stream, always valid: commas, escapes and numbers are taken
 * care of */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "measure/shape.h"

/* ---- JSON onto a stream, always valid ---- */

/* Commas, escapes and numbers are taken care of.
 *
 * A key of NULL is an element of an array. Strings become valid UTF-8 whatever their bytes; a
 * number that is not finite becomes null; integers stay integers. Write errors stick to the stream.
 * The locale must be plain (pki_plain_enter). */

typedef struct pki_json {
    FILE *file;
    bool rows;  /* line breaks where pki_json_row asks for them */
    bool comma; /* something precedes in this object or array */
} pki_json;

void pki_json_open(pki_json *json, const char *key, char bracket);
void pki_json_close(pki_json *json, char bracket);

/* The next value begins a line. */
void pki_json_row(pki_json *json);

void pki_json_uint(pki_json *json, const char *key,
                   uint64_t value); /* at most 2^63 - 1 is written */
void pki_json_int(pki_json *json, const char *key, int64_t value);
void pki_json_real(pki_json *json, const char *key, double value);
void pki_json_reals(pki_json *json, const char *key, const double *values, size_t count);
void pki_json_bool(pki_json *json, const char *key, bool value);
void pki_json_text(pki_json *json, const char *key, const char *value); /* NULL is "" */

/* Numbers with a point, whatever the program's locale; for this thread, until pki_plain_leave. */
typedef struct pki_plain {
    locale_t plain, before;
} pki_plain;

bool pki_plain_enter(pki_plain *plain); /* false and errno: no memory */
void pki_plain_leave(pki_plain *plain);

/* ---- structures as JSON, by their shapes (measure/shape.h) ---- */

/* The whole object; key NULL: an element of an array. */
void pki_json_object(pki_json *json, const char *key, const pki_shape *shape, const void *object);

/* One member of it. */
void pki_json_member(pki_json *json, const pki_member *member, const void *object);
