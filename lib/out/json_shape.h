/* lib/out/json_shape.h - structures as JSON, by their shapes (measure/shape.h). */
#pragma once

#include "measure/shape.h"
#include "out/json_write.h"

/* The whole object; key NULL: an element of an array. */
void pki_json_object(pki_json *json, const char *key, const pki_shape *shape, const void *object);

/* One member of it. */
void pki_json_member(pki_json *json, const pki_member *member, const void *object);
