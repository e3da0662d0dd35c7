/* tools/bench/compare/command.c - pk compare */
#include "bench/baseline.h"
#include "arguments.h"
#include "command.h"
#include "bench/compare_options.h"
#include "read/json_read.h"

#include <stdlib.h>
#include <string.h>

#define JSON_MEMORY_MOST ((size_t)4 << 30)
#define MOST_FILES 1000

typedef struct wish {
    compare_wish shared;
    const char *baseline;
    size_t keep;
    bool store, help;
    const char **paths;
    size_t count;
} wish;

static int print_help(void)
{
    printf(
        "usage: pk compare [OPTION ...] OLD.json NEW.json [MORE.json ...]\n"
        "       pk compare [OPTION ...] --baseline DIR NEW.json\n"
        "\n"
        "Which benchmarks became slower. Files are those of pk_bench_main (--json FILE), of `pk\n"
        "bench-ab --save`, or of Google Benchmark (--benchmark_out); .gz too. With more than two,\n"
        "each is compared with the one before it and with the first.\n"
        "\n"
        "  --threshold 2%%    changes up to this do not matter (default %.0f%%)\n"
        "  --alpha 0.01      at most this probability that any \"slower\" or \"faster\" of a file is\n"
        "                    wrong, over all its benchmarks together (Holm; default %.2f)\n"
        "  --moments 25%%     how far two runs of one build at different moments may lie apart,\n"
        "                    where the files cannot say it (default %.0f%%)\n"
        "  --cpu             CPU time, not the clock that the benchmark counts by\n"
        "  --any-machine     verdicts even if the files come from different machines\n"
        "\n"
        "  --baseline DIR    compare with the runs stored there of this machine, program and\n"
        "                    options; from %d of them on, their spread decides\n"
        "  --store           then store NEW.json there, unless it became slower\n"
        "  --keep N          store at most N runs of a kind (default %d)\n"
        "\n"
        "  --markdown FILE, --json FILE, --junit FILE   the result in these forms, too (\"-\": here,\n"
        "                    instead of the text)\n"
        "  --help            this\n"
        "\n"
        "Files of different moments say little about small changes: the machine moved meanwhile.\n"
        "Then the verdict is \"cannot tell\", and `pk bench-ab` is the way to know.\n"
        "\n"
        "Exit status: 0; 1 if a benchmark of the last file is slower than in the one before it; 2\n"
        "if a file cannot be used or an option is wrong.\n",
        100 * COMPARE_THRESHOLD, COMPARE_ALPHA, 100 * COMPARE_MOMENTS, PKI_MOMENTS_DF + 1,
        BASELINE_KEEP);
    return EXIT_OK;
}

/* ---- arguments ---- */

static int take_keep(wish *w, const char *option, const char *next)
{
    option_value v = option_take("compare", "--keep", option, next);
    char *end;
    if (!v.text)
        return v.taken;
    unsigned long keep = v.text[0] >= '0' && v.text[0] <= '9' ? strtoul(v.text, &end, 10) : 0;
    if (keep < 1 || keep > 10000 || *end) {
        complain("compare: --keep takes a number from 1 to 10000, not \"%s\"", v.text);
        return -1;
    }
    w->keep = keep;
    return v.taken;
}

/* How many arguments it was; -1 after a complaint. */
static int take_option(wish *w, const char *option, const char *next)
{
    int taken = compare_take_option(&w->shared, "compare", option, next);
    if (taken)
        return taken;
    option_value folder = option_take("compare", "--baseline", option, next);
    if (folder.taken) {
        w->baseline = folder.text;
        return folder.taken;
    }
    taken = take_keep(w, option, next);
    if (taken)
        return taken;
    if (strcmp(option, "--store") == 0)
        return w->store = true;
    if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
        return w->help = true;
    complain("compare has no option \"%s\" (pk compare --help)", option);
    return -1;
}

static bool check(const wish *w)
{
    if (w->help)
        return true;
    if (w->store && !w->baseline)
        complain("compare: --store needs --baseline DIR");
    else if (w->baseline && w->count != 1)
        complain("compare: --baseline takes one file, which is compared with what is stored");
    else if (!w->baseline && w->count < 2)
        complain("compare needs two files, or --baseline DIR and one (pk compare --help)");
    else if (w->count > MOST_FILES)
        complain("compare: more than %d files", MOST_FILES);
    else
        return true;
    return false;
}

static bool take_arguments(wish *w, int argc, char **argv)
{
    arguments all = arguments_of(argc, argv);
    for (argument one; !w->help && arguments_next(&all, &one);) {
        int taken = 1;
        if (one.is_option)
            taken = take_option(w, one.text, one.next);
        else
            w->paths[w->count++] = one.text;
        if (taken <= 0)
            return false;
        arguments_took(&all, taken);
    }
    return check(w);
}

/* ---- files ---- */

static int compare_chain(const wish *w, const bench_file *files)
{
    size_t count = w->count == 2 ? 1 : 2 * (w->count - 1), done = 0;
    comparison *steps = calloc(count, sizeof *steps);
    int status = steps ? EXIT_OK : complain("out of memory");
    for (; status == EXIT_OK && done < count; done++) {
        size_t at = count == 1 ? 1 : done / 2 + 1;
        const bench_file *old = count > 1 && done % 2 ? &files[0] : &files[at - 1];
        complaint why = {""};
        if (!compare_files(&old, 1, &files[at], &w->shared.options, &steps[done], &why)) {
            status = complain("%s: %s", files[at].path, why.text);
            break;
        }
    }
    if (status == EXIT_OK)
        status = compare_tell(&w->shared, steps, count);
    for (size_t i = 0; i < done; i++)
        comparison_finish(&steps[i]);
    free(steps);
    return status;
}

static int compare_all(const wish *w)
{
    bench_file *files = calloc(w->count, sizeof *files);
    int status = files ? EXIT_OK : complain("out of memory");
    size_t loaded = 0;
    for (; status == EXIT_OK && loaded < w->count; loaded++) {
        complaint why = {""};
        if (!bench_file_load(&files[loaded], w->paths[loaded], &why)) {
            status = complain("%s: %s", w->paths[loaded], why.text);
            break;
        }
    }
    if (status == EXIT_OK)
        status = compare_chain(w, files);
    for (size_t i = 0; i < loaded; i++)
        bench_file_finish(&files[i]);
    free(files);
    return status;
}

/* ---- baselines ---- */

static int compare_stored(const wish *w, const baseline *stored, const bench_file *fresh)
{
    const bench_file **olds = calloc(stored->count, sizeof *olds);
    comparison c;
    complaint why = {""};
    if (!olds)
        return complain("out of memory");
    for (size_t i = 0; i < stored->count; i++)
        olds[i] = &stored->files[i];
    bool compared = compare_files(olds, stored->count, fresh, &w->shared.options, &c, &why);
    free(olds);
    if (!compared)
        return complain("%s: %s", fresh->path, why.text);
    c.old_path = w->baseline;
    int status = compare_tell(&w->shared, &c, 1);
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
    if (w->store && strcmp(w->paths[0], "-") == 0)
        return complain("compare: --store needs a file, not the standard input");
    if (!bench_file_load(&fresh, w->paths[0], &why))
        return complain("%s: %s", w->paths[0], why.text);
    int status = compare_and_store(w, &fresh);
    bench_file_finish(&fresh);
    return status;
}

int command_compare(int argc, char **argv)
{
    wish w = {.shared = COMPARE_WISH_DEFAULTS, .keep = BASELINE_KEEP};
    int status = EXIT_UNUSABLE;
    w.paths = calloc((size_t)argc, sizeof *w.paths);
    if (!w.paths)
        return complain("out of memory");
    json_limit_memory(JSON_MEMORY_MOST);
    if (take_arguments(&w, argc, argv))
        status = w.help ? print_help() : w.baseline ? compare_baseline(&w) : compare_all(&w);
    free(w.paths);
    return status;
}
