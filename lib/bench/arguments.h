/* lib/bench/arguments.h - options of a command line, of a program of benchmarks and of pk's
 * commands
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A table says what an option is called, what it takes and what it is for: of it are made what
 * reads a command line and what --help says (of pk also manual pages, and what shells complete). An
 * option's value stands behind it, or behind a "=" if its name begins with "--". */

typedef struct pki_option pki_option;

/* An option as it was given. */
typedef struct pki_option_given {
    const pki_option *option;
    const char *text; /* its value; NULL: nothing follows it */
    const void *of;   /* what pki_option_take was told */
} pki_option_given;

/* Puts it into the wish. False after a complaint. */
typedef bool pki_option_setter(void *wish, const pki_option_given *given);

/* What a shell offers for a value. */
typedef enum pki_option_kind {
    PKI_OPTION_NONE,
    PKI_OPTION_WORD,
    PKI_OPTION_FILE,
    PKI_OPTION_FOLDER
} pki_option_kind;

struct pki_option {
    const char *name;  /* "--top", or "-o" */
    const char *value; /* what the help calls its value: "N"; NULL: it has none */
    const char *help;  /* "{}" stands for `shown`; NULL: what the next one's says */
    pki_option_kind kind;
    pki_option_setter *take; /* NULL: sets the bool at this offset of the wish */
    size_t at;
    const char *needs; /* what a value must be, for those who complain */
    uint32_t least, most;
    double shown;
    bool begins_group; /* an empty line before it */
};

typedef struct pki_option_list {
    const pki_option *all;
    size_t count;
} pki_option_list;

/* The member of the wish that the option is for. */
void *pki_option_member(void *wish, const pki_option_given *given);

/* The option that words[0] names, of `count` words, goes into the wish; `of` is for the setter. How
 * many words it was; 0: there is no such option; -1: its setter has complained. */
int pki_option_take(const pki_option_list *list, void *wish, char **words, int count,
                    const void *of);

/* Each option with its text, and behind them --help, which whoever reads words looks for itself. */
void pki_options_print(const pki_option_list *list, FILE *file);

extern const pki_option pki_option_help;
bool pki_option_is_help(const char *word);

/* Its text (or that of those it shares one with), with its figure. */
#define PKI_OPTION_TEXT 512 /* bytes */
const char *pki_option_text(const pki_option *option, char text[PKI_OPTION_TEXT]);
