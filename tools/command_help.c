#include "command_help.h"

#include "base/compiler.h"
#include "command.h"
#include "out/json_write.h"

#include <stdio.h>
#include <string.h>

#define LINE 90
#define TERM_MOST 18  /* columns of a term that others stand in line with */
#define HELP_MOST 512 /* bytes */

static const option help_option = {.name = "--help, -h", .help = "this"};

/* With its figure. */
static const char *text_of(const option *o, char text[HELP_MOST])
{
    const char *from = o->help;
    size_t used = 0;
    for (const char *mark; (mark = strstr(from, "{}")); from = mark + 2)
        used += (size_t)snprintf(text + used, HELP_MOST - used, "%.*s%g", (int)(mark - from), from,
                                 o->shown);
    snprintf(text + used, HELP_MOST - used, "%s", from);
    return text;
}

/* "--json FILE, --junit FILE" of options that one text is for. How many these are. */
static size_t write_term(const option *o, char term[HELP_MOST])
{
    size_t used = 0, i = 0;
    for (;; i++) {
        used += (size_t)snprintf(term + used, HELP_MOST - used, "%s%s%s%s", i ? ", " : "",
                                 o[i].name, o[i].value ? " " : "", o[i].value ? o[i].value : "");
        if (o[i].help)
            return i + 1;
    }
}

/* ---- for people ---- */

/* Where texts begin. */
static size_t column_of(const option_table *table)
{
    char term[HELP_MOST];
    size_t widest = strlen(help_option.name);
    for (size_t i = 0; i < table->count;) {
        i += write_term(&table->all[i], term);
        if (strlen(term) <= TERM_MOST)
            widest = PKI_MAX(widest, strlen(term));
    }
    return 2 + widest + 2;
}

static void print_wrapped(const char *text, size_t at, size_t column)
{
    bool first = true;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (!first && at + 1 + word > LINE) {
            printf("\n%*s", (int)column, "");
            at = column;
        } else if (!first) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)word, text);
        at += word;
        text += word + (text[word] == ' ');
        first = false;
    }
    putchar('\n');
}

/* How many of the table it was. */
static size_t print_option(const option *o, size_t column)
{
    char term[HELP_MOST], text[HELP_MOST];
    size_t count = write_term(o, term), width = strlen(term);
    size_t gap = 2 + width + 2 <= column ? column - 2 - width : 3;
    printf("%s  %s%*s", o->begins_group ? "\n" : "", term, (int)gap, "");
    print_wrapped(text_of(&o[count - 1], text), 2 + width + gap, column);
    return count;
}

int options_print(const option_table *table)
{
    size_t column = column_of(table);
    const char *usage = table->usage;
    for (const char *prefix = "usage:"; usage; prefix = "\n      ") {
        printf("%s pk %s%s%.*s", prefix, table->command, *usage ? " " : "",
               (int)strcspn(usage, "\n"), usage);
        usage = strchr(usage, '\n');
        usage = usage ? usage + 1 : NULL;
    }
    printf("\n\n%s\n\n", table->about);
    for (size_t i = 0; i < table->count;)
        i += print_option(&table->all[i], column);
    print_option(&help_option, column);
    printf("\n%s\n", table->notes);
    return EXIT_OK;
}

/* ---- for programs ---- */

static void print_json_option(pki_json *json, const option *o, const char *name, const char *help)
{
    static const char *const kinds[] = {[OPTION_NONE] = "",
                                        [OPTION_WORD] = "text",
                                        [OPTION_FILE] = "file",
                                        [OPTION_FOLDER] = "folder"};
    pki_json_row(json);
    pki_json_open(json, NULL, '{');
    pki_json_text(json, "name", name);
    pki_json_text(json, "value", o->value);
    pki_json_text(json, "kind", kinds[o->kind]);
    pki_json_text(json, "help", help);
    pki_json_close(json, '}');
}

int options_print_json(const option_table *table)
{
    char text[HELP_MOST];
    pki_json json = {.file = stdout, .rows = true};
    pki_json_open(&json, NULL, '{');
    pki_json_text(&json, "command", table->command);
    pki_json_text(&json, "usage", table->usage);
    pki_json_text(&json, "about", table->about);
    pki_json_text(&json, "notes", table->notes);
    pki_json_bool(&json, "takes_files", table->files != NULL);
    pki_json_text(&json, "files", table->files);
    pki_json_open(&json, "options", '[');
    for (size_t i = 0; i < table->count; i++) {
        const option *last = &table->all[i];
        while (!last->help)
            last++;
        print_json_option(&json, &table->all[i], table->all[i].name, text_of(last, text));
    }
    print_json_option(&json, &help_option, "--help", help_option.help);
    print_json_option(&json, &help_option, "-h", help_option.help);
    pki_json_close(&json, ']');
    pki_json_close(&json, '}');
    putchar('\n');
    return EXIT_OK;
}
