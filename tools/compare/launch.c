/* tools/compare/launch.c - one process run of both builds */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/drive.h"
#include "command.h"
#include "compare/compare.h"
#include "memory.h"

/* ---- starting ---- */

static void become(int out, const char *log, char *const arguments[])
{
    int nothing = open("/dev/null", O_RDONLY);
    int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (nothing >= 0 && file >= 0 && dup2(nothing, 0) == 0 && dup2(file, 1) == 1 &&
        dup2(file, 2) == 2 && dup2(out, AB_CHILD_FD) == AB_CHILD_FD) {
        if (nothing > AB_CHILD_FD)
            close(nothing);
        if (file > AB_CHILD_FD)
            close(file);
        if (out != AB_CHILD_FD)
            close(out);
        else
            fcntl(out, F_SETFD, 0);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        execvp(arguments[0], arguments);
        fprintf(stderr, "%s\n", strerror(errno));
    }
    _exit(127);
}

static bool ab_child_start(ab_child *child, char *const arguments[], const char *log,
                           complaint *why)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return complaint_set(why, "%s", strerror(errno));
    fflush(NULL);
    child->pid = fork();
    if (child->pid == 0)
        become(ends[1], log, arguments);
    close(ends[1]);
    child->fd = ends[0];
    if (child->pid > 0)
        return true;
    close(ends[0]);
    return complaint_set(why, "%s", strerror(errno));
}

/* ---- reading ---- */

/* Bytes read; 0 at its end; -1, and why, when the time is up or pk was interrupted. */
static long ab_child_read(const ab_child *child, void *to, size_t size, double until,
                          complaint *why)
{
    for (;;) {
        double left = until - ab_now();
        struct pollfd wanted = {.fd = child->fd, .events = POLLIN};
        if (ab_is_interrupted()) {
            complaint_set(why, "interrupted");
            return -1;
        }
        if (!(left > 0)) {
            complaint_set(why, "has not ended in time (--timeout)");
            return -1;
        }
        int ready = poll(&wanted, 1, left < 1000 ? (int)(1000 * left) + 1 : 1000000);
        ssize_t got = ready > 0 ? read(child->fd, to, size) : -1;
        if (got >= 0)
            return got;
        if (ready < 0 && errno != EINTR) {
            complaint_set(why, "%s", strerror(errno));
            return -1;
        }
    }
}

/* ---- its end ---- */

/* The last line that is not empty: where programs say why they end. */
static void last_line(const char *log, char *out, size_t size)
{
    char line[200];
    FILE *file = fopen(log, "re");
    out[0] = '\0';
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0])
            snprintf(out, size, ": %s", line);
    }
    if (file)
        fclose(file);
}

bool ab_ended_well(int status, const char *log, complaint *why)
{
    char said[210];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    last_line(log, said, sizeof said);
    if (WIFSIGNALED(status))
        return complaint_set(why, "was killed by signal %d%s", WTERMSIG(status), said);
    if (WEXITSTATUS(status) == 127)
        return complaint_set(why, "cannot be started%s", said);
    return complaint_set(why, "exited with status %d%s", WEXITSTATUS(status), said);
}

/* Waits for it, having killed it if it was not read to its end. False, and why: it failed, and what
 * the last line of its output was. */
static bool ab_child_finish(ab_child *child, bool kill_it, const char *log, complaint *why)
{
    int status = 0;
    pid_t ended;
    if (kill_it)
        kill(child->pid, SIGKILL);
    do
        ended = waitpid(child->pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    close(child->fd);
    if (ended < 0)
        return complaint_set(why, "%s", strerror(errno));
    return ab_ended_well(status, log, why);
}

/* ---- each process run a process that loads both builds ---- */

/* See ab.h. The side of it that starts process runs and listens to them. */

/* ---- what can be loaded ---- */

/* A shared object has no interpreter; a program (position independent or not) has one, and the
 * loader refuses it. */
static bool check_headers(int fd, complaint *why)
{
    Elf64_Ehdr head;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
        return complaint_set(why, "is no shared object");
    if (head.e_type != ET_DYN)
        return complaint_set(why, "is a program, not a shared object");
    for (int i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(head.e_phoff + (uint64_t)i * head.e_phentsize);
        if (pread(fd, &part, sizeof part, at) != (ssize_t)sizeof part)
            return complaint_set(why, "is cut off");
        if (part.p_type == PT_INTERP)
            return complaint_set(why, "is a program, not a shared object");
    }
    return true;
}

bool ab_is_loadable(const char *path, complaint *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return complaint_set(why, "%s", strerror(errno));
    bool loadable = check_headers(fd, why);
    close(fd);
    return loadable;
}

/* ---- listening ---- */

typedef struct listener {
    ab_session *s;
    ab_child child;
    double until;
    char **names; /* by number */
    uint32_t count;
    bool done;
    complaint *why;
} listener;

/* All of it, or false: the end, or why. */
static bool receive(listener *l, void *to, size_t size)
{
    char *at = to;
    while (size) {
        long got = ab_child_read(&l->child, at, size, l->until, l->why);
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static void add_name(listener *l, const char *text)
{
    l->names = memory_resized(l->names, (l->count + 1) * sizeof *l->names);
    l->names[l->count++] = memory_copy(text);
}

static void add_sample(listener *l, const ab_record *r)
{
    char id[40];
    snprintf(id, sizeof id, "%032zx", l->s->runs + 1);
    bench_series *series = bench_file_series(&l->s->builds[r->side], l->names[r->number]);
    bench_run *run = bench_series_run(series, id);
    bench_run_add(run, r->sample, r->cpu_sample);
    run->pair = l->s->runs + 1;
}

static bool add_skip(listener *l, const ab_record *r, const char *text)
{
    if (r->number == AB_NO_NUMBER)
        return complaint_set(l->why, "%s", text);
    bench_series *series = bench_file_series(&l->s->builds[r->side], l->names[r->number]);
    bench_text_set(&series->error, text);
    series->skipped = true;
    return true;
}

static bool add_record(listener *l, const ab_record *r, const char *text)
{
    bool numbered = r->kind == AB_SAMPLE || (r->kind == AB_SKIP && r->number != AB_NO_NUMBER);
    if (r->side > 1 || (numbered && r->number >= l->count))
        return complaint_set(l->why, "said what cannot be");
    switch (r->kind) {
    case AB_NAME:
        add_name(l, text);
        return true;
    case AB_SAMPLE:
        add_sample(l, r);
        return true;
    case AB_SKIP:
        return add_skip(l, r, text);
    case AB_ALONE:
        bench_file_series(&l->s->builds[r->side], text);
        return true;
    default:
        l->done = true;
        return true;
    }
}

static bool listen_to(listener *l)
{
    ab_record r;
    char text[AB_TEXT_MOST + 1];
    while (!l->done) {
        if (!receive(l, &r, sizeof r) || r.length > AB_TEXT_MOST || !receive(l, text, r.length))
            return false;
        text[r.length] = '\0';
        if (!add_record(l, &r, text))
            return false;
    }
    return true;
}

/* ---- launching ---- */

static bool launch(ab_session *s, complaint *why)
{
    char seconds[32], log[100];
    complaint wrong = {""}, end = {""};
    const ab_wish *w = s->wish;
    char *arguments[] = {(char *)(uintptr_t) "/proc/self/exe",
                         (char *)(uintptr_t) "bench-ab",
                         (char *)(uintptr_t)AB_BOTH,
                         s->files[0],
                         s->files[1],
                         (char *)(uintptr_t)(ab_new_first(s->runs) ? "1" : "0"),
                         seconds,
                         (char *)(uintptr_t)w->filter,
                         NULL};
    snprintf(seconds, sizeof seconds, "%.6f", w->time / (double)s->wanted);
    snprintf(log, sizeof log, "%s/launch.log", s->folder);
    listener l = {.s = s, .until = ab_now() + w->timeout, .why = &wrong};
    if (!ab_child_start(&l.child, arguments, log, why))
        return false;
    bool heard = listen_to(&l);
    bool ended = ab_child_finish(&l.child, !heard && wrong.text[0], log, &end);
    for (uint32_t i = 0; i < l.count; i++)
        free(l.names[i]);
    free(l.names);
    if (heard && ended)
        return true;
    return complaint_set(why, "a process run of both builds %s",
                         wrong.text[0] ? wrong.text
                         : end.text[0] ? end.text
                                       : "ended early");
}

bool ab_run_in_one_process(ab_session *s, complaint *why)
{
    for (; s->runs < s->wanted && !ab_is_over(s); s->runs++) {
        ab_show_progress(s);
        if (!launch(s, why))
            return false;
    }
    return true;
}

/* ---- the command line of a process run ---- */

#define OURS 12
#define WARMUP 0.2 /* of a process run's time; the rest is measured */

typedef struct command_line {
    char json[100];
    char texts[OURS][160];
    char **words;
    int count;
} command_line;

static void put(command_line *c, const char *word)
{
    snprintf(c->texts[c->count], sizeof c->texts[0], "%s", word);
    c->words[c->count] = c->texts[c->count];
    c->count++;
}

static void put_seconds(command_line *c, const char *key, double seconds)
{
    char word[100];
    snprintf(word, sizeof word, "%s=%.6f", key, seconds);
    put(c, word);
}

static void put_text(command_line *c, const char *key, const char *text)
{
    char word[160];
    snprintf(word, sizeof word, "%s=%s", key, text);
    put(c, word);
}

static void put_options(command_line *c, const ab_wish *w, double seconds)
{
    if (w->google) {
        put_text(c, "--benchmark_out", c->json);
        put(c, "--benchmark_out_format=json");
        put_seconds(c, "--benchmark_min_time", (1 - WARMUP) * seconds);
    } else {
        put_text(c, "--json", c->json);
        put_seconds(c, "--min-time", (1 - WARMUP) * seconds);
        put_seconds(c, "--max-time", (1 - WARMUP) * seconds);
        put_seconds(c, "--max-warmup", WARMUP * seconds);
        put(c, "--min-samples=5");
        put(c, "--quiet");
    }
}

/* Ours first: what the user says after -- is the last word. The filter is a word of its own length.
 */
static void make_command(command_line *c, const ab_session *s, int side)
{
    const ab_wish *w = s->wish;
    c->words = memory_zeroed((size_t)(OURS + w->argument_count + 4), sizeof *c->words);
    c->words[0] = s->files[side];
    c->count = 1;
    snprintf(c->json, sizeof c->json, "%s/launch.json", s->folder);
    put_options(c, w, w->time / (2 * (double)s->wanted));
    if (w->filter) {
        c->words[c->count++] = (char *)(uintptr_t)(w->google ? "--benchmark_filter" : "--filter");
        c->words[c->count++] = (char *)(uintptr_t)w->filter;
    }
    for (int i = 0; i < w->argument_count; i++)
        c->words[c->count++] = w->arguments[i];
}

/* ---- one process run ---- */

static bool wait_for(ab_child *child, double until, const char *log, complaint *why)
{
    char ignored[256];
    complaint first = {""}, second = {""};
    long got;
    do
        got = ab_child_read(child, ignored, sizeof ignored, until, &first);
    while (got > 0);
    bool ended = ab_child_finish(child, got < 0, log, &second);
    if (got < 0)
        return complaint_set(why, "%s", first.text);
    return ended || complaint_set(why, "%s", second.text);
}

static bool read_run(ab_session *s, int side, const char *path, complaint *why)
{
    char id[64];
    bench_file one;
    if (!bench_file_load(&one, path, why))
        return false;
    snprintf(id, sizeof id, "%016zx", s->runs + 1);
    for (uint32_t i = 0; i < one.names.count; i++)
        if (one.series[i].run_count && one.series[i].runs[0].id[0])
            snprintf(id, sizeof id, "%.60s", one.series[i].runs[0].id);
    bench_file_append(&s->builds[side], &one, id, s->runs + 1);
    return true;
}

static bool processes_launch(ab_session *s, int side, complaint *why)
{
    char log[100];
    complaint wrong = {""};
    command_line c = {.count = 0};
    ab_child child;
    snprintf(log, sizeof log, "%s/launch.log", s->folder);
    make_command(&c, s, side);
    unlink(c.json);
    bool ran = ab_child_start(&child, c.words, log, &wrong) &&
               wait_for(&child, ab_now() + s->wish->timeout, log, &wrong);
    if (ran && access(c.json, R_OK))
        ran = complaint_set(&wrong, "wrote no file of benchmarks (%s)",
                            s->wish->google ? "--benchmark_out" : "--json FILE");
    ran = ran && read_run(s, side, c.json, &wrong);
    free(c.words);
    return ran || complaint_set(why, "%s %s", s->wish->paths[side], wrong.text);
}

/* ---- all of them ---- */

bool ab_run_processes(ab_session *s, complaint *why)
{
    for (; s->runs < s->wanted && !ab_is_over(s); s->runs++) {
        int first = ab_new_first(s->runs);
        ab_show_progress(s);
        if (!processes_launch(s, first, why) || !processes_launch(s, !first, why))
            return false;
    }
    return true;
}

/* ---- one process run of both builds ---- */

/* Loads them, alternates short batches, sends each one to its parent. See ab.h.
 *
 * Each build gets a namespace of its own (dlmopen), hence a C library and a libpk of its own:
 * neither symbols nor heaps nor static variables are shared. Where the loader has no room for that,
 * both are opened locally (RTLD_LOCAL) if their libpk is part of them. */

#define SIDES 2
#define SETTLING 0.1   /* of the time: batches that do not count */
#define LEAST_ROUNDS 4 /* of old new new old */

typedef struct build {
    const char *path;
    void *object;
    size_t (*count)(void);
    const char *(*name)(size_t index);
    pk_status (*open)(size_t index, pki_bench_handle **handle);
    pk_status (*take)(pki_bench_handle *handle, uint64_t iterations, pki_bench_sample *sample);
    void (*close)(pki_bench_handle *handle);
    const char *(*error)(void);
} build;

typedef struct run {
    build builds[SIDES];
    int first; /* the side that goes first */
    double seconds;
    FILE *out;
    regex_t filter;
    bool filtered;
} run;

/* ---- to the parent ---- */

static void send_record(run *l, ab_kind kind, int side, uint32_t number, const char *text)
{
    size_t length = strlen(text);
    ab_record r = {.kind = kind, .side = (uint32_t)side, .number = number};
    r.length = (uint32_t)(length < AB_TEXT_MOST ? length : AB_TEXT_MOST);
    fwrite(&r, sizeof r, 1, l->out);
    fwrite(text, 1, r.length, l->out);
}

static bool refuse(run *l, const char *path, const char *what)
{
    char text[1000];
    snprintf(text, sizeof text, "cannot use %s: %s", path, what);
    send_record(l, AB_SKIP, 0, AB_NO_NUMBER, text);
    return false;
}

/* ---- loading ---- */

static bool bind_to(run *l, build *b)
{
    const struct {
        const char *name, *before; /* what it was called when libpk had the benchmarks */
        void *to;
    } functions[] = {
        {"pk_bench_instance_count_", "pk_bench_list", &b->count},
        {"pk_bench_instance_name_", "pk_bench_list_name", &b->name},
        {"pk_bench_open_", "pk_bench_open", &b->open},
        {"pk_bench_take_", "pk_bench_take", &b->take},
        {"pk_bench_close_", "pk_bench_close", &b->close},
        {"pk_error_message", "", &b->error},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(b->object, functions[i].name);
        found = found ? found : dlsym(b->object, functions[i].before);
        if (!found)
            return refuse(
                l, b->path,
                "it has no benchmarks of pk/bench.h: link it with libpkbench.so, or with the"
                " whole of libpkbench.a and libpk.a");
        memcpy(functions[i].to, &found, sizeof found);
    }
    return true;
}

static bool load_both(run *l, bool namespaces)
{
    for (int i = 0; i < SIDES; i++) {
        build *b = &l->builds[i ? !l->first : l->first];
        b->object = namespaces ? dlmopen(LM_ID_NEWLM, b->path, RTLD_NOW | RTLD_LOCAL)
                               : dlopen(b->path, RTLD_NOW | RTLD_LOCAL);
        if (!b->object)
            return false;
    }
    return true;
}

static bool load(run *l)
{
    if (!load_both(l, true) && !load_both(l, false))
        return refuse(l, l->builds[0].object ? l->builds[1].path : l->builds[0].path, dlerror());
    if (!bind_to(l, &l->builds[0]) || !bind_to(l, &l->builds[1]))
        return false;
    if (l->builds[0].count == l->builds[1].count)
        return refuse(l, l->builds[1].path, "it shares its libpk with the other build");
    return true;
}

/* ---- one benchmark ---- */

typedef struct duel {
    pki_bench_handle *handles[SIDES];
    uint64_t iterations;
    uint32_t number;
} duel;

static bool skip(run *l, const duel *d, int side)
{
    const char *why = l->builds[side].error();
    send_record(l, AB_SKIP, side, d->number, why && *why ? why : "it could not be measured");
    return false;
}

/* The same number of iterations for both, as many as the slower one takes for a batch. */
static bool start(run *l, duel *d, const size_t *indices)
{
    for (int i = 0; i < SIDES; i++) {
        int side = i ? !l->first : l->first;
        pki_bench_sample sample;
        if (l->builds[side].open(indices[side], &d->handles[side]) != PK_OK)
            return skip(l, d, side);
        if (l->builds[side].take(d->handles[side], 0, &sample) != PK_OK)
            return skip(l, d, side);
        if (!d->iterations || sample.iterations < d->iterations)
            d->iterations = sample.iterations;
    }
    return true;
}

static bool batch(run *l, duel *d, int side, bool counts)
{
    pki_bench_sample sample;
    if (l->builds[side].take(d->handles[side], d->iterations, &sample) != PK_OK)
        return skip(l, d, side);
    double n = (double)(sample.iterations ? sample.iterations : 1);
    ab_record r = {.kind = AB_SAMPLE, .side = (uint32_t)side, .number = d->number};
    r.sample = sample.time / n;
    r.cpu_sample = sample.cpu / n;
    if (counts)
        fwrite(&r, sizeof r, 1, l->out);
    return true;
}

/* one other other one */
static bool play_round(run *l, duel *d, bool counts)
{
    int one = l->first;
    return batch(l, d, one, counts) && batch(l, d, !one, counts) && batch(l, d, !one, counts) &&
           batch(l, d, one, counts);
}

static void play(run *l, duel *d, double until)
{
    double begin = ab_now(), settled = begin + SETTLING * (until - begin);
    bool going = play_round(l, d, false);
    while (going && ab_now() < settled)
        going = play_round(l, d, false);
    for (int rounds = 0; going && (rounds < LEAST_ROUNDS || ab_now() < until); rounds++)
        going = play_round(l, d, true);
}

static void measure(run *l, uint32_t number, const size_t *indices)
{
    duel d = {.number = number};
    send_record(l, AB_NAME, 0, number, l->builds[0].name(indices[0]));
    if (start(l, &d, indices))
        play(l, &d, ab_now() + l->seconds);
    for (int side = 0; side < SIDES; side++)
        if (d.handles[side])
            l->builds[side].close(d.handles[side]);
    fflush(l->out);
}

/* ---- all of them ---- */

#define NOT_THERE SIZE_MAX

static size_t find(const build *b, const char *name)
{
    size_t count = b->count();
    for (size_t i = 0; i < count; i++) {
        const char *its_name = b->name(i);
        if (its_name && strcmp(its_name, name) == 0)
            return i;
    }
    return NOT_THERE;
}

static bool is_wanted(run *l, const char *name)
{
    return name && (!l->filtered || regexec(&l->filter, name, 0, NULL, 0) == 0);
}

static void send_unmatched(run *l)
{
    const build *b = &l->builds[1];
    for (size_t i = 0; i < b->count(); i++) {
        const char *name = b->name(i);
        if (is_wanted(l, name) && find(&l->builds[0], name) == NOT_THERE)
            send_record(l, AB_ALONE, 1, 0, name);
    }
}

static void measure_all(run *l)
{
    uint32_t number = 0;
    for (size_t i = 0; i < l->builds[0].count(); i++) {
        const char *name = l->builds[0].name(i);
        size_t other = is_wanted(l, name) ? find(&l->builds[1], name) : NOT_THERE;
        if (other != NOT_THERE)
            measure(l, number++, (const size_t[]){i, other});
        else if (is_wanted(l, name))
            send_record(l, AB_ALONE, 0, 0, name);
    }
    send_unmatched(l);
}

int ab_run_both(int argc, char **argv)
{
    if (argc < 4)
        return complain("bench-ab: %s is for pk itself", AB_BOTH);
    run l = {.builds = {{.path = argv[0]}, {.path = argv[1]}}, .first = argv[2][0] == '1'};
    l.seconds = strtod(argv[3], NULL);
    l.out = fdopen(AB_CHILD_FD, "we");
    if (!l.out)
        return complain("bench-ab: %s is for pk itself", AB_BOTH);
    l.filtered = argc > 4;
    if (l.filtered && regcomp(&l.filter, argv[4], REG_EXTENDED | REG_NOSUB))
        return EXIT_UNUSABLE; /* the parent has tried it */
    if (load(&l))
        measure_all(&l);
    send_record(&l, AB_DONE, 0, 0, "");
    /* Neither build is closed: their threads may still be at it. */
    return fclose(l.out) == 0 ? EXIT_OK : EXIT_UNUSABLE;
}
