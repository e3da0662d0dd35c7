#include "bench/arguments.h"

#include <string.h>

#include "base/compiler.h"

/* ---- reading ---- */

void *pki_option_member(void *wish, const pki_option_given *given)
{
    return (char *)wish + given->option->at;
}

/* "--name=value" is both; of "-o" the value is the next word. */
static bool is_named(const pki_option *o, const char *text, const char **value)
{
    size_t length = strlen(o->name);
    if (strncmp(text, o->name, length) != 0)
        return false;
    bool inside = o->value && text[1] == '-' && text[length] == '=';
    *value = inside ? text + length + 1 : NULL;
    return inside || !text[length];
}

static bool set(const pki_option_given *given, void *wish)
{
    if (given->option->take)
        return given->option->take(wish, given);
    return *(bool *)pki_option_member(wish, given) = true;
}

int pki_option_take(const pki_option_list *list, void *wish, char **words, int count,
                    const void *of)
{
    pki_option_given given = {.of = of};
    for (size_t i = 0; i < list->count; i++) {
        given.option = &list->all[i];
        if (!is_named(given.option, words[0], &given.text))
            continue;
        bool next = given.option->value && !given.text;
        if (next)
            given.text = count > 1 ? words[1] : NULL;
        return !set(&given, wish) ? -1 : next ? 2 : 1;
    }
    return 0;
}

/* ---- explaining ---- */

#define LINE 90
#define TERM_MOST 18 /* columns of a term that others stand in line with */

const pki_option pki_option_help = {.name = "--help, -h", .help = "this"};

bool pki_option_is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

const char *pki_option_text(const pki_option *option, char text[PKI_OPTION_TEXT])
{
    while (!option->help)
        option++;
    const char *from = option->help;
    size_t used = 0;
    for (const char *mark; (mark = strstr(from, "{}")); from = mark + 2)
        used += (size_t)snprintf(text + used, PKI_OPTION_TEXT - used, "%.*s%g", (int)(mark - from),
                                 from, option->shown);
    snprintf(text + used, PKI_OPTION_TEXT - used, "%s", from);
    return text;
}

/* "--json FILE, --junit FILE" of options that one text is for. How many these are. */
static size_t write_term(const pki_option *o, char term[PKI_OPTION_TEXT])
{
    size_t used = 0, i = 0;
    for (;; i++) {
        used += (size_t)snprintf(term + used, PKI_OPTION_TEXT - used, "%s%s%s%s", i ? ", " : "",
                                 o[i].name, o[i].value ? " " : "", o[i].value ? o[i].value : "");
        if (o[i].help)
            return i + 1;
    }
}

/* Where texts begin. */
static size_t column_of(const pki_option_list *list)
{
    char term[PKI_OPTION_TEXT];
    size_t widest = strlen(pki_option_help.name);
    for (size_t i = 0; i < list->count;) {
        i += write_term(&list->all[i], term);
        if (strlen(term) <= TERM_MOST)
            widest = PKI_MAX(widest, strlen(term));
    }
    return 2 + widest + 2;
}

static void print_wrapped(FILE *file, const char *text, size_t at, size_t column)
{
    bool first = true;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (!first && at + 1 + word > LINE) {
            fprintf(file, "\n%*s", (int)column, "");
            at = column;
        } else if (!first) {
            fputc(' ', file);
            at++;
        }
        fprintf(file, "%.*s", (int)word, text);
        at += word;
        text += word + (text[word] == ' ');
        first = false;
    }
    fputc('\n', file);
}

/* How many of the list it was. */
static size_t print_option(FILE *file, const pki_option *o, size_t column)
{
    char term[PKI_OPTION_TEXT], text[PKI_OPTION_TEXT];
    size_t count = write_term(o, term), width = strlen(term);
    size_t gap = 2 + width + 2 <= column ? column - 2 - width : 3;
    fprintf(file, "%s  %s%*s", o->begins_group ? "\n" : "", term, (int)gap, "");
    print_wrapped(file, pki_option_text(o, text), 2 + width + gap, column);
    return count;
}

void pki_options_print(const pki_option_list *list, FILE *file)
{
    size_t column = column_of(list);
    for (size_t i = 0; i < list->count;)
        i += print_option(file, &list->all[i], column);
    print_option(file, &pki_option_help, column);
}
