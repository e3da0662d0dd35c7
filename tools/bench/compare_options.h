/* tools/bench/compare_options.h - what `pk compare` and `pk bench-ab` both take, and where they put
 * it. */
#pragma once

#include "bench/compare/compare.h"
#include "command_line.h"

typedef struct compare_wish {
    compare_options options;
    const char *markdown, *json, *junit; /* NULL: not wanted; "-": on stdout, instead of the text */
} compare_wish;

#define COMPARE_WISH_DEFAULTS                                                                      \
    {                                                                                              \
        .options = { COMPARE_THRESHOLD, COMPARE_ALPHA, COMPARE_MOMENTS, false, false }             \
    }

/* Ways to take a value; the option's offset is that of its member in the command's wish. */
option_take compare_parse_share; /* a double */
option_take compare_parse_alpha; /* a double */
option_take compare_parse_file;  /* a const char *: a file that can be written, or "-" */

/* Of both commands; the wish has its compare_wish as `shared`. */
#define COMPARE_FORM(wish, name, help, member)                                                     \
    {                                                                                              \
        name, "FILE", help, OPTION_FILE, compare_parse_file, .at = offsetof(wish, shared.member)   \
    }
#define COMPARE_FORMS(wish)                                                                        \
    COMPARE_FORM(wish, "--markdown", NULL, markdown), COMPARE_FORM(wish, "--json", NULL, json),    \
        COMPARE_FORM(wish, "--junit",                                                              \
                     "the result in these forms, too (\"-\": here, instead of the text)", junit)

/* Prints what is wished. EXIT_OK, EXIT_SLOWER if the last file is slower than the one before it, or
 * EXIT_UNUSABLE after a complaint. */
#define EXIT_SLOWER 1
int compare_print(const compare_wish *w, const comparison *steps, size_t count);
