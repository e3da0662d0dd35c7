/* lib/attach/attach.c - the session of a program that knows nothing of it, which ends before the
 * process does
 */
#include "attach/attach.h"

#include <pk/private.h>
#include <pk/session.h>

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- what is wanted ---- */

pki_attached pki_attach;
static void load(void);
static pid_t here; /* the process of the session; 0: there is none */

bool pki_attach_is_here(void)
{
    return here && getpid() == here;
}

/* "nvtx,itt": these; "-ompt": all but this; "none". */
bool pki_attach_listens(const char *whom)
{
    load(); /* OpenMP's runtime asks before constructors, some of them */
    const char *list = pki_attach.listen;
    size_t n = strlen(whom);
    if (!pki_attach.folder)
        return false;
    if (!list || !*list)
        return true;
    bool without = *list == '-';
    for (list += without; *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && strncmp(list, whom, n) == 0)
            return !without;
    return without;
}

PK_API int pk_attach_listens_(const char *whom);

int pk_attach_listens_(const char *whom)
{
    return pki_attach_listens(whom);
}

/* ---- the environment ---- */

bool pki_attach_is_variable(const char *line, const char *name)
{
    size_t n = strlen(name);
    return n && strncmp(line, name, n) == 0 && line[n] == '=';
}

char *pki_attach_find_variable(const char *name)
{
    for (char **e = environ; e && *e; e++)
        if (pki_attach_is_variable(*e, name))
            return *e + strlen(name) + 1;
    return NULL;
}

bool pki_attach_is_told(const char *line)
{
#define IS(name, member)                                                                           \
    if (pki_attach_is_variable(line, name))                                                        \
        return true;
    PKI_ATTACH_VARIABLES(IS)
#undef IS
    return false;
}

/* As it was before `pk run`: children are none of ours, and the program reads what it would have
 * read. In place, since main's third argument may be this very array. Behind its end the auxiliary
 * vector begins, so pairs that say nothing fill what is free: `pk run` sees to it that they fit. */
static void restore_environment(void)
{
    char **to = environ, **e = environ;
    for (; e && *e; e++) {
        bool preload = pki_attach_is_variable(*e, "LD_PRELOAD");
        if (preload && pki_attach.preload_line)
            *to++ = pki_attach.preload_line;
        else if (!preload && !pki_attach_is_told(*e))
            *to++ = *e;
    }
    if (!to)
        return;
    for (*to++ = NULL; to < e; *to++ = NULL)
        *to++ = (char *)(uintptr_t)AT_IGNORE;
}

/* "NAME=VALUE"; NULL: there is no such variable. */
static char *line_of(const char *name, const char *value)
{
    char *line = NULL;
    return value && asprintf(&line, "%s=%s", name, value) >= 0 ? line : NULL;
}

static const char *copy_of(const char *name)
{
    char *line = line_of(name, pki_attach_find_variable(name));
    return line ? line + strlen(name) + 1 : NULL;
}

static void read_variables(void)
{
#define READ(name, member) pki_attach.member = copy_of(name);
    PKI_ATTACH_VARIABLES(READ)
#undef READ
    pki_attach.preload_line = line_of("LD_PRELOAD", pki_attach.preload);
}

/* ---- the session ---- */

bool pki_attach_is_first(void)
{
    return pki_attach.pid && atol(pki_attach.pid) == (long)getpid();
}

/* A path in the folder, of a pattern of pk_options; the variable of the same option wins. It is
 * never freed: pk_start copies, but it is few bytes, once. */
static const char *path_of(const char *variable, const char *ending)
{
    const char *each = pki_attach_is_first() ? "" : "-%p";
    size_t n = 0;
    char *out = NULL;
    if (variable && secure_getenv(variable))
        return NULL;
    char *folder = calloc(2, strlen(pki_attach.folder) + 1);
    for (const char *c = pki_attach.folder; folder && *c; c++) {
        folder[n++] = *c;
        if (*c == '%')
            folder[n++] = '%';
    }
    if (folder && asprintf(&out, "%s/%%r%s%s", folder, each, ending) < 0)
        out = NULL;
    free(folder);
    return out;
}

/* A value of pk_options.tuning in quotes. */
static char *quoted(const char *text)
{
    size_t n = 0;
    char *out = text ? calloc(2, strlen(text) + 2) : NULL;
    if (!out)
        return NULL;
    out[n++] = '\'';
    for (; *text; text++) {
        out[n++] = *text;
        if (*text == '\'')
            out[n++] = '\'';
    }
    out[n] = '\'';
    return out;
}

/* Few captures: each takes some 10 ms of a processor that the program may want itself. */
static const char *tuning(void)
{
    char *arena = quoted(path_of("PK_ARENA_PATH", ".arena")), *out = NULL;
    bool nvtx = pki_attach_listens("nvtx") && !secure_getenv("PK_NVTX_CONSUME");
    bool few = !secure_getenv("PK_CAPTURES_PER_HOUR");
    if (asprintf(&out, "%s%s%s%s", nvtx ? "nvtx_consume=1," : "", few ? "captures_per_hour=4," : "",
                 arena ? "arena_path=" : "flush_ms=", arena ? arena : "") < 0)
        out = NULL;
    free(arena);
    return out;
}

static const char *unless_set(const char *variable, const char *text)
{
    return secure_getenv(variable) ? NULL : text;
}

static int32_t number_of(const char *text)
{
    return text ? (int32_t)atol(text) : 0;
}

/* Where no driver of a GPU is there is nothing to wake up for. */
static const char *backends(void)
{
    return pki_attach.gpu ? "cuda,cupti,nvtx,nccl,nvml" : "nvtx";
}

#define BURST 1000 /* ms: a short run pays for looks as a long one does */

/* The program has not asked for perfkit, so whatever is wrong is said in a line, and it goes on. */
static void begin(void)
{
    char line[400];
    const int32_t rank = number_of(pki_attach.rank), size = number_of(pki_attach.size);
    const bool told =
        size > 0 && !secure_getenv("PK_WORLD_SIZE"); /* `env -i` leaves no launcher's */
    here = getpid(); /* pk_start asks for variables that we answer */
    pk_looks_burst_(BURST);
    pk_status status = pk_start(
        pk_options(.report_path = path_of("PK_REPORT_PATH", ".report.json"),
                   .trace_path = pki_attach.trace ? path_of("PK_TRACE_PATH", ".trace.json") : NULL,
                   .windows_path = path_of("PK_WINDOWS_PATH", ".windows.jsonl"),
                   .capture = unless_set("PK_CAPTURE", "slow=1.5,floor:10000;request;straggler"),
                   .capture_path = path_of("PK_CAPTURE_PATH", "-%s.step.json.gz"),
                   .backends = unless_set("PK_BACKENDS", backends()), .tuning = tuning(),
                   .rank = told ? rank : 0, .world_size = told ? size : 0));
    if (status || !PK_ON_)
        here = 0;
    else
        pk_thread_set_name(program_invocation_short_name); /* and it records: it is sampled */
    if (!status || status == PK_EBUSY || !pki_attach_is_first())
        return;
    snprintf(line, sizeof line, "pk run: nothing is recorded: %.300s (%s)", pk_error_message(),
             pk_status_name(status));
    pk_say_(rank, line);
}

/* ---- its end ---- */

static const char *found_steps = ""; /* in words */

/* Of a job its rank 0, and of a tree of processes the first. */
static bool speaks(void)
{
    return !pki_attach.quiet && pki_attach_is_first() &&
           !(pki_attach.rank && atol(pki_attach.rank));
}

static long ranks(void)
{
    long size = pki_attach.size ? atol(pki_attach.size) : 1;
    return size > 1 ? size : 1;
}

static void say_where(bool reported)
{
    const char *folder = pki_attach.folder;
    char line[1500];
    if (secure_getenv("PK_REPORT_PATH"))
        snprintf(line, sizeof line, "recorded in %.500s", folder);
    else if (!reported)
        snprintf(line, sizeof line, "the report could not be written to %.500s", folder);
    else
        snprintf(line, sizeof line, "recorded in %.500s: `pk %s %.500s%s` shows it%s", folder,
                 ranks() > 1 ? "job" : "report", folder, ranks() > 1 ? "" : "/0.report.json",
                 found_steps);
    pk_say_(0, line);
}

/* ---- the first screen of what was recorded ---- */

#define SCREEN 24       /* lines */
#define PATIENCE 2000   /* ms, for other ranks' reports */
#define AS_LONG_AS 5000 /* ms, for `pk` */

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static bool is_reported(long rank)
{
    char report[4200];
    snprintf(report, sizeof report, "%.4000s/%ld.report.json", pki_attach.folder, rank);
    return access(report, R_OK) == 0;
}

/* Other ranks end at about the same time. */
static void wait_for_reports(void)
{
    long waited = 0;
    for (long rank = 0; rank < ranks(); rank++)
        for (; waited < PATIENCE && !is_reported(rank); waited += 5)
            pause_ms(5);
}

/* In a child after vfork(), which has all signals blocked, so that none of the program's handlers
 * runs in it; `pk` needs none. A handler may have called exit() amid malloc, and posix_spawn's
 * lists of files are malloc's; nor is anything here where a thread can be cancelled. */
_Noreturn static void become_pk(char *const words[], int out)
{
    int high = fcntl(out, F_DUPFD_CLOEXEC, 3);
    int null = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    int from = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, 3);
    if (dup2(from, 0) == 0 && dup2(high, 1) == 1 && dup2(from, 2) == 2)
        syscall(SYS_execve, pki_attach.command, words, environ);
    for (;;)
        syscall(SYS_exit_group, 127);
}

/* `pk job FOLDER`, or `pk report FILE`, with its output in *out. 0: it cannot be started. */
static pid_t start_pk(int *out)
{
    char path[4200], name[] = "pk", job[] = "job", report[] = "report";
    char *words[] = {name, ranks() > 1 ? job : report, path, NULL};
    sigset_t all, before;
    int ends[2];
    snprintf(path, sizeof path, ranks() > 1 ? "%.4000s" : "%.4000s/0.report.json",
             pki_attach.folder);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t child = vfork();
    if (child == 0)
        become_pk(words, ends[1]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    *out = ends[0];
    if (child < 0)
        close(ends[0]);
    return child < 0 ? 0 : child;
}

static size_t read_all(int from, char *to, size_t room)
{
    struct pollfd ready = {.fd = from, .events = POLLIN};
    size_t n = 0;
    while (n < room && poll(&ready, 1, AS_LONG_AS) > 0) {
        ssize_t more = read(from, to + n, room - n);
        if (more <= 0)
            break;
        n += (size_t)more;
    }
    return n;
}

/* So many lines at most, and of those up to the last empty one where there is more. */
static size_t first_screen(const char *text, size_t size)
{
    size_t end = 0, part = 0;
    for (int lines = 0; lines < SCREEN; lines++) {
        const char *next = memchr(text + end, '\n', size - end);
        if (!next)
            return end;
        if (next == text + end && lines > 0)
            part = end;
        end = (size_t)(next - text) + 1;
    }
    return end < size && part ? part : end;
}

/* The program's handler has not to hear of a child that is none of its own. Nor is that killed
 * which another thread of the program has waited for: its number may be another process's. */
static void show_screen(void)
{
    static char text[16384];
    struct sigaction usual = {.sa_handler = SIG_DFL}, before;
    int out;
    wait_for_reports();
    sigaction(SIGCHLD, &usual, &before);
    pid_t child = start_pk(&out);
    if (child) {
        size_t size = first_screen(text, read_all(out, text, sizeof text));
        close(out);
        if (waitpid(child, NULL, WNOHANG) == 0) {
            kill(child, SIGKILL); /* it has said enough, or nothing in all that time */
            waitpid(child, NULL, 0);
        }
        pk_show_(text, size);
    }
    sigaction(SIGCHLD, &before, NULL);
}

static void end(bool process, bool whole)
{
    found_steps = pki_attach_steps_end();
    pk_exit_();
    if (!process || !speaks())
        return;
    bool reported = is_reported(0), own = !secure_getenv("PK_REPORT_PATH");
    if (whole && reported && own && !pki_attach.children)
        show_screen();
    say_where(reported);
}

/* No thread is cancelled in here: it calls exit(), prctl(), ..., in which it is not without us.
 * Once the session has ended the kernel is asked nothing: it may kill who asks (seccomp). */
void pki_attach_end(bool process, bool whole)
{
    static bool ended;
    int before;
    if (__atomic_load_n(&ended, __ATOMIC_RELAXED) || !pki_attach_is_here() ||
        __atomic_exchange_n(&ended, true, __ATOMIC_RELAXED))
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    end(process, whole);
    pthread_setcancelstate(before, NULL);
}

static void at_exit(void)
{
    pki_attach_end(true, true);
}

/* libpk_mpi calls it in MPI_Abort, behind which no exit() comes by. */
PK_API void pk_attach_end_(void);

void pk_attach_end_(void)
{
    pki_attach_end(true, false);
}

/* ---- variables by which libraries find who listens ---- */

/* They are in no environment, so no child finds them; and who reads them by getenv(), as all of
 * these libraries do, gets an answer unless the user has given one. */
static struct {
    const char *name, *value;
} answers[8];

PK_API char *getenv(const char *name)
{
    char *value = pki_attach_find_variable(name);
    for (size_t i = 0; !value && i < sizeof answers / sizeof *answers && answers[i].name; i++)
        if (strcmp(answers[i].name, name) == 0 && (pki_attach.children || pki_attach_is_here()))
            return (char *)(uintptr_t)answers[i].value;
    return value;
}

PK_API char *secure_getenv(const char *name);

char *secure_getenv(const char *name)
{
    return getauxval(AT_SECURE) ? NULL : getenv(name);
}

static void answer(const char *name, const char *value)
{
    size_t i = 0;
    while (answers[i].name)
        i++;
    answers[i].value = value;
    answers[i].name = name;
}

/* ---- the end of the process ---- */

PK_API void _exit(int status)
{
    pki_attach_end(true, false);
    for (;;)
        syscall(SYS_exit_group, status);
}

PK_API void _Exit(int status)
{
    _exit(status);
}

/* ---- loaded ---- */

static void find_files(char self[4096], char perfkit[4096])
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)&pki_attach, &info) || !info.dli_fname ||
        !realpath(info.dli_fname, self))
        self[0] = '\0';
    if (!dladdr((void *)(uintptr_t)&pk_start, &info) || !info.dli_fname ||
        !realpath(info.dli_fname, perfkit))
        perfkit[0] = '\0';
}

static void answer_listeners(const char *self, const char *perfkit)
{
    if (*perfkit && pki_attach_listens("nvtx"))
        answer("NVTX_INJECTION64_PATH", perfkit);
    if (*perfkit)
        answer("NCCL_PROFILER_PLUGIN", perfkit);
    if (*self && pki_attach_listens("itt")) {
        answer("INTEL_LIBITTNOTIFY64", self);
        answer("INTEL_ITTNOTIFY_GROUPS", "all");
    }
    if (*self && pki_attach_listens("kokkos")) {
        answer("KOKKOS_TOOLS_LIBS", self);
        answer("KOKKOS_PROFILE_LIBRARY", self);
    }
}

/* Another process, though in a namespace of its own it may have the same number. */
static void in_child(void)
{
    static char nobody[] = "PK_RUN_PID=0";
    here = 0;
    pki_attach.pid = nobody + sizeof "PK_RUN_PID";
    pki_become_in_child();
}

static void load(void)
{
    static char self[4096], perfkit[4096];
    static bool loaded;
    if (loaded)
        return;
    loaded = true;
    read_variables();
    if (!pki_attach.folder)
        return;
    if (!pki_attach.children)
        restore_environment();
    find_files(self, perfkit);
    answer_listeners(self, perfkit);
    pthread_atfork(NULL, NULL, in_child);
    begin();
    if (here)
        atexit(at_exit);
}

__attribute__((constructor)) static void load_first(void)
{
    load();
}
