/* tools/compare/command.c - `pk compare`, and what `pk bench-ab` takes as well */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/options.h"
#include "command.h"
#include "compare/compare.h"
#include "files.h"
#include "memory.h"
#include "read/json.h"

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
        complain("%s%s needs the name of a file (\"-\": here)", option_table_of(given)->who,
                 given->option->name);
    else if (is_standard(given->text) || output_check(given->text, OUTPUT_OR_STANDARD, &why))
        return true;
    else
        complain("%s%s", option_table_of(given)->who, why.text);
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

/* ---- pk compare ---- */

#define MOST_FILES 1000

typedef struct wish {
    compare_wish shared;
    const char *baseline;
    uint32_t keep;
    bool store;
    operands files;
} wish;

/* ---- options ---- */

static const option all_options[] = {
    {"--threshold", "2%", "changes up to this do not matter (default {}%)", PKI_OPTION_WORD,
     compare_parse_share, offsetof(wish, shared.options.threshold),
     .shown = 100 * COMPARE_THRESHOLD},
    {"--alpha", "0.01",
     "at most this probability that any \"slower\" or \"faster\" of a file is wrong, over all its "
     "benchmarks together (Holm; default {})",
     PKI_OPTION_WORD, compare_parse_alpha, offsetof(wish, shared.options.alpha),
     .shown = COMPARE_ALPHA},
    {"--moments", "25%",
     "how far two runs of one build at different moments may lie apart, where the files cannot say "
     "it (default {}%)",
     PKI_OPTION_WORD, compare_parse_share, offsetof(wish, shared.options.moments),
     .shown = 100 * COMPARE_MOMENTS},
    {"--cpu", NULL, "CPU time, not the clock that the benchmark counts by",
     .at = offsetof(wish, shared.options.cpu)},
    {"--any-machine", NULL, "verdicts even if the files come from different machines",
     .at = offsetof(wish, shared.options.any_machine)},
    {"--baseline", "DIR",
     "compare with the runs stored there of this machine, program and options; from {} of them on, "
     "their spread decides",
     PKI_OPTION_FOLDER, option_text, offsetof(wish, baseline), .shown = PKI_MOMENTS_DF + 1,
     .begins_group = true},
    {"--store", NULL, "then store NEW.json there, unless it became slower",
     .at = offsetof(wish, store)},
    {"--keep", "N", "store at most N runs of a kind (default {})", PKI_OPTION_WORD, option_number,
     offsetof(wish, keep), .needs = NULL, .least = 1, .most = 10000, .shown = BASELINE_KEEP},
    COMPARE_FORMS(wish),
};

static const option_table command_options = {
    .command = "compare",
    .usage = "[OPTION ...] OLD.json NEW.json [MORE.json ...]\n"
             "[OPTION ...] --baseline DIR NEW.json",
    .about =
        "Which benchmarks became slower. Files are those of pk_bench_main (--json FILE), of `pk\n"
        "bench-ab --save`, or of Google Benchmark (--benchmark_out); .gz too. With more than two,\n"
        "each is compared with the one before it and with the first.",
    .notes =
        "Files of different moments say little about small changes: the machine moved meanwhile.\n"
        "Then the verdict is \"cannot tell\", and `pk bench-ab` is the way to know.\n"
        "\n"
        "Exit status: 0; 1 if a benchmark of the last file is slower than in the one before it; 2\n"
        "if a file cannot be used or an option is wrong.",
    .options = {all_options, PKI_COUNT_OF(all_options)},
    .files = "json gz",
    .who = "compare: ",
    .operands = offsetof(wish, files),
};

static bool makes_sense(const wish *w)
{
    if (w->store && !w->baseline)
        complain("compare: --store needs --baseline DIR");
    else if (w->baseline && w->files.count != 1)
        complain("compare: --baseline takes one file, which is compared with what is stored");
    else if (!w->baseline && w->files.count < 2)
        complain("compare needs two files, or --baseline DIR and one (pk compare --help)");
    else if (w->files.count > MOST_FILES)
        complain("compare: more than %d files", MOST_FILES);
    else
        return true;
    return false;
}

/* ---- files ---- */

static int compare_chain(const wish *w, const bench_file *files)
{
    size_t count = w->files.count == 2 ? 1 : 2 * (w->files.count - 1), done = 0;
    comparison *steps = memory_zeroed(count, sizeof *steps);
    complaint why = {""};
    const bench_file *fresh = NULL;
    bool compared = true;
    while (compared && done < count) {
        size_t at = count == 1 ? 1 : done / 2 + 1;
        const bench_file *old = count > 1 && done % 2 ? &files[0] : &files[at - 1];
        fresh = &files[at];
        compared = compare_files(&old, 1, fresh, &w->shared.options, &steps[done], &why);
        done += compared;
    }
    int status = compared ? compare_print(&w->shared, steps, count)
                          : complain("%s: %s", fresh->path, why.text);
    for (size_t i = 0; i < done; i++)
        comparison_finish(&steps[i]);
    free(steps);
    return status;
}

static int compare_all(const wish *w)
{
    bench_file *files = memory_zeroed(w->files.count, sizeof *files);
    complaint why = {""};
    size_t loaded = 0;
    while (loaded < w->files.count && bench_file_load(&files[loaded], w->files.all[loaded], &why))
        loaded++;
    int status = loaded == w->files.count ? compare_chain(w, files)
                                          : complain("%s: %s", w->files.all[loaded], why.text);
    for (size_t i = 0; i < loaded; i++)
        bench_file_finish(&files[i]);
    free(files);
    return status;
}

/* ---- baselines ---- */

static int compare_stored(const wish *w, const baseline *stored, const bench_file *fresh)
{
    const bench_file **olds = memory_zeroed(stored->count, sizeof *olds);
    comparison c;
    complaint why = {""};
    for (size_t i = 0; i < stored->count; i++)
        olds[i] = &stored->files[i];
    bool compared = compare_files(olds, stored->count, fresh, &w->shared.options, &c, &why);
    free(olds);
    if (!compared)
        return complain("%s: %s", fresh->path, why.text);
    c.old_path = w->baseline;
    int status = compare_print(&w->shared, &c, 1);
    comparison_finish(&c);
    return status;
}

static int compare_and_store(const wish *w, const bench_file *fresh)
{
    baseline stored;
    complaint why = {""};
    if (!baseline_find(w->baseline, fresh, w->keep, &stored, &why))
        return complain("%s", why.text);
    int status = EXIT_OK;
    if (stored.count)
        status = compare_stored(w, &stored, fresh);
    else
        fprintf(stderr, "pk: %s has no run yet that %s could be compared with\n", w->baseline,
                fresh->path);
    baseline_finish(&stored);
    if (status == EXIT_OK && w->store && !baseline_store(w->baseline, fresh, w->keep, &why))
        return complain("%s", why.text);
    return status;
}

static int compare_baseline(const wish *w)
{
    bench_file fresh;
    complaint why = {""};
    if (w->store && strcmp(w->files.all[0], "-") == 0)
        return complain("compare: --store needs a file, not the standard input");
    if (!bench_file_load(&fresh, w->files.all[0], &why))
        return complain("%s: %s", w->files.all[0], why.text);
    int status = compare_and_store(w, &fresh);
    bench_file_finish(&fresh);
    return status;
}

int command_compare(int argc, char **argv)
{
    wish w = {.shared = COMPARE_WISH_DEFAULTS, .keep = BASELINE_KEEP};
    json_limit_memory(JSON_MEMORY_MOST);
    int status = options_read(&command_options, &w, argc, argv);
    if (status == OPTIONS_READ)
        status = !makes_sense(&w) ? EXIT_UNUSABLE
                 : w.baseline     ? compare_baseline(&w)
                                  : compare_all(&w);
    return status;
}
