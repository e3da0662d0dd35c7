/* text.h - something to read when no file is named. */
#ifndef TRAIN_TEXT_H
#define TRAIN_TEXT_H

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
