#include "command_line.h"

#include "command.h"
#include "command_help.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
