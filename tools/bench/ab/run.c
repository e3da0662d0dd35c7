/* tools/bench/ab/run.c - an A/B from its first process run to what is printed, saved and stored. */
#include "bench/ab/ab.h"
#include "bench/baseline.h"
#include "command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

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
    if (together)
        ab_describe(build, w);
}

static bool set_up(ab_session *s, const ab_wish *w, bool together, complaint *why)
{
    uint64_t drawn[2] = {(uint64_t)getpid(), (uint64_t)(1e9 * ab_now())};
    char session[40];
    const char *temporary = getenv("TMPDIR");
    *s = (ab_session){.wish = w, .wanted = w->runs, .began = ab_now()};
    for (int side = 0; side < 2; side++) {
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

static void clean_up(ab_session *s)
{
    static const char *const files[] = {"launch.json", "launch.log", "new.json"};
    for (size_t i = 0; s->folder[0] && i < sizeof files / sizeof *files; i++) {
        char path[100];
        snprintf(path, sizeof path, "%s/%s", s->folder, files[i]);
        unlink(path);
    }
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
    bool ran = together ? ab_run_in_one_process(s, &why) : ab_run_processes(s, &why);
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
    if (!choose(w, &together, &why))
        return complain("%s", why.text);
    catch_interruptions();
    unfinished = &s;
    atexit(clean_up_unfinished);
    int status = set_up(&s, w, together, &why) ? run(&s, together) : complain("%s", why.text);
    unfinished = NULL;
    clean_up(&s);
    return status;
}
