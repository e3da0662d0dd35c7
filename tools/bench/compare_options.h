/* tools/bench/compare_options.h - what `pk compare` and `pk bench-ab` both take, and where they put it. */
#ifndef TOOLS_COMPARE_OPTIONS_H
#define TOOLS_COMPARE_OPTIONS_H

#include "bench/compare/compare.h"

typedef struct compare_wish {
    compare_options options;
    const char *markdown, *json, *junit; /* NULL: not wanted; "-": on stdout, instead of the text */
} compare_wish;

#define COMPARE_WISH_DEFAULTS                                                                      \
    {                                                                                              \
        .options = { COMPARE_THRESHOLD, COMPARE_ALPHA, COMPARE_MOMENTS, false, false }             \
    }

/* An option with a value, as "--key value" or "--key=value". */
typedef struct option_value {
    const char *text; /* NULL: it is not this option */
    int taken;        /* arguments */
} option_value;

/* After a complaint, text is NULL and taken is -1. */
option_value option_take(const char *who, const char *key, const char *option, const char *next);

/* How many arguments it was; 0: not one of these; -1 after a complaint. */
int compare_take_option(compare_wish *w, const char *who, const char *option, const char *next);

/* "2%" or "0.02"; false if it is none or not below 10 (1000 %). */
bool option_share(const char *text, double *share);

/* Prints what is wished. EXIT_OK, EXIT_SLOWER if the last file is slower than the one before it, or
 * EXIT_UNUSABLE after a complaint. */
#define EXIT_SLOWER 1
int compare_tell(const compare_wish *w, const comparison *steps, size_t count);

#endif
