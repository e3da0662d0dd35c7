#include "bench/compare_options.h"
#include "bench/options.h"

#include "base/compiler.h"
#include "command.h"
#include "files.h"

#include <string.h>

/* ---- taking ---- */

bool compare_parse_share(void *wish, const option_given *given)
{
    double *share = (double *)(void *)((char *)wish + given->option->at);
    return option_has_value(given) && (pki_bench_read_share(given->text, share) ||
                                       option_refuse(given, "a percentage such as 2%"));
}

bool compare_parse_alpha(void *wish, const option_given *given)
{
    double *alpha = (double *)(void *)((char *)wish + given->option->at), taken;
    if (!option_has_value(given))
        return false;
    if (!pki_bench_read_share(given->text, &taken) || taken < 1e-9 || taken > 0.5)
        return option_refuse(given, "a probability up to 0.5");
    *alpha = taken;
    return true;
}

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

bool compare_parse_file(void *wish, const option_given *given)
{
    complaint why = {""};
    if (!option_text(wish, given))
        return false;
    if (!given->text[0])
        complain("%s%s needs the name of a file (\"-\": here)", given->of->who,
                 given->option->name);
    else if (is_standard(given->text) || output_check(given->text, OUTPUT_OR_STANDARD, &why))
        return true;
    else
        complain("%s%s", given->of->who, why.text);
    return false;
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

int compare_print(const compare_wish *w, const comparison *steps, size_t count)
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
