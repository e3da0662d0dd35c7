#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int command_end(int status)
{
    if (status != EXIT_UNUSABLE && (fflush(stdout) != 0 || ferror(stdout)))
        return complain("the output could not be written");
    return status;
}

/* ---- what a table of options says, for people and for programs ---- */

/* EXIT_OK. */
static int options_print(const option_table *table)
{
    const char *usage = table->usage;
    for (const char *prefix = "usage:"; usage; prefix = "\n      ") {
        printf("%s pk %s%s%.*s", prefix, table->command, *usage ? " " : "",
               (int)strcspn(usage, "\n"), usage);
        usage = strchr(usage, '\n');
        usage = usage ? usage + 1 : NULL;
    }
    printf("\n\n%s\n\n", table->about);
    pki_options_print(&table->options, stdout);
    printf("\n%s\n", table->notes);
    return EXIT_OK;
}

static void print_json_option(pki_json *json, const option *o, const char *name)
{
    char help[PKI_OPTION_TEXT];
    static const char *const kinds[] = {[PKI_OPTION_NONE] = "",
                                        [PKI_OPTION_WORD] = "text",
                                        [PKI_OPTION_FILE] = "file",
                                        [PKI_OPTION_FOLDER] = "folder"};
    pki_json_row(json);
    pki_json_open(json, NULL, '{');
    pki_json_text(json, "name", name);
    pki_json_text(json, "value", o->value);
    pki_json_text(json, "kind", kinds[o->kind]);
    pki_json_text(json, "help", pki_option_text(o, help));
    pki_json_close(json, '}');
}

/* One JSON object: command, usage, about, notes (texts), options (name, value, kind, help), files.
 */
static int options_print_json(const option_table *table)
{
    pki_json json = {.file = stdout, .rows = true};
    pki_json_open(&json, NULL, '{');
    pki_json_text(&json, "command", table->command);
    pki_json_text(&json, "usage", table->usage);
    pki_json_text(&json, "about", table->about);
    pki_json_text(&json, "notes", table->notes);
    pki_json_bool(&json, "takes_files", table->files != NULL);
    pki_json_text(&json, "files", table->files);
    pki_json_open(&json, "options", '[');
    for (size_t i = 0; i < table->options.count; i++)
        print_json_option(&json, &table->options.all[i], table->options.all[i].name);
    print_json_option(&json, &pki_option_help, "--help");
    print_json_option(&json, &pki_option_help, "-h");
    pki_json_close(&json, ']');
    pki_json_close(&json, '}');
    putchar('\n');
    return EXIT_OK;
}

/* ---- values ---- */

bool option_refuse(const option_given *given, const char *takes)
{
    complain("%s%s takes %s, not \"%s\"", option_table_of(given)->who, given->option->name, takes,
             given->text);
    return false;
}

bool option_has_value(const option_given *given)
{
    const char *needs = given->option->needs;
    if (given->text && (!needs || given->text[0]))
        return true;
    if (needs)
        complain("%s%s needs %s", option_table_of(given)->who, given->option->name, needs);
    else
        complain("%s: %s needs a value (pk %s --help)", option_table_of(given)->command,
                 given->option->name, option_table_of(given)->command);
    return false;
}

bool option_text(void *wish, const option_given *given)
{
    if (!option_has_value(given))
        return false;
    memcpy(pki_option_member(wish, given), &given->text, sizeof given->text);
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
        *(uint32_t *)pki_option_member(wish, given) = (uint32_t)n;
        return true;
    }
    if (o->most)
        snprintf(takes, sizeof takes, "a number from %u to %u", o->least, o->most);
    else
        snprintf(takes, sizeof takes, "a number from %u on", o->least);
    return option_refuse(given, takes);
}

/* ---- a command line ---- */

/* How many arguments it was; 0 after a complaint. */
static int parse_option(const option_table *table, void *wish, char **argv, int count)
{
    int taken = pki_option_take(&table->options, wish, argv, count, table);
    if (taken == 0)
        complain("%s has no option \"%s\" (pk %s --help)", table->command, argv[0], table->command);
    return taken;
}

static bool is_option(const option_table *table, const char *text)
{
    bool comment = table->sql && text[1] == '-' && text[2] && strchr(" \t\n", text[2]);
    return text[0] == '-' && text[1] && !comment;
}

static int print_help(const option_table *table, const char *text)
{
    if (pki_option_is_help(text))
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
        taken = parse_option(table, wish, argv + i, argc - i);
        if (taken <= 0)
            return EXIT_UNUSABLE;
    }
    return OPTIONS_READ;
}
