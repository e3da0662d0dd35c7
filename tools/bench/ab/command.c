/* tools/bench/ab/command.c - pk bench-ab */
#include "bench/ab/ab.h"
#include "bench/values.h"
#include "base/compiler.h"
#include "command.h"
#include "read/json_read.h"

#include <regex.h>
#include <string.h>

/* ---- options ---- */

static bool parse_time(void *wish, const option_given *given)
{
    double *seconds = (double *)(void *)((char *)wish + given->option->at), ns;
    if (!option_has_value(given))
        return false;
    if (!pki_bench_read_time(given->text, &ns) || ns >= 1e15)
        return option_refuse(given, "a time such as 2s or 500ms");
    *seconds = ns / 1e9;
    return true;
}

_Static_assert(AB_RUNS_LEAST == 8, "the help says so");

static const option all_options[] = {
    {"--launches", "N", "of each build (default {}, at least 8)", OPTION_WORD, option_number,
     offsetof(ab_wish, runs), .least = AB_RUNS_LEAST, .most = 1000, .shown = AB_RUNS},
    {"--time", "2s", "of measuring each benchmark, both builds, all process runs (default {}s)",
     OPTION_WORD, parse_time, offsetof(ab_wish, time), .shown = AB_TIME},
    {"--budget", "5min", "begin no process run after this", OPTION_WORD, parse_time,
     .at = offsetof(ab_wish, budget)},
    {"--timeout", "10min", "for one process run (default 10min)", OPTION_WORD, parse_time,
     .at = offsetof(ab_wish, timeout)},
    {"--filter", "REGEX", "only benchmarks whose name it matches", OPTION_WORD, option_text,
     .at = offsetof(ab_wish, filter)},
    {"--google", NULL, "the programs are Google Benchmark's", .at = offsetof(ab_wish, google)},
    {"--quiet", NULL, "no progress on a terminal", .at = offsetof(ab_wish, quiet)},
    {"--threshold", "1%",
     "changes up to this do not matter (default {}%; where code and pages come to lie alone moves "
     "some kernels by that much)",
     OPTION_WORD, compare_parse_share, offsetof(ab_wish, shared.options.threshold),
     .shown = 100 * AB_THRESHOLD, .begins_group = true},
    {"--alpha", "0.01",
     "at most this probability that any \"slower\" or \"faster\" is wrong, over all benchmarks "
     "together (Holm; default {})",
     OPTION_WORD, compare_parse_alpha, offsetof(ab_wish, shared.options.alpha),
     .shown = COMPARE_ALPHA},
    {"--cpu", NULL, "CPU time, not the clock that the benchmark counts by",
     .at = offsetof(ab_wish, shared.options.cpu)},
    {"--save", "DIR", "every sample, as DIR/old.json and DIR/new.json for pk compare",
     OPTION_FOLDER, option_text, offsetof(ab_wish, save), .begins_group = true},
    {"--baseline", "DIR",
     "store NEW's process runs there as a run of pk compare --baseline, unless it became slower",
     OPTION_FOLDER, option_text, .at = offsetof(ab_wish, baseline)},
    COMPARE_FORMS(ab_wish),
};

static void set_arguments(void *wish, char **arguments, int count)
{
    ab_wish *w = wish;
    w->arguments = arguments;
    w->argument_count = count;
}

static const option_table command_options = {
    .command = "bench-ab",
    .usage = "[OPTION ...] OLD NEW [-- ARGUMENT ...]",
    .about =
        "Which benchmarks of NEW are slower than those of OLD, from process runs of both in turn:\n"
        "one comparison that other users of the machine cannot spoil. OLD and NEW are\n"
        "  programs         of pk_bench_main, that take ARGUMENTs; each process run is of one\n"
        "  shared objects   the same, linked with -shared: each process run loads both of them and\n"
        "                   alternates short batches; finer, and twice as fast",
    .notes = "Exit status: 0; 1 if a benchmark is slower; 2 if OLD or NEW cannot be used.",
    .all = all_options,
    .count = PKI_COUNT_OF(all_options),
    .files = "",
    .who = "bench-ab: ",
    .operands = offsetof(ab_wish, builds),
    .rest = set_arguments,
};

static bool makes_sense(ab_wish *w)
{
    regex_t filter;
    if (w->builds.count > 2)
        return complain("bench-ab takes two builds, and \"%s\" is a third", w->builds.all[2]),
               false;
    if (w->builds.count < 2)
        return complain("bench-ab needs two builds, OLD and NEW (pk bench-ab --help)"), false;
    for (size_t i = 0; i < 2; i++)
        w->paths[i] = w->builds.all[i];
    if (!w->filter)
        return true;
    if (regcomp(&filter, w->filter, REG_EXTENDED | REG_NOSUB))
        return complain("bench-ab: --filter: \"%s\" is no regular expression", w->filter), false;
    regfree(&filter);
    return true;
}

int command_bench_ab(int argc, char **argv)
{
    ab_wish w = {.shared = COMPARE_WISH_DEFAULTS, .runs = AB_RUNS, .time = AB_TIME, .timeout = 600};
    w.shared.options.threshold = AB_THRESHOLD;
    if (argc > 1 && strcmp(argv[1], AB_BOTH) == 0)
        return ab_run_both(argc - 2, argv + 2);
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    json_limit_memory(JSON_MEMORY_MOST);
    return makes_sense(&w) ? ab_run(&w) : EXIT_UNUSABLE;
}
