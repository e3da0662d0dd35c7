/* tools/compare/ab.c - two builds in turn, launched many times: `pk bench-ab` */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "bench/environment.h"
#include "bench/forms/document.h"
#include "bench/options.h"
#include "command.h"
#include "compare/compare.h"
#include "read/json.h"

/* ---- what both ways of an A/B share: order, time, progress ---- */

#define AB_THRESHOLD 0.01
#define AB_RUNS 40
#define AB_RUNS_LEAST 8 /* pairs for which signed ranks can say anything at 0.01 */
#define AB_TIME 2.0

bool ab_new_first(size_t n)
{
    return n % 2 == 1;
}

double ab_now(void)
{
    return (double)pki_monotonic_ns() / 1e9;
}

bool ab_is_over(const ab_session *s)
{
    return s->runs > 0 && s->wish->budget > 0 && ab_now() - s->began > s->wish->budget;
}

/* The first process run says how long the others may take. */
void ab_show_progress(ab_session *s)
{
    if (s->wish->quiet || !isatty(STDERR_FILENO))
        return;
    double passed = ab_now() - s->began;
    fprintf(stderr, "\r\033[Kpk: process run %zu of %zu", s->runs + 1, s->wanted);
    if (s->runs)
        fprintf(stderr, ", %.0f s left", passed / (double)s->runs * (double)(s->wanted - s->runs));
    s->shows_progress = true;
}

/* The machine, the moment and the options of a build's process runs that write no file themselves.
 */
static void ab_describe(bench_file *build, const ab_wish *wish)
{
    pki_bench_environment machine;
    char fingerprint[17], options[128];
    pki_bench_environment_read(&machine, "");
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, pki_bench_fingerprint(&machine));
    snprintf(options, sizeof options, "{\"launches\":%u,\"time\":%.0f}", wish->runs,
             1e9 * wish->time);
    bench_text_set(&build->date, pki_bench_date((int64_t)time(NULL)).text);
    bench_text_set(&build->host, machine.host);
    bench_text_set(&build->cpu, machine.cpu);
    bench_text_set(&build->version, pk_version());
    bench_text_set(&build->fingerprint, fingerprint);
    bench_text_set(&build->configuration, options);
}

/* ---- interruption: process runs are ended and the folder is removed first ---- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

bool ab_is_interrupted(void)
{
    return interrupted != 0;
}

static void catch_interruptions(void)
{
    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- which way ---- */

/* Two shared objects are loaded into one process; two programs are not. */
static bool choose(const ab_wish *w, bool *together, complaint *why)
{
    complaint reasons[2] = {{""}, {""}};
    bool loadable[2];
    for (int side = 0; side < 2; side++) {
        loadable[side] = ab_is_loadable(w->paths[side], &reasons[side]);
        if (!loadable[side] && access(w->paths[side], R_OK))
            return complaint_set(why, "%s: %s", w->paths[side], reasons[side].text);
    }
    *together = loadable[0] && loadable[1];
    if (loadable[0] != loadable[1])
        return complaint_set(why, "%s is a shared object, %s %s: both have to be of one kind",
                             w->paths[loadable[1]], w->paths[loadable[0]],
                             reasons[loadable[0]].text);
    if (*together && w->argument_count)
        return complaint_set(why, "shared objects take no arguments (only --filter)");
    if (*together && w->google)
        return complaint_set(why, "Google Benchmark's programs run as processes, and these are"
                                  " shared objects");
    return true;
}

/* ---- the session ---- */

static void set_up_build(bench_file *build, const ab_wish *w, int side, const char *session,
                         bool together)
{
    bench_file_init(build, w->paths[side]);
    bench_text_set(&build->session, session);
    bench_text_set(&build->executable, w->paths[side]);
    bench_text_set(&build->side, side ? "new" : "old");
    bench_text_set(&build->method, together ? "one-process" : "processes");
    if (together || w->launch)
        ab_describe(build, w);
}

static bool set_up(ab_session *s, const ab_wish *w, bool together, complaint *why)
{
    uint64_t drawn[2] = {(uint64_t)getpid(), (uint64_t)(1e9 * ab_now())};
    char session[40];
    const char *temporary = getenv("TMPDIR");
    *s = (ab_session){.wish = w, .wanted = w->runs, .began = ab_now()};
    for (int side = 0; side < 2 && !w->launch; side++) {
        s->files[side] = realpath(w->paths[side], NULL);
        if (!s->files[side])
            return complaint_set(why, "%s: %s", w->paths[side], strerror(errno));
    }
    if (getrandom(drawn, sizeof drawn, GRND_NONBLOCK) < 0)
        drawn[1] ^= drawn[0];
    snprintf(session, sizeof session, "%016llx%016llx", (unsigned long long)drawn[0],
             (unsigned long long)drawn[1]);
    for (int side = 0; side < 2; side++)
        set_up_build(&s->builds[side], w, side, session, together);
    int length = snprintf(s->folder, sizeof s->folder, "%s/pk-bench-ab.XXXXXX",
                          temporary && strlen(temporary) < 40 ? temporary : "/tmp");
    if (length < 0 || !mkdtemp(s->folder)) {
        s->folder[0] = '\0';
        return complaint_set(why, "no temporary folder: %s", strerror(errno));
    }
    return true;
}

void ab_empty_folder(const ab_session *s)
{
    DIR *folder = s->folder[0] ? opendir(s->folder) : NULL;
    for (const struct dirent *e; folder && (e = readdir(folder));)
        unlinkat(dirfd(folder), e->d_name, 0);
    if (folder)
        closedir(folder);
}

static void clean_up(ab_session *s)
{
    ab_empty_folder(s);
    if (s->folder[0])
        rmdir(s->folder);
    for (int side = 0; side < 2; side++) {
        bench_file_finish(&s->builds[side]);
        free(s->files[side]);
    }
}

/* Of a command that ends amid it. */
static ab_session *unfinished;

static void clean_up_unfinished(void)
{
    if (unfinished)
        clean_up(unfinished);
}

/* ---- what is done with it ---- */

static bool save_build(const char *folder, const bench_file *build, complaint *why)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s.json", folder, build->side);
    if (length < 0 || (size_t)length >= sizeof path)
        return complaint_set(why, "%s: the name is too long", folder);
    return bench_file_save(build, path, why);
}

static bool save(const ab_session *s, complaint *why)
{
    const char *folder = s->wish->save;
    if (!folder)
        return true;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return complaint_set(why, "%s: %s", folder, strerror(errno));
    return save_build(folder, &s->builds[0], why) && save_build(folder, &s->builds[1], why);
}

static bool store(ab_session *s, complaint *why)
{
    char path[100];
    bench_file *build = &s->builds[1];
    snprintf(path, sizeof path, "%s/new.json", s->folder);
    if (!save_build(s->folder, build, why))
        return false;
    bench_text_set(&build->path, path);
    return baseline_store(s->wish->baseline, build, BASELINE_KEEP, why);
}

static int conclude(ab_session *s)
{
    const bench_file *old = &s->builds[0];
    comparison c;
    complaint why = {""};
    if (!save(s, &why))
        return complain("%s", why.text);
    if (!compare_files(&old, 1, &s->builds[1], &s->wish->shared.options, &c, &why))
        return complain("%s: %s", s->wish->paths[1], why.text);
    int status = compare_print(&s->wish->shared, &c, 1);
    comparison_finish(&c);
    if (status == EXIT_OK && s->wish->baseline && !store(s, &why))
        return complain("%s", why.text);
    return status;
}

static int run(ab_session *s, bool together)
{
    complaint why = {""};
    bool ran = s->wish->launch ? s->wish->launch(s, &why)
               : together      ? ab_run_in_one_process(s, &why)
                               : ab_run_processes(s, &why);
    if (s->shows_progress)
        fputs("\r\033[K", stderr);
    if (!ran)
        return complain("%s", why.text);
    if (s->runs < s->wanted)
        fprintf(stderr, "pk: the budget was enough for %zu of %zu process runs\n", s->runs,
                s->wanted);
    return conclude(s);
}

int ab_run(const ab_wish *w)
{
    ab_session s;
    bool together = false;
    complaint why = {""};
    if (!w->launch && !choose(w, &together, &why))
        return complain("%s", why.text);
    catch_interruptions();
    unfinished = &s;
    atexit(clean_up_unfinished);
    int status = set_up(&s, w, together, &why) ? run(&s, together) : complain("%s", why.text);
    unfinished = NULL;
    clean_up(&s);
    return status;
}

/* ---- options ---- */

bool ab_parse_time(void *wish, const option_given *given)
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
    {"--launches", "N", "of each build (default {}, at least 8)", PKI_OPTION_WORD, option_number,
     offsetof(ab_wish, runs), .least = AB_RUNS_LEAST, .most = 1000, .shown = AB_RUNS},
    {"--time", "2s", "of measuring each benchmark, both builds, all process runs (default {}s)",
     PKI_OPTION_WORD, ab_parse_time, offsetof(ab_wish, time), .shown = AB_TIME},
    {"--budget", "5min", "begin no process run after this", PKI_OPTION_WORD, ab_parse_time,
     .at = offsetof(ab_wish, budget)},
    {"--timeout", "10min", "for one process run (default 10min)", PKI_OPTION_WORD, ab_parse_time,
     .at = offsetof(ab_wish, timeout)},
    {"--filter", "REGEX", "only benchmarks whose name it matches", PKI_OPTION_WORD, option_text,
     .at = offsetof(ab_wish, filter)},
    {"--google", NULL, "the programs are Google Benchmark's", .at = offsetof(ab_wish, google)},
    {"--quiet", NULL, "no progress on a terminal", .at = offsetof(ab_wish, quiet)},
    {"--threshold", "1%",
     "changes up to this do not matter (default {}%; where code and pages come to lie alone moves "
     "some kernels by that much)",
     PKI_OPTION_WORD, compare_parse_share, offsetof(ab_wish, shared.options.threshold),
     .shown = 100 * AB_THRESHOLD, .begins_group = true},
    {"--alpha", "0.01",
     "at most this probability that any \"slower\" or \"faster\" is wrong, over all benchmarks "
     "together (Holm; default {})",
     PKI_OPTION_WORD, compare_parse_alpha, offsetof(ab_wish, shared.options.alpha),
     .shown = COMPARE_ALPHA},
    {"--cpu", NULL, "CPU time, not the clock that the benchmark counts by",
     .at = offsetof(ab_wish, shared.options.cpu)},
    {"--save", "DIR", "every sample, as DIR/old.json and DIR/new.json for pk compare",
     PKI_OPTION_FOLDER, option_text, offsetof(ab_wish, save), .begins_group = true},
    {"--baseline", "DIR",
     "store NEW's process runs there as a run of pk compare --baseline, unless it became slower",
     PKI_OPTION_FOLDER, option_text, .at = offsetof(ab_wish, baseline)},
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
    .options = {all_options, PKI_COUNT_OF(all_options)},
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
