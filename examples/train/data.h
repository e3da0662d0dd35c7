/* examples/train/data.h - text as batches of tokens, made by a thread of its own */
#pragma once

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the text to learn from ---- */

/* Files, cut into windows of `seq` bytes and the one that follows. */

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

/* ---- something to read when no file is named ---- */

typedef struct text {
    char **paths;
    size_t count;
    glob_t found; /* what the paths lie in */
} text;

/* The licence texts that ship with Debian; elsewhere, the trainer's own source. Left out are second
 * names of a file, and those too short for sequences of `seq` bytes. False after complaining. */
bool text_find(text *t, size_t seq);

/* Also after a text_find that failed, and of a zeroed text. */
void text_finish(text *t);

/* ---- batches on their way from the loader to the trainer ---- */

/* A bounded queue for one of each.
 *
 * The queue owns the memory. The loader claims an empty batch, fills it and commits it; the trainer
 * takes the oldest full one, learns from it and releases it. Nothing is copied or allocated on the
 * way. */

typedef struct batch {
    uint64_t number;         /* of the step that it is for */
    uint8_t *input, *target; /* the target of a byte is the one that follows it */
} batch;

typedef struct queue queue;

/* ---- the thread that reads batches ahead of the trainer ---- */

/* Which windows of the text are in batch n depends on the seed and n alone: every window once per
 * epoch, each epoch in an order of its own. A run that is resumed at step n just begins at batch n.
 */

typedef struct loader_options {
    const corpus *corpus;
    size_t batch; /* windows per batch */
    size_t queue; /* batches ahead at most */
    uint64_t seed;
    uint64_t first;     /* number of the first batch */
    uint64_t slow_ms;   /* pretend that the storage takes so long per batch; 0: do not */
    uint64_t slow_step; /* and that it stands still before the batch of this step; 0: it does not */
} loader_options;

/* As slow_ms: three times as long as the trainer takes, which makes any machine wait. */
#define LOADER_TOO_SLOW UINT64_MAX

typedef struct loader loader;

/* NULL after complaining. */
loader *loader_start(const loader_options *o);

/* The next batch, to be released before the next; NULL when the loader has failed. */
const batch *loader_next(loader *l);
void loader_release(loader *l);

/* At any moment, whatever the thread is waiting for. NULL is fine. */
void loader_stop(loader *l);
