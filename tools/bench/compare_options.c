#include "bench/compare_options.h"

#include "base/compiler.h"
#include "command.h"
#include "output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- taking ---- */

option_value option_take(const char *who, const char *key, const char *option, const char *next)
{
    size_t length = strlen(key);
    if (strncmp(option, key, length) != 0 || (option[length] && option[length] != '='))
        return (option_value){NULL, 0};
    if (option[length] == '=')
        return (option_value){option + length + 1, 1};
    if (next)
        return (option_value){next, 2};
    complain("%s: %s needs a value (pk %s --help)", who, key, who);
    return (option_value){NULL, -1};
}

/* What strtod also takes, hexadecimal and names, is no number here. */
static bool read_number(const char *text, double *number, const char **end)
{
    char *stop;
    if (!*text || strspn(text, "0123456789.") == 0)
        return false;
    errno = 0;
    *number = strtod(text, &stop);
    *end = stop;
    return stop > text && !errno && !memchr(text, 'x', (size_t)(stop - text));
}

bool option_share(const char *text, double *share)
{
    const char *end;
    double number;
    if (!read_number(text, &number, &end))
        return false;
    bool percent = strcmp(end, "%") == 0;
    number = percent ? number / 100 : number;
    if ((!percent && *end) || number >= 10 || (!percent && number >= 1))
        return false;
    *share = number;
    return true;
}

static int take_share(const char *who, const char *key, const char *option, const char *next,
                      double *share)
{
    option_value v = option_take(who, key, option, next);
    if (v.text && !option_share(v.text, share)) {
        complain("%s: %s takes a percentage such as 2%%, not \"%s\"", who, key, v.text);
        return -1;
    }
    return v.taken;
}

static int take_alpha(compare_wish *w, const char *who, const char *option, const char *next)
{
    option_value v = option_take(who, "--alpha", option, next);
    double alpha = 0;
    if (v.text && (!option_share(v.text, &alpha) || alpha < 1e-9 || alpha > 0.5)) {
        complain("%s: --alpha takes a probability up to 0.5, not \"%s\"", who, v.text);
        return -1;
    }
    w->options.alpha = v.text ? alpha : w->options.alpha;
    return v.taken;
}

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

static int take_file(const char *who, const char *key, const char *option, const char *next,
                     const char **path)
{
    complaint why = {""};
    option_value v = option_take(who, key, option, next);
    if (v.text && !v.text[0]) {
        complain("%s: %s needs the name of a file (\"-\": here)", who, key);
        return -1;
    }
    if (v.text && !is_standard(v.text) && !output_check(v.text, OUTPUT_OR_STANDARD, &why)) {
        complain("%s: %s", who, why.text);
        return -1;
    }
    *path = v.text ? v.text : *path;
    return v.taken;
}

int compare_take_option(compare_wish *w, const char *who, const char *option, const char *next)
{
    int taken = take_share(who, "--threshold", option, next, &w->options.threshold);
    taken = taken ? taken : take_share(who, "--moments", option, next, &w->options.moments);
    taken = taken ? taken : take_alpha(w, who, option, next);
    taken = taken ? taken : take_file(who, "--markdown", option, next, &w->markdown);
    taken = taken ? taken : take_file(who, "--json", option, next, &w->json);
    taken = taken ? taken : take_file(who, "--junit", option, next, &w->junit);
    if (!taken && strcmp(option, "--any-machine") == 0)
        return w->options.any_machine = true;
    if (!taken && strcmp(option, "--cpu") == 0)
        return w->options.cpu = true;
    return taken;
}

/* ---- telling ---- */

static bool write_file(const char *path, compare_show *show, const comparison *steps, size_t count)
{
    complaint why = {""};
    output file;
    if (is_standard(path)) {
        show(steps, count, stdout); /* main looks after it */
        return true;
    }
    bool opened = output_open(&file, path, OUTPUT_OR_STANDARD, &why);
    if (opened)
        show(steps, count, file.to);
    if (opened && output_close(&file, true, &why))
        return true;
    return complain("%s", why.text), false;
}

int compare_tell(const compare_wish *w, const comparison *steps, size_t count)
{
    const struct {
        const char *path;
        compare_show *show;
    } files[] = {
        {w->markdown, compare_markdown}, {w->json, compare_json}, {w->junit, compare_junit}};
    const comparison *last = count > 1 ? &steps[count - 2] : &steps[0];
    bool text = true;
    for (size_t i = 0; i < PKI_COUNT_OF(files); i++)
        text &= !files[i].path || !is_standard(files[i].path);
    if (text)
        compare_text(steps, count, stdout);
    for (size_t i = 0; i < PKI_COUNT_OF(files); i++)
        if (files[i].path && !write_file(files[i].path, files[i].show, steps, count))
            return EXIT_UNUSABLE;
    return last->changes[PKI_SLOWER] ? EXIT_SLOWER : EXIT_OK;
}
