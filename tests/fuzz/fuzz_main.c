/* fuzz_main.c - runs a target over files, and over so many spoilt copies of each: TARGET FILE...
 * --mutate N
 *
 * The copies are the same every time: a failure is found again by its number.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MOST (1 << 20)

static uint64_t state;

static uint64_t next(uint64_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return bound ? state % bound : 0;
}

static const char *const words[] = {
    "{",
    "}",
    "[",
    "]",
    ",",
    "\n",
    "\"",
    ":",
    "null",
    "1e308",
    "-1",
    "\\u0000",
    "\xFF",
    "0.5",
    "\\",
    "true",
    "{\"a\":[",
    "\n]}",
    "\n],",
    "9223372036854775807",
    "\"ts\":",
    "\"ph\":\"X\"",
    "ProfilerStep#",
    "99999999999999999999",
    "\"schema\":",
    "\0",
};

/* A bit, a byte, a word, a cut, a piece from elsewhere. */
static size_t spoil(uint8_t *data, size_t size)
{
    size_t at = (size_t)next(size), length = (size_t)next(1 + (size - at < 64 ? size - at : 64));
    const char *word = words[next(sizeof words / sizeof *words)];
    switch (next(6)) {
    case 0:
        data[at] ^= (uint8_t)(1u << next(8));
        return size;
    case 1:
        data[at] = (uint8_t)next(256);
        return size;
    case 2:
        memmove(data + at, data + at + length, size - at - length);
        return size - length;
    case 3:
        memmove(data + at, data + next(size - length), length);
        return size;
    case 4:
        length = strlen(word);
        if (size + length > SIZE_MOST)
            return size;
        memmove(data + at + length, data + at, size - at);
        memcpy(data + at, word, length);
        return size + length;
    default:
        return next(20) ? size : at;
    }
}

static int run(const fuzz_target *target, const char *path, unsigned long copies)
{
    static uint8_t original[SIZE_MOST], spoilt[SIZE_MOST];
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s cannot be read\n", path);
        return 1;
    }
    size_t size = fread(original, 1, SIZE_MOST, file);
    fclose(file);
    target->run(original, size);
    for (unsigned long i = 0; i < copies && size; i++) {
        size_t length = size;
        memcpy(spoilt, original, size);
        state = 88172645463325252u + i;
        for (uint64_t n = 1 + next(6); n && length; n--)
            length = spoil(spoilt, length);
        /* On the heap, to its last byte: a sanitizer sees who reads past it. */
        uint8_t *copy = malloc(length ? length : 1);
        if (!copy)
            return 1;
        memcpy(copy, spoilt, length);
        target->run(copy, length);
        free(copy);
    }
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long copies = 0;
    int failed = 0, files = 0;
    if (argc > 2 && strcmp(argv[argc - 2], "--mutate") == 0) {
        copies = strtoul(argv[argc - 1], NULL, 10);
        argc -= 2;
    }
    const fuzz_target *target = fuzz_targets;
    while (target->name && (argc < 2 || strcmp(target->name, argv[1]) != 0))
        target++;
    for (int i = 2; target->name && i < argc; i++, files++)
        failed |= run(target, argv[i], copies);
    printf("%d files, %lu spoilt copies of each\n", files, copies);
    return failed || !files;
}
