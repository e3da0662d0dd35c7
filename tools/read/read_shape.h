/* tools/read/read_shape.h - a JSON object as a struct: what its shape says, in whatever order. */
#pragma once

#include "measure/shape.h"
#include "read/json.h"

void read_shape(json_reader *j, json_t *from, const pki_shape *shape, void *object);
