/* tools/ab/command.c - `pk ab` */
#include <stdlib.h>
#include <string.h>

#include "ab/ab.h"
#include "base/compiler.h"
#include "memory.h"
#include "read/json.h"

#define PAIRS 30
#define PAIRS_LEAST 8    /* for which signed ranks can say anything at 0.01 */
#define PAIRS_MOST 10000 /* with --time alone */
#define THRESHOLD 0.005

_Static_assert(PAIRS_LEAST == 8, "the help says so");

typedef struct wish {
    programs_wish programs;
    char **rest;
    int count;
} wish;

#define AB(member) offsetof(wish, programs.ab.member)

static const option all_options[] = {
    {"--runs", "N", "pairs of process runs, one of each command (default {}, at least 8)",
     PKI_OPTION_WORD, option_number, AB(runs), .least = PAIRS_LEAST, .most = PAIRS_MOST,
     .shown = PAIRS},
    {"--time", "60s", "as many pairs as end within this", PKI_OPTION_WORD, ab_parse_time,
     .at = offsetof(wish, programs.time)},
    {"--timeout", "10min", "for one process run (default 10min)", PKI_OPTION_WORD, ab_parse_time,
     .at = AB(timeout)},
    {"--filter", "REGEX", "only figures whose name it matches, as \"wall|^region\"",
     PKI_OPTION_WORD, option_text, .at = AB(filter)},
    {"--quiet", NULL, "no progress on a terminal", .at = AB(quiet)},
    {"--threshold", "0.5%", "changes up to this do not matter (default {}%)", PKI_OPTION_WORD,
     compare_parse_share, AB(shared.options.threshold), .shown = 100 * THRESHOLD,
     .begins_group = true},
    {"--alpha", "0.01",
     "at most this probability that any \"slower\" or \"faster\" is wrong, over all figures "
     "together (Holm; default {})",
     PKI_OPTION_WORD, compare_parse_alpha, AB(shared.options.alpha), .shown = COMPARE_ALPHA},
    {"--save", "DIR", "every figure, as DIR/old.json and DIR/new.json for pk compare",
     PKI_OPTION_FOLDER, option_text, AB(save), .begins_group = true},
    {"--markdown", "FILE", NULL, PKI_OPTION_FILE, compare_parse_file, .at = AB(shared.markdown)},
    {"--json", "FILE", NULL, PKI_OPTION_FILE, compare_parse_file, .at = AB(shared.json)},
    {"--junit", "FILE", "the result in these forms, too (\"-\": here, instead of the text)",
     PKI_OPTION_FILE, compare_parse_file, .at = AB(shared.junit)},
};

static void set_rest(void *to, char **words, int count)
{
    wish *w = to;
    w->rest = words;
    w->count = count;
}

static const option_table command_options = {
    .command = "ab",
    .usage = "[OPTION ...] -- OLD [ARGUMENT ...] -- NEW [ARGUMENT ...]",
    .about =
        "Is NEW slower than OLD? Runs both in turn, the order within each pair drawn by lot, and\n"
        "compares wall time and CPU time; of programs that use perfkit (PK_REPORT_PATH, PK_OVERRIDE)\n"
        "also the medians of their steps and regions. If a word of a command has {} in it, that\n"
        "is the name of a file of benchmarks which the command writes, and they are compared\n"
        "instead:\n"
        "\n"
        "  pk ab -- ./old input -- ./new input\n"
        "  pk ab --time 60s -- old/bench --json {} -- ./bench --json {}      of pk_bench, nvbench\n"
        "  pk ab -- old/gb --benchmark_out={} -- ./gb --benchmark_out={}     Google Benchmark's",
    .notes = "Exit status: 0; 1 if anything is slower; 2 if a command does not run or fails.",
    .options = {all_options, PKI_COUNT_OF(all_options)},
    .who = "ab: ",
    .operands = AB(builds),
    .rest = set_rest,
};

/* "./old input": of a command. */
static char *joined(char *const words[])
{
    size_t length = 1, at = 0;
    for (size_t i = 0; words[i]; i++)
        length += strlen(words[i]) + 1;
    char *all = memory_zeroed(length, 1);
    for (size_t i = 0; words[i]; i++)
        at += (size_t)snprintf(all + at, length - at, "%s%s", i ? " " : "", words[i]);
    return all;
}

/* At the second "--"; arguments end with NULL. */
static bool split(wish *w)
{
    if (w->programs.ab.builds.count)
        return complain("ab: \"%s\" stands before the first \"--\" (pk ab --help)",
                        w->programs.ab.builds.all[0]),
               false;
    int at = 0;
    while (at < w->count && strcmp(w->rest[at], "--") != 0)
        at++;
    if (at == 0 || at + 1 >= w->count)
        return complain("ab needs two commands: pk ab -- OLD ... -- NEW ... (pk ab --help)"), false;
    w->rest[at] = NULL;
    w->programs.words[0] = w->rest;
    w->programs.words[1] = w->rest + at + 1;
    return true;
}

/* Of two commands that are there. */
static int run(wish *w)
{
    ab_wish *ab = &w->programs.ab;
    regex_t filter;
    char *names[2];
    if (ab->filter && regcomp(&filter, ab->filter, REG_EXTENDED | REG_NOSUB))
        return complain("ab: --filter: \"%s\" is no regular expression", ab->filter);
    ab->shared.options.filter = ab->filter ? &filter : NULL;
    if (!ab->runs)
        ab->runs = w->programs.time > 0 ? PAIRS_MOST : PAIRS;
    for (int side = 0; side < 2; side++)
        ab->paths[side] = names[side] = joined(w->programs.words[side]);
    ab->launch = programs_launch;
    int status = ab_run(ab);
    table_finish(&w->programs.regions);
    free(names[0]);
    free(names[1]);
    if (ab->filter)
        regfree(&filter);
    return status;
}

int command_ab(int argc, char **argv)
{
    wish w = {.programs.ab = {.shared = COMPARE_WISH_DEFAULTS, .timeout = 600}};
    w.programs.ab.shared.options.threshold = THRESHOLD;
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    json_limit_memory(JSON_MEMORY_MOST);
    return split(&w) ? run(&w) : EXIT_UNUSABLE;
}
