/* lib/base/array.h - arrays that grow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Sees to it that the array whose address lies at array_of, of elements of that size, has room for
 * so many: at least twice what it had, the new ones zeroed. False without memory: nothing has
 * changed. */
bool pki_array_fit(void *array_of, size_t *room, size_t wanted, size_t size);
