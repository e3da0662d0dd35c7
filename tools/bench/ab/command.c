/* tools/bench/ab/command.c - pk bench-ab */
#include "bench/ab/ab.h"
#include "base/compiler.h"
#include "command.h"
#include "read/json_read.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define JSON_MEMORY_MOST ((size_t)4 << 30)

static int print_help(void)
{
    printf(
        "usage: pk bench-ab [OPTION ...] OLD NEW [-- ARGUMENT ...]\n"
        "\n"
        "Which benchmarks of NEW are slower than those of OLD, from launches of both in turn: the\n"
        "one comparison that other users of the machine cannot spoil. OLD and NEW are\n"
        "  programs         of pk_bench_main, that take ARGUMENTs; one process per launch\n"
        "  shared objects   the same, linked with -shared: every launch loads both of them into one\n"
        "                   process and alternates short batches; finer, and twice as fast\n"
        "\n"
        "  --launches N      of each build (default %d, at least %d)\n"
        "  --time 2s         of measuring each benchmark, both builds, all launches (default %gs)\n"
        "  --budget 5min     begin no launch after this\n"
        "  --timeout 10min   for one launch (default 10min)\n"
        "  --filter REGEX    only benchmarks whose name it matches\n"
        "  --google          the programs are Google Benchmark's\n"
        "  --quiet           no progress on a terminal\n"
        "\n"
        "  --threshold 1%%    changes up to this do not matter (default %g%%; where code and pages\n"
        "                    come to lie alone moves some kernels by that much)\n"
        "  --alpha 0.01      at most this probability that any \"slower\" or \"faster\" is wrong,\n"
        "                    over all benchmarks together (Holm; default %g)\n"
        "  --cpu             CPU time, not the clock that the benchmark counts by\n"
        "\n"
        "  --save DIR        every sample, as DIR/old.json and DIR/new.json for pk compare\n"
        "  --baseline DIR    store NEW's launches there as a run of pk compare --baseline, unless\n"
        "                    it became slower\n"
        "  --markdown FILE, --json FILE, --junit FILE   the result in these forms, too (\"-\": here,\n"
        "                    instead of the text)\n"
        "  --help            this\n"
        "\n"
        "Exit status: 0; 1 if a benchmark is slower; 2 if OLD or NEW cannot be used.\n",
        AB_LAUNCHES, AB_LAUNCHES_LEAST, AB_TIME, 100 * AB_THRESHOLD, COMPARE_ALPHA);
    return EXIT_OK;
}

/* ---- arguments ---- */

static bool read_time(const char *text, double *seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"", 1}};
    char *end;
    if (*text != '.' && (*text < '0' || *text > '9'))
        return false;
    *seconds = strtod(text, &end);
    for (size_t i = 0; i < PKI_COUNT_OF(units); i++)
        if (strcmp(end, units[i].name) == 0) {
            *seconds *= units[i].seconds;
            return *seconds > 0 && *seconds < 1e6;
        }
    return false;
}

static int take_time(const char *key, const char *option, const char *next, double *seconds)
{
    option_value v = option_take("bench-ab", key, option, next);
    if (v.text && !read_time(v.text, seconds)) {
        complain("bench-ab: %s takes a time such as 2s or 500ms, not \"%s\"", key, v.text);
        return -1;
    }
    return v.taken;
}

static int take_launches(ab_wish *w, const char *option, const char *next)
{
    option_value v = option_take("bench-ab", "--launches", option, next);
    char *end;
    if (!v.text)
        return v.taken;
    unsigned long n = v.text[0] >= '0' && v.text[0] <= '9' ? strtoul(v.text, &end, 10) : 0;
    if (n < AB_LAUNCHES_LEAST || n > 1000 || *end) {
        complain("bench-ab: --launches takes a number from %d to 1000, not \"%s\"",
                 AB_LAUNCHES_LEAST, v.text);
        return -1;
    }
    w->launches = n;
    return v.taken;
}

static int take_text(const char *key, const char *option, const char *next, const char **text)
{
    option_value v = option_take("bench-ab", key, option, next);
    *text = v.text ? v.text : *text;
    return v.taken;
}

static bool take_flag(ab_wish *w, const char *option)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"--google", &w->google}, {"--quiet", &w->quiet}, {"--help", &w->help}, {"-h", &w->help}};
    for (size_t i = 0; i < PKI_COUNT_OF(flags); i++)
        if (strcmp(option, flags[i].name) == 0)
            return *flags[i].flag = true;
    return false;
}

/* How many arguments it was; -1 after a complaint. */
static int take_option(ab_wish *w, const char *option, const char *next)
{
    int taken = compare_take_option(&w->shared, "bench-ab", option, next);
    taken = taken ? taken : take_time("--time", option, next, &w->time);
    taken = taken ? taken : take_time("--budget", option, next, &w->budget);
    taken = taken ? taken : take_time("--timeout", option, next, &w->timeout);
    taken = taken ? taken : take_launches(w, option, next);
    taken = taken ? taken : take_text("--filter", option, next, &w->filter);
    taken = taken ? taken : take_text("--save", option, next, &w->save);
    taken = taken ? taken : take_text("--baseline", option, next, &w->baseline);
    taken = taken ? taken : take_flag(w, option);
    if (taken)
        return taken;
    complain("bench-ab has no option \"%s\" (pk bench-ab --help)", option);
    return -1;
}

static bool check(const ab_wish *w, int paths)
{
    regex_t filter;
    if (w->help)
        return true;
    if (paths != 2)
        return complain("bench-ab needs two builds, OLD and NEW (pk bench-ab --help)"), false;
    if (!w->filter)
        return true;
    if (regcomp(&filter, w->filter, REG_EXTENDED | REG_NOSUB))
        return complain("bench-ab: --filter: \"%s\" is no regular expression", w->filter), false;
    regfree(&filter);
    return true;
}

static bool take_arguments(ab_wish *w, int argc, char **argv)
{
    int paths = 0;
    for (int i = 1; i < argc && !w->help;) {
        int taken = 1;
        if (strcmp(argv[i], "--") == 0) {
            w->arguments = argv + i + 1;
            w->argument_count = argc - i - 1;
            break;
        }
        if (argv[i][0] == '-' && argv[i][1])
            taken = take_option(w, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        else if (paths < 2)
            w->paths[paths++] = argv[i];
        else
            return complain("bench-ab takes two builds, and \"%s\" is a third", argv[i]), false;
        if (taken < 0)
            return false;
        i += taken;
    }
    return check(w, paths);
}

int command_bench_ab(int argc, char **argv)
{
    ab_wish w = {
        .shared = COMPARE_WISH_DEFAULTS, .launches = AB_LAUNCHES, .time = AB_TIME, .timeout = 600};
    w.shared.options.threshold = AB_THRESHOLD;
    if (argc > 1 && strcmp(argv[1], AB_LAUNCH) == 0)
        return ab_launch(argc - 2, argv + 2);
    if (!take_arguments(&w, argc, argv))
        return EXIT_UNUSABLE;
    json_limit_memory(JSON_MEMORY_MOST);
    return w.help ? print_help() : ab_run(&w);
}
