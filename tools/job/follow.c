#include "job/follow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/text.h"
#include "command.h"
#include "files.h"
#include "job/window.h"
#include "load/load.h"
#include "measure/summary.h"
#include "measure/window/window.h"
#include "memory.h"
#include "out/json_write.h"

enum {
    TAIL = 1 << 20, /* of a file that is there already, so many bytes at its end */
    PENDING = 16,   /* windows of a rank that wait for those of the others */
    LINE_MOST = 64 << 20
};

#define PATIENCE_LEAST 10.0 /* seconds; or three times as long as a rank's windows take */
#define SILENT_WINDOWS 3

/* A rank: the file of its windows, and what of it has not been compared yet. */
typedef struct member {
    char *path;
    uint64_t inode, at; /* read so far */
    char *rest;         /* a line that is not whole */
    size_t rest_length, rest_room;
    int32_t rank, world; /* -1, 0: not known */
    char host[PKI_WINDOW_HOST];
    uint32_t pid;
    uint64_t start_unix;
    bool seen, ended, silent;
    double window_seconds, heard; /* the last one's length; when it came */
    uint64_t last_step;
    pki_processor processor;
    pk_job_stage_ stages[PK_JOB_STAGES_]; /* each name keeps its place */
    pk_job_steps_ pending[PENDING];
    unsigned pending_count;
} member;

typedef struct named {
    int32_t rank;
    char host[64];
    uint64_t at; /* the last step known as it was named */
    bool still;
} named;

typedef struct follower {
    const follow_wish *wish;
    member *members;
    size_t count, room;
    pki_job_window *window; /* of so many ranks: */
    int32_t ranks;
    pk_job_steps_ *given;
    pk_job_word_ word;
    named *names;
    size_t name_count, name_room;
    bool complained;                   /* of a file that cannot be written; once, until it can */
    uint64_t compared, verdicts, lost; /* windows that nothing could be compared with */
    double first_heard;                /* of any rank; 0: of none yet */
    bool said_unaligned;
} follower;

static volatile sig_atomic_t ended;

static void note_end(int signal)
{
    (void)signal;
    ended = 1;
}

/* Of how long ago something was nobody's setting of a clock may be a part. */
static double now(void)
{
    return 1e-9 * (double)pki_monotonic_ns();
}

/* ---- what happens, in lines ---- */

/* "12:30:05  rank 5 ...". Not where verdicts are lines of JSON. */
static PKI_PRINTF(2, 3) void say(const follower *f, const char *format, ...)
{
    char text[600], clock[16];
    time_t seconds = time(NULL);
    struct tm local;
    va_list args;
    if (f->wish->json)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    localtime_r(&seconds, &local);
    strftime(clock, sizeof clock, "%H:%M:%S", &local);
    printf("%s  %s\n", clock, text);
    fflush(stdout);
}

static const char *name_of(const member *m, char name[64])
{
    if (m->rank >= 0)
        snprintf(name, 64, "Rank %d", m->rank);
    else
        snprintf(name, 64, "Process %u of %.32s", m->pid, m->host);
    return name;
}

/* ---- a window as the portion of steps that ranks are compared by ---- */

/* The regions with most self time in the steps; a name's place stays, or all before would go. */
static void put_stage(member *m, const pki_window_region *r, pk_job_steps_ *to)
{
    size_t free_place = PK_JOB_STAGES_;
    for (size_t i = 0; i < PK_JOB_STAGES_; i++) {
        pk_job_stage_ *known = &m->stages[i];
        if (known->name[0] && known->kind == r->kind &&
            !strncmp(known->name, r->name, sizeof known->name - 1)) {
            to->stages[i].self += (uint64_t)r->step_self.sum;
            return;
        }
        if (!known->name[0] && free_place == PK_JOB_STAGES_)
            free_place = i;
    }
    if (free_place == PK_JOB_STAGES_)
        return;
    m->stages[free_place].kind = (uint8_t)r->kind;
    snprintf(m->stages[free_place].name, sizeof m->stages[0].name, "%s", r->name);
    to->stages[free_place] = m->stages[free_place];
    to->stages[free_place].self = (uint64_t)r->step_self.sum;
}

static int most_first(const void *x, const void *y)
{
    const pki_window_region *a = x, *b = y;
    return (a->step_self.sum < b->step_self.sum) - (a->step_self.sum > b->step_self.sum);
}

/* A run's first steps stand in its windows one by one. */
static void add_first_steps(pki_window *w)
{
    const pki_steps_part *part = &w->steps.exact;
    for (size_t i = 0; i < part->head_count; i++)
        for (size_t k = 0; k < part->head[i].bit_count; k++) {
            const pki_step_bit *bit = &part->head[i].bits[k];
            if (bit->id >= w->region_count)
                continue;
            w->regions[bit->id].step_self.sum += (double)bit->self;
            w->regions[bit->id].step_self.count++;
        }
}

static pk_job_steps_ portion_of(member *m, pki_window *w)
{
    pk_job_steps_ to = {.first = w->steps.first,
                        .steps = w->steps.count,
                        .time = (uint64_t)w->steps.time.sum,
                        .items = w->steps.items,
                        .no_processor = w->steps.processor.ready,
                        .told = w->steps.processor.observed ? (uint32_t)w->steps.count : 0};
    m->processor.observed += w->steps.processor.observed;
    m->processor.running += w->steps.processor.running;
    m->processor.ready += w->steps.processor.ready;
    to.observed = m->processor.observed;
    to.running = m->processor.running;
    to.ready = m->processor.ready;
    for (size_t i = 0; i < PK_JOB_STAGES_; i++) {
        to.stages[i] = m->stages[i];
        to.stages[i].self = 0;
    }
    add_first_steps(w);
    if (w->region_count)
        qsort(w->regions, w->region_count, sizeof *w->regions, most_first);
    for (size_t i = 0; i < w->region_count; i++)
        if (w->regions[i].step_self.count && w->regions[i].name)
            put_stage(m, &w->regions[i], &to);
    return to;
}

static void begin_anew(follower *f, member *m, const pki_run *run)
{
    char name[64];
    bool again = m->seen;
    m->seen = true;
    m->rank = run->rank;
    m->world = run->world_size;
    m->pid = run->pid;
    m->start_unix = run->start_unix;
    m->ended = m->silent = false;
    m->pending_count = 0;
    m->processor = (pki_processor){0};
    memset(m->stages, 0, sizeof m->stages);
    snprintf(m->host, sizeof m->host, "%s", run->host ? run->host : "");
    if (again)
        say(f, "%s has started anew, process %u.", name_of(m, name), m->pid);
}

static void take_window(follower *f, member *m, pki_window *w)
{
    char name[64];
    if (!m->seen || m->pid != w->run.pid || m->start_unix != w->run.start_unix)
        begin_anew(f, m, &w->run);
    if (m->silent)
        say(f, "%s is heard of again.", name_of(m, name));
    m->silent = false;
    m->ended = w->last;
    m->window_seconds = 1e-9 * (double)(w->end - w->start);
    m->heard = f->wish->once ? 0 : now();
    if (f->first_heard == 0)
        f->first_heard = m->heard;
    if (!w->steps.count)
        return;
    m->last_step = w->steps.last;
    m->pending[m->pending_count++] = portion_of(m, w);
}

/* ---- files ---- */

static void take_line(follower *f, member *m, char *text, size_t length)
{
    pki_window w;
    complaint why = {""};
    if (!load_window(text, length, &w, &why))
        return; /* what was cut by its process's end; `pk report` says more */
    take_window(f, m, &w);
    pki_window_finish(&w);
}

static void take_lines(follower *f, member *m)
{
    char *line = m->rest, *end;
    size_t left = m->rest_length;
    if (!left)
        return;
    while (m->pending_count < PENDING && (end = memchr(line, '\n', left)) != NULL) {
        take_line(f, m, line, (size_t)(end - line));
        left -= (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(m->rest, line, left);
    m->rest_length = left < LINE_MOST ? left : 0;
}

/* What the others are not ready for stays in the file. */
static void read_from(follower *f, member *m, int fd)
{
    take_lines(f, m);
    while (m->pending_count < PENDING) {
        memory_fit(&m->rest, &m->rest_room, m->rest_length + 65536, 1);
        ssize_t n = pread(fd, m->rest + m->rest_length, 65536, (off_t)m->at);
        if (n <= 0)
            return;
        m->at += (uint64_t)n;
        m->rest_length += (size_t)n;
        take_lines(f, m);
    }
}

/* Of what was there before, the end: from the next line on. */
static void skip_to_tail(member *m, int fd, uint64_t bytes)
{
    char c = 0;
    for (m->at = bytes - TAIL; pread(fd, &c, 1, (off_t)m->at) == 1 && c != '\n'; m->at++)
        ;
    m->at++;
}

/* The rest of the file that was continued in another (PATH.1). */
static void read_rest(follower *f, member *m)
{
    char path[PATH_MAX];
    struct stat s;
    snprintf(path, sizeof path, "%s.1", m->path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &s) == 0 && s.st_ino == m->inode)
        read_from(f, m, fd);
    if (fd >= 0)
        close(fd);
}

static void read_member(follower *f, member *m)
{
    struct stat s;
    int fd = open(m->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) {
        bool other = m->inode && s.st_ino != m->inode;
        if (other)
            read_rest(f, m);
        if (other || (uint64_t)s.st_size < m->at)
            m->at = m->rest_length = 0;
        if (!m->inode && s.st_size > TAIL)
            skip_to_tail(m, fd, (uint64_t)s.st_size);
        m->inode = s.st_ino;
        read_from(f, m, fd);
    }
    close(fd);
}

static void add_member(follower *f, const char *path)
{
    for (size_t i = 0; i < f->count; i++)
        if (!strcmp(f->members[i].path, path))
            return;
    memory_fit(&f->members, &f->room, f->count + 1, sizeof *f->members);
    f->members[f->count++] = (member){.path = memory_copy(path), .rank = -1, .heard = now()};
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

/* Folders in folders, as job.ranks/0 has them. */
static bool find_members(follower *f, const char *folder, int depth)
{
    DIR *d = opendir(folder);
    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[PATH_MAX];
        struct stat s;
        int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || n >= (int)sizeof path || stat(path, &s) != 0)
            continue;
        if (S_ISDIR(s.st_mode) && depth < 3)
            find_members(f, path, depth + 1);
        else if (ends_with(path, ".jsonl"))
            add_member(f, path);
    }
    closedir(d);
    return true;
}

/* ---- ranks beside each other ---- */

static int by_path(const void *x, const void *y)
{
    const member *a = x, *b = y;
    return strcmp(a->path, b->path);
}

static int32_t place_of(const follower *f, const member *m)
{
    return m->rank >= 0 ? m->rank : (int32_t)(m - f->members);
}

/* More ranks than so far: what has been compared begins anew. */
static void make_room(follower *f)
{
    int32_t ranks = (int32_t)f->count;
    for (size_t i = 0; i < f->count; i++) {
        ranks = PKI_MAX(ranks, f->members[i].rank + 1);
        ranks = PKI_MAX(ranks, f->members[i].world);
    }
    if (ranks <= f->ranks)
        return;
    char *hosts = memory_zeroed((size_t)ranks, PKI_WINDOW_HOST);
    for (size_t i = 0; i < f->count; i++)
        memcpy(hosts + (size_t)place_of(f, &f->members[i]) * PKI_WINDOW_HOST, f->members[i].host,
               PKI_WINDOW_HOST);
    pki_job_window_destroy(f->window);
    f->window = pki_job_window_create(ranks, hosts);
    memory_needed(f->window != NULL);
    free(f->given);
    f->given = memory_zeroed((size_t)ranks, sizeof *f->given);
    f->ranks = ranks;
    free(hosts);
}

static named *name_in(follower *f, const pk_job_late_ *late)
{
    for (size_t i = 0; i < f->name_count; i++)
        if (f->names[i].rank == late->rank &&
            (late->rank >= 0 || !strcmp(f->names[i].host, late->host)))
            return &f->names[i];
    memory_fit(&f->names, &f->name_room, f->name_count + 1, sizeof *f->names);
    named *n = &f->names[f->name_count++];
    *n = (named){.rank = late->rank, .at = f->word.last};
    snprintf(n->host, sizeof n->host, "%s", late->host);
    say(f, "Steps %llu to %llu: %s", (unsigned long long)f->word.first,
        (unsigned long long)f->word.last, late->text);
    return n;
}

static void note_word(follower *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->name_count; i++)
        f->names[i].still = false;
    for (uint32_t i = 0; i < f->word.count && i < PK_JOB_LATE_; i++)
        name_in(f, &f->word.late[i])->still = true;
    for (size_t i = 0; i < f->name_count; i++) {
        const named *n = &f->names[i];
        if (n->still || f->word.count > PK_JOB_LATE_)
            f->names[kept++] = *n;
        else if (n->rank >= 0)
            say(f, "Steps to %llu: rank %d is late no more.", (unsigned long long)f->word.last,
                n->rank);
        else
            say(f, "Steps to %llu: host %s is late no more.", (unsigned long long)f->word.last,
                n->host);
    }
    f->name_count = kept;
}

static void print_json(const follower *f, FILE *to);

/* Those with these steps are compared. */
static void compare(follower *f, uint64_t first)
{
    memset(f->given, 0, (size_t)f->ranks * sizeof *f->given);
    size_t have = 0;
    f->compared++;
    for (size_t i = 0; i < f->count; i++) {
        member *m = &f->members[i];
        if (!m->pending_count || m->pending[0].first != first)
            continue;
        f->given[place_of(f, m)] = m->pending[0];
        memmove(m->pending, m->pending + 1, --m->pending_count * sizeof *m->pending);
        have++;
    }
    if (have < 2) {
        f->lost += have;
        return;
    }
    pki_job_window_add(f->window, f->given);
    memory_needed(pki_job_window_judge(f->window, &f->word));
    f->verdicts++;
    note_word(f);
    if (f->wish->json)
        print_json(f, stdout);
}

static bool is_expected(const member *m)
{
    return m->seen && !m->ended && !m->silent;
}

static size_t count_ranks(const follower *f, bool (*which)(const member *))
{
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++)
        n += which(&f->members[i]);
    return n;
}

static bool has_ended(const member *m)
{
    return m->ended;
}

static bool is_seen(const member *m)
{
    return m->seen;
}

/* Ranks of one job do not all write their first window at once. */
static bool some_may_begin(const follower *f)
{
    return count_ranks(f, is_seen) < (size_t)f->ranks && count_ranks(f, has_ended) < f->count &&
           now() - f->first_heard < PATIENCE_LEAST;
}

/* Those that are compared next: when all that are expected have them, or have gone beyond them. */
static bool next_steps(const follower *f, uint64_t *first)
{
    bool any = false, all = true;
    for (size_t i = 0; i < f->count; i++) {
        const member *m = &f->members[i];
        if (m->pending_count && (!any || m->pending[0].first < *first)) {
            *first = m->pending[0].first;
            any = true;
        }
        all = all && (m->pending_count || !is_expected(m));
    }
    return any && (f->wish->once || (all && !some_may_begin(f)));
}

static void note_silent(follower *f)
{
    char name[64];
    for (size_t i = 0; i < f->count; i++) {
        member *m = &f->members[i];
        double patience = PKI_MAX(PATIENCE_LEAST, SILENT_WINDOWS * m->window_seconds);
        if (f->wish->once || !is_expected(m) || now() - m->heard < patience)
            continue;
        m->silent = true;
        say(f, "%s has been silent for %.0f s, since step %llu: is it hanging, or has it died?",
            name_of(m, name), now() - m->heard, (unsigned long long)m->last_step);
    }
}

static void note_unaligned(follower *f)
{
    if (f->said_unaligned || f->verdicts || f->lost < 4 * (uint64_t)f->count || f->count < 2)
        return;
    f->said_unaligned = true;
    complain("windows of these ranks do not begin with the same steps, so nobody can be compared:"
             " PK_WINDOW_STEPS=5 makes such windows");
}

/* ---- forms ---- */

static bool is_silent(const member *m)
{
    return m->silent;
}

static uint64_t named_at(const follower *f, const pk_job_late_ *late)
{
    for (size_t i = 0; i < f->name_count; i++)
        if (f->names[i].rank == late->rank &&
            (late->rank >= 0 || !strcmp(f->names[i].host, late->host)))
            return f->names[i].at;
    return f->word.last;
}

static void print_late(pki_json *j, const follower *f)
{
    pki_json_open(j, "late", '[');
    for (uint32_t i = 0; i < f->word.count && i < PK_JOB_LATE_; i++) {
        const pk_job_late_ *late = &f->word.late[i];
        pki_json_open(j, NULL, '{');
        pki_json_int(j, "rank", late->rank);
        pki_json_uint(j, "ranks", late->ranks);
        pki_json_text(j, "host", late->host);
        pki_json_real(j, "by", late->by);
        pki_json_uint(j, "named_at", named_at(f, late));
        pki_json_text(j, "text", late->text);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void print_silent(pki_json *j, const follower *f)
{
    pki_json_open(j, "silent", '[');
    for (size_t i = 0; i < f->count; i++) {
        const member *m = &f->members[i];
        if (!m->silent)
            continue;
        pki_json_open(j, NULL, '{');
        pki_json_int(j, "rank", m->rank);
        pki_json_text(j, "host", m->host);
        pki_json_uint(j, "pid", m->pid);
        pki_json_real(j, "seconds", now() - m->heard);
        pki_json_uint(j, "last_step", m->last_step);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void print_json(const follower *f, FILE *to)
{
    pki_json j = {.file = to};
    pki_json_open(&j, NULL, '{');
    pki_json_real(&j, "unix", 1e-9 * (double)pki_read_clock(CLOCK_REALTIME));
    pki_json_uint(&j, "ranks", (uint64_t)f->ranks);
    pki_json_uint(&j, "files", f->count);
    pki_json_uint(&j, "ended", count_ranks(f, has_ended));
    pki_json_uint(&j, "first", f->word.first);
    pki_json_uint(&j, "last", f->word.last);
    pki_json_uint(&j, "verdicts", f->verdicts);
    pki_json_uint(&j, "late_count", f->word.count);
    print_late(&j, f);
    print_silent(&j, f);
    pki_json_close(&j, '}');
    fputc('\n', to);
    fflush(to);
}

static void print_metrics(const follower *f, FILE *to)
{
    fprintf(to,
            "# HELP pk_job_ranks Ranks whose windows are followed.\n"
            "# TYPE pk_job_ranks gauge\npk_job_ranks %zu\n"
            "# HELP pk_job_ranks_ended Of these, those that have ended.\n"
            "# TYPE pk_job_ranks_ended gauge\npk_job_ranks_ended %zu\n"
            "# HELP pk_job_ranks_silent Of these, those of which nothing more comes.\n"
            "# TYPE pk_job_ranks_silent gauge\npk_job_ranks_silent %zu\n"
            "# HELP pk_job_last_step The last step that ranks were compared by.\n"
            "# TYPE pk_job_last_step gauge\npk_job_last_step %llu\n"
            "# HELP pk_job_late_ratio By how much a rank takes longer for the same work.\n"
            "# TYPE pk_job_late_ratio gauge\n",
            f->count, count_ranks(f, has_ended), count_ranks(f, is_silent),
            (unsigned long long)f->word.last);
    for (uint32_t i = 0; i < f->word.count && i < PK_JOB_LATE_; i++) {
        char host[6 * 64 + 1];
        const pk_job_late_ *late = &f->word.late[i];
        pki_json_escape(host, sizeof host, late->host, strlen(late->host));
        fprintf(to, "pk_job_late_ratio{rank=\"%d\",host=\"%s\"} %.6g\n", late->rank, host,
                late->by);
    }
}

static void put_html(FILE *to, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '<'   ? "&lt;"
                             : *text == '&' ? "&amp;"
                             : *text == '"' ? "&quot;"
                                            : NULL;
        if (entity)
            fputs(entity, to);
        else
            fputc(*text, to);
    }
}

static void print_page(const follower *f, FILE *to)
{
    char name[64];
    fprintf(to,
            "<!doctype html>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"refresh\" "
            "content=\"%u\">\n<title>perfkit job</title>\n<style>body{font:16px sans-serif;"
            "max-width:60em;margin:2em auto;color-scheme:light dark}li{margin:.5em 0}</style>\n"
            "<h1>",
            f->wish->every);
    put_html(to, f->wish->folder);
    fprintf(to, "</h1>\n<p>%zu ranks, %zu ended; steps %llu to %llu.</p>\n<ul>\n", f->count,
            count_ranks(f, has_ended), (unsigned long long)f->word.first,
            (unsigned long long)f->word.last);
    for (uint32_t i = 0; i < f->word.count && i < PK_JOB_LATE_; i++) {
        fputs("<li>", to);
        put_html(to, f->word.late[i].text);
        fprintf(to, " Named at step %llu.</li>\n",
                (unsigned long long)named_at(f, &f->word.late[i]));
    }
    for (size_t i = 0; i < f->count; i++) {
        const member *m = &f->members[i];
        if (!m->silent)
            continue;
        fputs("<li>", to);
        put_html(to, name_of(m, name));
        fprintf(to, " has been silent for %.0f s, since step %llu.</li>\n", now() - m->heard,
                (unsigned long long)m->last_step);
    }
    fputs(f->word.count || count_ranks(f, is_silent) ? "</ul>\n"
          : f->word.last                             ? "<li>No rank is late.</li>\n</ul>\n"
                         : "<li>Too few steps have been compared yet.</li>\n</ul>\n",
          to);
}

static void write_file(follower *f, const char *path, void (*print)(const follower *, FILE *))
{
    output o;
    complaint why = {""};
    bool done = output_open(&o, path, OUTPUT_FILE, &why);
    if (done) {
        print(f, o.to);
        done = output_close(&o, true, &why);
    }
    if (!done && !f->complained)
        complain("%s", why.text);
    f->complained = !done;
}

/* ---- looking again and again ---- */

/* False: there is nothing more to come. */
static bool look(follower *f)
{
    uint64_t first, before;
    find_members(f, f->wish->folder, 0);
    if (f->count &&
        !f->verdicts) /* places are by rank, or by path until something has been compared */
        qsort(f->members, f->count, sizeof *f->members, by_path);
    do {
        before = f->compared;
        for (size_t i = 0; i < f->count; i++)
            read_member(f, &f->members[i]);
        note_silent(f);
        make_room(f);
        while (f->count && next_steps(f, &first))
            compare(f, first);
    } while (f->compared != before);
    note_unaligned(f);
    if (f->wish->html)
        write_file(f, f->wish->html, print_page);
    if (f->wish->metrics)
        write_file(f, f->wish->metrics, print_metrics);
    return !f->count || count_ranks(f, has_ended) < f->count;
}

static void finish(follower *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->members[i].path);
        free(f->members[i].rest);
    }
    free(f->members);
    free(f->names);
    free(f->given);
    pki_job_window_destroy(f->window);
}

static void say_at_end(const follower *f)
{
    if (!f->word.last)
        say(f, "%zu ranks: too few steps to compare.", f->count);
    else if (!f->word.count)
        say(f, "%zu ranks, steps %llu to %llu: no rank is late.", f->count,
            (unsigned long long)f->word.first, (unsigned long long)f->word.last);
}

int job_follow(const follow_wish *wish)
{
    follower f = {.wish = wish};
    struct sigaction end = {.sa_handler = note_end};
    if (!find_members(&f, wish->folder, 0)) {
        int why = errno;
        finish(&f);
        return complain("%s: %s", wish->folder, strerror(why));
    }
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    while (look(&f) && !wish->once && !ended) {
        struct timespec pause = {.tv_sec = wish->every};
        nanosleep(&pause, NULL);
    }
    say_at_end(&f);
    if (wish->once && wish->json && !f.verdicts)
        print_json(&f, stdout);
    bool any = f.count != 0;
    finish(&f);
    return any ? EXIT_OK : complain("%s: there are no windows in it", wish->folder);
}
