/* corpus.h - the text to learn from: files, cut into windows of `seq` bytes and the one that
 * follows. */
#ifndef TRAIN_CORPUS_H
#define TRAIN_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct corpus_file {
    const char *path;
    int descriptor;
    uint64_t first; /* the number of its first window */
} corpus_file;

typedef struct corpus {
    size_t seq, file_count;
    corpus_file *files;
    uint64_t windows; /* of all files */
} corpus;

/* The paths stay the caller's, until corpus_finish. False after complaining. */
bool corpus_init(corpus *c, char *const *paths, size_t count, size_t seq);
void corpus_finish(corpus *c);

/* seq + 1 bytes. False after complaining, when the file cannot be read any more. */
bool corpus_read(const corpus *c, uint64_t window, uint8_t *bytes);

#endif
