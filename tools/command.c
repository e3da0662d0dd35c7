#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "out/columns.h"
#include "out/json_write.h"

/* ---- what is wrong, in a line ---- */

int complain(const char *format, ...)
{
    va_list args;
    char *text = NULL;
    fflush(stdout);
    fputs("pk: ", stderr);
    va_start(args, format);
    if (vasprintf(&text, format, args) >= 0)
        pki_put_text(stderr, text);
    va_end(args);
    free(text);
    fputc('\n', stderr);
    return EXIT_UNUSABLE;
}

/* ---- what a table of options says, for people and for programs ---- */

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

/* EXIT_OK. */
static int options_print(const option_table *table)
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

/* One JSON object: command, usage, about, notes (texts), options (name, value, kind, help), files.
 */
static int options_print_json(const option_table *table)
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

/* ---- values ---- */

static void *member_at(void *wish, const option_given *given)
{
    return (char *)wish + given->option->at;
}

bool option_refuse(const option_given *given, const char *takes)
{
    complain("%s%s takes %s, not \"%s\"", given->of->who, given->option->name, takes, given->text);
    return false;
}

bool option_has_value(const option_given *given)
{
    const char *needs = given->option->needs;
    if (given->text && (!needs || given->text[0]))
        return true;
    if (needs)
        complain("%s%s needs %s", given->of->who, given->option->name, needs);
    else
        complain("%s: %s needs a value (pk %s --help)", given->of->command, given->option->name,
                 given->of->command);
    return false;
}

bool option_text(void *wish, const option_given *given)
{
    if (!option_has_value(given))
        return false;
    memcpy(member_at(wish, given), &given->text, sizeof given->text);
    return true;
}

static bool read_number(const char *text, unsigned long *n)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *n = strtoul(text, &end, 10);
    return !*end && !errno;
}

bool option_number(void *wish, const option_given *given)
{
    const option *o = given->option;
    char takes[64];
    unsigned long n, most = o->most ? o->most : UINT32_MAX;
    if (!option_has_value(given))
        return false;
    if (read_number(given->text, &n) && n >= o->least && n <= most) {
        *(uint32_t *)member_at(wish, given) = (uint32_t)n;
        return true;
    }
    if (o->most)
        snprintf(takes, sizeof takes, "a number from %u to %u", o->least, o->most);
    else
        snprintf(takes, sizeof takes, "a number from %u on", o->least);
    return option_refuse(given, takes);
}

/* ---- a command line ---- */

/* "--name=value" is both; of "-o" the value is the next argument. */
static bool is_named(const option *o, const char *text, const char **value)
{
    size_t length = strlen(o->name);
    if (strncmp(text, o->name, length) != 0)
        return false;
    bool inside = o->value && text[1] == '-' && text[length] == '=';
    *value = inside ? text + length + 1 : NULL;
    return inside || !text[length];
}

static bool set(const option_table *table, const option *o, void *wish, const char *text)
{
    const option_given given = {table, o, text};
    if (o->take)
        return o->take(wish, &given);
    return *(bool *)member_at(wish, &given) = true;
}

/* How many arguments it was; 0 after a complaint. */
static int parse_option(const option_table *table, void *wish, char **argv)
{
    const char *value;
    for (size_t i = 0; i < table->count; i++) {
        const option *o = &table->all[i];
        if (!is_named(o, argv[0], &value))
            continue;
        bool next = o->value && !value;
        if (!set(table, o, wish, next ? argv[1] : value))
            return 0;
        return next ? 2 : 1;
    }
    complain("%s has no option \"%s\" (pk %s --help)", table->command, argv[0], table->command);
    return 0;
}

static bool is_option(const option_table *table, const char *text)
{
    bool comment = table->sql && text[1] == '-' && text[2] && strchr(" \t\n", text[2]);
    return text[0] == '-' && text[1] && !comment;
}

static int print_help(const option_table *table, const char *text)
{
    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0)
        return options_print(table);
    return strcmp(text, "--help=json") == 0 ? options_print_json(table) : OPTIONS_READ;
}

int options_read(const option_table *table, void *wish, int argc, char **argv)
{
    bool operands_only = false;
    operands *others = (operands *)(void *)((char *)wish + table->operands);
    *others = (operands){.all = argv + 1};
    for (int i = 1, taken; i < argc; i += taken) {
        taken = 1;
        bool ends = !operands_only && strcmp(argv[i], "--") == 0;
        operands_only |= ends;
        if (ends && table->rest)
            return table->rest(wish, argv + i + 1, argc - i - 1), OPTIONS_READ;
        if (ends)
            continue;
        if (operands_only || !is_option(table, argv[i])) {
            others->all[others->count++] = argv[i];
            continue;
        }
        int status = print_help(table, argv[i]);
        if (status != OPTIONS_READ)
            return status;
        taken = parse_option(table, wish, argv + i);
        if (taken <= 0)
            return EXIT_UNUSABLE;
    }
    return OPTIONS_READ;
}
