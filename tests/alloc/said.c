/* said WORDS - what the report of a session says of libpk_alloc, where something keeps it from
 * counting: a sanitizer's malloc, or another allocator in front. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/pk.h>

int main(int argc, char **argv)
{
    static char text[1 << 16];
    char path[64];
    snprintf(path, sizeof path, "alloc-said-%s.txt", argc > 2 ? argv[2] : "here");
    if (argc < 2 || pk_start(pk_options(.report_path = path, .backends = "none")) != PK_OK)
        return 1;
    void *volatile block = malloc(100);
    free(block);
    if (pk_stop() != PK_OK)
        return 1;
    FILE *file = fopen(path, "r");
    if (!file)
        return 1;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    remove(path);
    for (char *at = text; *at; at++) /* the report's lines end where they must */
        *at = *at == '\n' ? ' ' : *at;
    for (char *two; (two = strstr(text, "  "));)
        memmove(two, two + 1, strlen(two));
    if (strstr(text, argv[1]))
        return 0;
    printf("not \"%s\":\n%s\n", argv[1], text);
    return 1;
}
