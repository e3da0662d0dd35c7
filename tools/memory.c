#include "memory.h"

#include "base/memory.h"
#include "base/compiler.h"
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void memory_needed(bool there)
{
    if (there)
        return;
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr); /* how far it was: progress.h */
    fputs("pk: out of memory\n", stderr);
    exit(EXIT_UNUSABLE);
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
