/* lib/measure/shape_finish.c - what a pki_summary points to, given back. */
#include "measure/shape.h"

#include <stdlib.h>
#include <string.h>

static void finish_member(const pki_member *member, char *object)
{
    void *at = object + member->offset, *block;
    size_t count;
    switch (member->type) {
    case PKI_TEXT:
        memcpy(&block, at, sizeof block);
        free(block);
        break;
    case PKI_OBJECT:
        pki_shape_finish(member->shape, at);
        break;
    case PKI_ROWS:
    case PKI_TABLE:
        memcpy(&block, at, sizeof block);
        memcpy(&count, object + member->count, sizeof count);
        pki_shape_finish_rows(member->shape, block, count);
        break;
    default:
        break;
    }
}

void pki_shape_finish(const pki_shape *shape, void *object)
{
    for (size_t i = 0; i < shape->count; i++)
        finish_member(&shape->members[i], object);
}

void pki_shape_finish_rows(const pki_shape *shape, void *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pki_shape_finish(shape, (char *)rows + i * shape->size);
    free(rows);
}
