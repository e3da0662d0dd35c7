/* tools/job/library/way_out.c - memory.h for code of commands that runs inside a program: without
 * memory what is going on is given up, and the program goes on. */
#include "job/library/way_out.h"

#include "base/memory.h"
#include "base/compiler.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

static __thread jmp_buf *way_out;

void memory_way_out(jmp_buf *to)
{
    way_out = to;
}

void memory_needed(bool there)
{
    if (!there)
        longjmp(*way_out, 1);
}

static void *needed(void *block)
{
    memory_needed(block != NULL);
    return block;
}

void *memory_zeroed(size_t count, size_t bytes)
{
    return needed(calloc(PKI_MAX(count, 1), bytes));
}

void *memory_resized(void *block, size_t bytes)
{
    return needed(realloc(block, bytes));
}

char *memory_copy(const char *text)
{
    return needed(strdup(text));
}

void memory_fit(void *array_of, size_t *room, size_t wanted, size_t bytes)
{
    memory_needed(pki_array_fit(array_of, room, wanted, bytes));
}
