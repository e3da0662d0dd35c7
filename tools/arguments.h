/* tools/arguments.h - a command's arguments, one by one: which is an option, which a file. */
#ifndef TOOLS_ARGUMENTS_H
#define TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct arguments {
    char **all;
    int count, at; /* at: the next one */
    bool files_only;
} arguments;

typedef struct argument {
    const char *text, *next; /* next: what may be an option's value; NULL: nothing follows */
    bool is_option;          /* begins with "-", is more than that, and no "--" came before it */
} argument;

/* A command's: the first one is its name. */
static inline arguments arguments_of(int argc, char **argv)
{
    return (arguments){argv, argc, 1, false};
}

/* False at the end. */
static inline bool arguments_next(arguments *a, argument *out)
{
    if (!a->files_only && a->at < a->count && strcmp(a->all[a->at], "--") == 0) {
        a->files_only = true;
        a->at++;
    }
    if (a->at >= a->count)
        return false;
    const char *text = a->all[a->at++];
    *out = (argument){text, a->at < a->count ? a->all[a->at] : NULL,
                      !a->files_only && text[0] == '-' && text[1]};
    return true;
}

/* An option has taken so many arguments, itself among them. */
static inline void arguments_took(arguments *a, int taken)
{
    a->at += taken - 1;
}

#endif
