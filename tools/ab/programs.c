#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ab/ab.h"
#include "base/compiler.h"
#include "load/load.h"
#include "memory.h"

/* ---- one process ---- */

typedef struct figures {
    double wall, cpu; /* ns */
} figures;

/* A process group of its own, so that whatever it leaves behind can be ended. */
static void become(char *const words[], const char *log)
{
    sigset_t none;
    int nothing = open("/dev/null", O_RDONLY);
    int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (nothing >= 0 && file >= 0 && dup2(nothing, 0) == 0 && dup2(file, 1) == 1 &&
        dup2(file, 2) == 2) {
        if (nothing > 2)
            close(nothing);
        if (file > 2)
            close(file);
        execvp(words[0], words);
        fprintf(stderr, "%s\n", strerror(errno));
    }
    _exit(127);
}

/* SIGCHLD is blocked. False, and why: it is still there. */
static bool wait_until(pid_t pid, double until, complaint *why)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        siginfo_t ended = {.si_pid = 0};
        double left = until - ab_now();
        if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT | WNOHANG) == 0 && ended.si_pid)
            return true;
        if (ab_is_interrupted())
            return complaint_set(why, "interrupted");
        if (!(left > 0))
            return complaint_set(why, "has not ended in time (--timeout)");
        /* A signal of the user's may have come just before: so not for long. */
        struct timespec most = {.tv_nsec = left < 0.2 ? (long)(1e9 * left) : 200000000};
        sigtimedwait(&child, NULL, &most);
    }
}

static double ns_of(struct timeval t)
{
    return 1e9 * (double)t.tv_sec + 1e3 * (double)t.tv_usec;
}

/* From the fork to the end. False, and why: it did not end well. */
static bool run_one(char *const words[], const char *log, double timeout, figures *f,
                    complaint *why)
{
    struct rusage used = {.ru_nsignals = 0};
    int status = 0;
    fflush(NULL);
    double began = ab_now();
    pid_t pid = fork();
    if (pid == 0)
        become(words, log);
    if (pid < 0)
        return complaint_set(why, "cannot be started: %s", strerror(errno));
    setpgid(pid, pid);
    bool ended = wait_until(pid, began + timeout, why);
    f->wall = 1e9 * (ab_now() - began);
    kill(-pid, SIGKILL);
    while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    f->cpu = ns_of(used.ru_utime) + ns_of(used.ru_stime);
    return ended && ab_ended_well(status, log, why);
}

/* ---- its figures ---- */

static programs_wish *wish_of(const ab_session *s)
{
    return (programs_wish *)(uintptr_t)s->wish;
}

/* Where figures of a process run go; `counts`: not those of the first, which tell what there is. */
typedef struct place {
    ab_session *s;
    int side;
    bool counts;
} place;

static void add(const place *p, const char *name, const char *clock, double value)
{
    char id[40];
    if (!p->counts || !(value > 0))
        return;
    snprintf(id, sizeof id, "%032zx", p->s->runs + 1);
    bench_series *series = bench_file_series(&p->s->builds[p->side], name);
    bench_text_set(&series->clock, clock);
    bench_run *run = bench_series_run(series, id);
    bench_run_add(run, value, value);
    run->pair = p->s->runs + 1;
}

#define REGIONS_MOST 20
#define REGION_LEAST 0.01 /* of all regions' self time */

/* By self time, most first, as summaries have them. */
static void choose_regions(table *regions, const pki_summary *run)
{
    double all = 0;
    for (size_t i = 0; i < run->region_count; i++)
        all += (double)run->regions[i].self;
    for (size_t i = 0; i < run->region_count && regions->count < REGIONS_MOST; i++)
        if ((double)run->regions[i].self > REGION_LEAST * all)
            table_add(regions, run->regions[i].name);
}

/* Medians, as means are whatever the machine has put between. A region's is of its self time in a
 * step, which no region around it has; without steps of a call. */
static void add_region(const place *p, const pki_region_row *r)
{
    char name[300];
    bool steps = r->step_self.count && r->step_self.p50 > 0;
    snprintf(name, sizeof name, "region %.250s, %s", r->name, steps ? "self in a step" : "a call");
    add(p, name, "wall", steps ? r->step_self.p50 : r->time.p50);
}

static void add_report(const place *p, const pki_summary *run)
{
    table *regions = &wish_of(p->s)->regions;
    if (!p->counts)
        choose_regions(regions, run);
    add(p, "step", "wall", run->steps.steady.p50);
    for (size_t i = 0; i < run->region_count; i++)
        if (run->regions[i].time.count && table_find(regions, run->regions[i].name) != TABLE_NONE)
            add_region(p, &run->regions[i]);
}

/* Of a job's ranks the first one's. None is fine. */
static bool read_report(const place *p, complaint *why)
{
    char path[100];
    pki_summary run;
    complaint wrong = {""};
    snprintf(path, sizeof path, "%s/report-0.json", p->s->folder);
    if (access(path, F_OK))
        return true;
    if (!load_run(path, &(load_options){.events = false}, &run, &wrong))
        return complaint_set(why, "wrote a report that %s", wrong.text);
    add_report(p, &run);
    pki_summary_finish(&run);
    return true;
}

/* Its samples are those of this process run alone: one figure for each benchmark. */
static bool read_benchmarks(const place *p, const char *path, complaint *why)
{
    bench_file one;
    char id[40];
    if (access(path, F_OK))
        return complaint_set(why, "wrote no file %s, which stands for \"%s\"", path, PROGRAMS_FILE);
    if (!bench_file_load(&one, path, why))
        return false;
    snprintf(id, sizeof id, "%032zx", p->s->runs + 1);
    if (p->counts)
        bench_file_append(&p->s->builds[p->side], &one, id, p->s->runs + 1);
    else
        bench_file_finish(&one);
    return true;
}

/* ---- a command's words, with the file's name in them ---- */

static char *put_path(const char *word, const char *path)
{
    const char *mark = strstr(word, PROGRAMS_FILE);
    size_t length = strlen(word) + strlen(path) + 1;
    char *put = memory_zeroed(length, 1);
    if (mark)
        snprintf(put, length, "%.*s%s%s", (int)(mark - word), word, path,
                 mark + strlen(PROGRAMS_FILE));
    else
        snprintf(put, length, "%s", word);
    return put;
}

static char **words_with(char *const words[], const char *path, bool *has)
{
    size_t count = 0;
    while (words[count])
        count++;
    char **put = memory_zeroed(count + 1, sizeof *put);
    for (size_t i = 0; i < count; i++) {
        put[i] = put_path(words[i], path);
        *has |= strstr(words[i], PROGRAMS_FILE) != NULL;
    }
    return put;
}

static void free_words(char **words)
{
    for (size_t i = 0; words[i]; i++)
        free(words[i]);
    free(words);
}

/* ---- pairs ---- */

static bool launch(const place *p, complaint *why)
{
    ab_session *s = p->s;
    char log[100], path[100];
    complaint wrong = {""};
    figures f = {0, 0};
    bool benchmarks = false;
    ab_empty_folder(s);
    snprintf(log, sizeof log, "%s/launch.log", s->folder);
    snprintf(path, sizeof path, "%s/launch.json", s->folder);
    char **words = words_with(wish_of(s)->words[p->side], path, &benchmarks);
    bool ran = run_one(words, log, s->wish->timeout, &f, &wrong);
    if (ran && benchmarks) {
        ran = read_benchmarks(p, path, &wrong);
    } else if (ran) {
        add(p, "wall time", "wall", f.wall);
        add(p, "CPU time", "cpu", f.cpu);
        ran = read_report(p, &wrong);
    }
    free_words(words);
    return ran || complaint_set(why, "the %s command (%.100s) %s", p->side ? "new" : "old",
                                s->wish->paths[p->side], wrong.text);
}

static bool new_is_first(void)
{
    unsigned char drawn;
    if (getrandom(&drawn, 1, GRND_NONBLOCK) != 1)
        drawn = (unsigned char)(uint64_t)(1e7 * ab_now());
    return drawn & 1;
}

static bool launch_pair(ab_session *s, bool counts, complaint *why)
{
    int first = new_is_first();
    place one = {.s = s, .side = first, .counts = counts}, other = one;
    other.side = !first;
    return launch(&one, why) && launch(&other, why);
}

/* Another one would end after --time. */
static bool is_over(const ab_session *s, double began)
{
    double passed = ab_now() - began, time = wish_of(s)->time;
    return time > 0 && s->runs > 0 && ab_now() - s->began + passed / (double)s->runs > time;
}

static bool launch_all(ab_session *s, complaint *why)
{
    if (!launch_pair(s, false, why))
        return false;
    double began = ab_now();
    for (; s->runs < s->wanted && !is_over(s, began); s->runs++) {
        ab_show_progress(s);
        if (!launch_pair(s, true, why))
            return false;
    }
    if (wish_of(s)->time > 0)
        s->wanted = s->runs;
    return true;
}

bool programs_launch(ab_session *s, complaint *why)
{
    char report[100];
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    snprintf(report, sizeof report, "%s/report-%%r.json", s->folder);
    setenv("PK_REPORT_PATH", report, 1);
    setenv("PK_OVERRIDE", "1", 1); /* also of programs that say where their report goes */
    return launch_all(s, why);
}
