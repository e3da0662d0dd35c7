/* tools/run/run.c - pk run: a program as it is, under perfkit */
#include <pk/version.h>

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/variables.h"
#include "base/files.h"
#include "base/process.h"
#include "command.h"
#include "run/own.h"
#include "run/program.h"

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define ENDING ".so." TEXT(PK_ABI)

/* ---- what is wanted ---- */

typedef struct run_wish {
    const char *folder, *listen, *mpi, *pid, *rank, *size, *step, *functions;
    bool children, trace, quiet;
    char **program;
    operands none;
} run_wish;

static void take_program(void *wish, char **arguments, int count)
{
    run_wish *w = wish;
    w->program = count > 0 ? arguments : NULL;
}

static bool take_mpi(void *wish, const option_given *given)
{
    run_wish *w = wish;
    static const char *const known[] = {"openmpi", "mpich", "none"};
    if (!option_has_value(given))
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(given->text, known[i]) == 0)
            return w->mpi = given->text, true;
    return option_refuse(given, "openmpi, mpich or none");
}

static bool take_functions(void *wish, const option_given *given)
{
    run_wish *w = wish;
    regex_t pattern;
    if (!option_has_value(given))
        return false;
    if (regcomp(&pattern, given->text, REG_EXTENDED | REG_NOSUB) != 0)
        return option_refuse(given, "a regular expression, POSIX's extended ones");
    regfree(&pattern);
    w->functions = given->text;
    return true;
}

#define AT(member) offsetof(run_wish, member)
static const option run_options[] = {
    {"-o", "FOLDER", "where what is recorded goes; PROGRAM.pk by default", PKI_OPTION_FOLDER,
     option_text, AT(folder), .needs = "the name of a folder"},
    {"--listen", "LIST",
     "whom to listen to: some of nvtx, itt, kokkos, ompt, pcontrol, with commas between;"
     " \"-ompt\": all but this; \"none\". All by default",
     PKI_OPTION_WORD, option_text, AT(listen), .needs = "a list"},
    {"--step", "WHAT",
     "what begins a step, instead of what is found: a region's name (MPI_Allreduce, a range);"
     " NAME@COMM, on a communicator of that name or size; NAME/N, each Nth of them; what the report"
     " says; \"none\": no steps",
     PKI_OPTION_WORD, option_text, AT(step), .needs = "a region's name"},
    {"--functions", "REGEX",
     "calls of functions with such names are regions, where the program was compiled with"
     " -finstrument-functions",
     PKI_OPTION_WORD, take_functions, 0, .needs = "a regular expression"},
    {"--mpi", "WHICH",
     "openmpi, mpich or none: for a program that loads its MPI while it runs, as Python does",
     PKI_OPTION_WORD, take_mpi, 0, .needs = "openmpi, mpich or none"},
    {"--trace", NULL, "a whole trace of each rank, too", .at = AT(trace)},
    {"--children", NULL, "the programs that it starts, too", .at = AT(children)},
    {"--quiet", NULL, "say and show nothing at the end", .at = AT(quiet)},
};

static const option_table run_table = {
    .command = "run",
    .usage = "[-o FOLDER] [OPTION ...] -- PROGRAM [ARGUMENT ...]",
    .about =
        "Runs a program as it is, under perfkit: nothing is compiled, linked or changed. What\n"
        "it is is read from its files; perfkit is preloaded, and the process becomes the\n"
        "program, so exit status, signals and streams are the program's. Under a launcher\n"
        "each rank runs it: mpiexec -n 4 pk run -- ./solver",
    .notes = "FOLDER gets RANK.report.json, windows, and captures of slow steps: for `pk report`,\n"
             "and of several ranks `pk job FOLDER`. Variables (PK_CAPTURE, ...) go on as they do\n"
             "without it. Exit status: the program's; 126: it cannot be executed; 127: there is\n"
             "none.",
    .options = {run_options, sizeof run_options / sizeof *run_options},
    .who = "run: ",
    .operands = offsetof(run_wish, none),
    .rest = take_program,
};

/* ---- where perfkit's libraries lie ---- */

static bool find_library(const char *name, char path[PATH_MAX])
{
    char file[80];
    snprintf(file, sizeof file, "%s" ENDING, name);
    return own_file(file, path);
}

/* ---- the folder ---- */

static bool make_folder(const char *name, char path[PATH_MAX])
{
    char parts[PATH_MAX];
    struct stat s;
    if (snprintf(parts, sizeof parts, "%s", name) >= PATH_MAX)
        return errno = ENAMETOOLONG, false;
    for (char *slash = strchr(parts + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(parts, 0777); /* the last one says what is wrong */
        *slash = '/';
    }
    if (mkdir(parts, 0777) != 0 && errno != EEXIST)
        return false;
    if (!realpath(parts, path) || stat(path, &s) != 0)
        return false;
    if (!S_ISDIR(s.st_mode))
        return errno = ENOTDIR, false;
    return access(path, W_OK | X_OK) == 0;
}

/* At a number behind this sign; behind it, or where it was if there is none. */
static const char *behind_number(const char *at, char sign)
{
    size_t digits = *at == sign ? strspn(at + 1, "0123456789") : 0;
    return digits ? at + 1 + digits : at;
}

/* What stands behind the rank in a name of ours: "", -PID of a child, -STEP or -PID-STEP of a
 * capture (".1" for the second of a step), and the ending. */
static bool is_ours(const char *at)
{
    static const char *const endings[] = {".report.json", ".windows.jsonl", ".windows.jsonl.prev",
                                          ".trace.json", ".arena"};
    const char *one = behind_number(at, '-'), *two = behind_number(one, '-');
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strcmp(one, endings[i]) == 0)
            return true;
    return one > at && strcmp(behind_number(two, '.'), ".step.json.gz") == 0;
}

/* The rank of a file of ours, by its name; -1: it is none. */
static long rank_of(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    bool plain = digits && digits < 10 && (*name != '0' || digits == 1);
    return plain && is_ours(name + digits) ? atol(name) : -1;
}

/* Of a name of ours: is it RANK-PID? */
static bool is_of_child(const char *name)
{
    const char *at = name + strspn(name, "0123456789");
    const char *one = behind_number(at, '-'), *two = behind_number(one, '-');
    return two > one || (one > at && !strstr(one, ".step."));
}

/* What an earlier run has left under this rank's number, and rank 0 what ranks have that this job
 * has not; not the arenas of processes that run. again: this process has become another program,
 * and what children have left, or ranks that it has started, is of this run. */
static void clean_folder(const char *path, int rank, int size, bool again)
{
    char file[PATH_MAX];
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        long number = rank_of(e->d_name);
        bool others = rank == 0 && number >= (size ? size : 1);
        bool old = again ? number == rank && !is_of_child(e->d_name) : number == rank || others;
        if (old && snprintf(file, sizeof file, "%s/%s", path, e->d_name) < PATH_MAX &&
            !pki_file_is_locked(file))
            unlink(file);
    }
    if (folder)
        closedir(folder);
}

/* ---- what it is said of a program that is not attached to ---- */

static bool speaks; /* of the ranks of a job the first, and not what a program has started */

__attribute__((__format__(__printf__, 1, 2))) static void say(const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    if (speaks && vasprintf(&text, format, args) >= 0)
        complain("run: %s", text);
    va_end(args);
    free(text);
}

static bool may_attach(const program *p)
{
    switch (p->bar) {
    case PROGRAM_OPEN:
        return true;
    case PROGRAM_STATIC:
        say("%s is linked statically, so nothing can be preloaded: it runs as without", p->binary);
        break;
    case PROGRAM_PRIVILEGED:
        say("%s runs with another one's rights, so the loader preloads nothing: it runs as without",
            p->binary);
        break;
    case PROGRAM_UNKNOWN:
        say("/proc/self/exe cannot be read, so it is not known what is of this machine: %s runs as"
            " without",
            p->binary);
        break;
    case PROGRAM_FOREIGN:
        say("%s is for another processor or word size: it runs as without", p->binary);
        break;
    case PROGRAM_MUSL:
        say("%s is loaded by %s, and perfkit is for glibc: it runs as without", p->binary,
            p->detail);
        break;
    case PROGRAM_USES:
        say("%s is linked with perfkit (%s): it keeps its own session, and runs as without",
            p->binary, p->detail);
        break;
    case PROGRAM_STRANGE:
        break; /* what follows says what is wrong */
    }
    return false;
}

/* ---- the environment ---- */

static bool prefix_preload(const char *path)
{
    const char *there = getenv("LD_PRELOAD");
    char *all = NULL;
    if (strpbrk(path, " :"))
        return say("%s has a blank or a colon, which the loader takes for an end: the program runs"
                   " as without",
                   path),
               false;
    bool made = asprintf(&all, "%s%s%s", path, there && *there ? ":" : "", there ? there : "") >= 0;
    bool set = made && setenv("LD_PRELOAD", all, 1) == 0;
    if (made)
        free(all);
    return set;
}

static void put(const char *variable, const char *value)
{
    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
}

static const char *mpi_name(const run_wish *w, const program *p)
{
    if (w->mpi)
        return strcmp(w->mpi, "none") == 0 ? NULL : w->mpi;
    if (p->mpi == MPI_STRANGE)
        say("%s is an MPI that perfkit does not know: its calls are not recorded", p->mpi_library);
    return p->mpi == MPI_OPEN ? "openmpi" : p->mpi == MPI_MPICH ? "mpich" : NULL;
}

static void preload_mpi(const run_wish *w, const program *p)
{
    const char *which = mpi_name(w, p);
    char name[64], path[PATH_MAX];
    if (!which)
        return;
    snprintf(name, sizeof name, "libpk_mpi-%.32s", which);
    if (find_library(name, path))
        prefix_preload(path);
    else
        say("there is no %s" ENDING " here: calls of MPI are not recorded", name);
}

/* Where a GPU is, kernels are recorded in captures. */
static void want_gpu(void)
{
    put("PK_RUN_GPU", access("/dev/nvidiactl", F_OK) == 0 ? "1" : NULL);
}

static void put_number(const char *variable, long value)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", value);
    put(variable, text);
}

/* So many bytes of address space do libraries and the smallest session take, with room: 10 and 14
 * MiB. Where the program has no more than that beside itself, the loader would end it. */
#define ATTACHED_BYTES ((rlim_t)64 << 20)

static bool has_room(const program *p)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_cur == RLIM_INFINITY ||
        most.rlim_cur >= p->bytes + ATTACHED_BYTES)
        return true;
    say("the limit of address space (ulimit -v) is %llu KiB, and with perfkit %s needs %llu: it"
        " runs as without",
        (unsigned long long)most.rlim_cur >> 10, p->binary,
        (unsigned long long)(p->bytes + ATTACHED_BYTES) >> 10);
    return false;
}

static size_t count_variables(void)
{
    size_t n = 0;
    while (environ && environ[n])
        n++;
    return n;
}

/* Those that stand in front of what the user has preloaded. */
static void put_libraries(const char *users)
{
    const char *all = getenv("LD_PRELOAD");
    size_t n = all ? strlen(all) : 0, of_user = users && *users ? strlen(users) + 1 : 0;
    char *ours = all && n > of_user ? strndup(all, n - of_user) : NULL;
    put("PK_RUN_LIBRARIES", ours);
    free(ours);
}

static bool set_environment(const run_wish *w, const program *p, const char *folder,
                            const pki_world *world)
{
    char attach[PATH_MAX], self[PATH_MAX];
    const char *before = getenv("LD_PRELOAD");
    char *kept = before ? strdup(before) : NULL;
    size_t variables = count_variables();
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    if (!find_library("libpk_attach", attach)) {
        say("there is no libpk_attach" ENDING " here: the program runs as without");
        return free(kept), false;
    }
    preload_mpi(w, p);
    if (!prefix_preload(attach)) {
        put("LD_PRELOAD", kept);
        return free(kept), false;
    }
    put_libraries(kept);
    put("PK_RUN_PRELOAD", kept);
    put("PK_RUN_FOLDER", folder);
    put("PK_RUN_COMMAND", self);
    put("PK_RUN_LISTEN", w->listen);
    put("PK_RUN_MPI", w->mpi);
    put("PK_RUN_STEP", w->step);
    put("PK_RUN_FUNCTIONS", w->functions);
    put("PK_RUN_TRACE", w->trace ? "1" : NULL);
    put("PK_RUN_CHILDREN", w->children ? "1" : NULL);
    put("PK_RUN_QUIET", w->quiet ? "1" : NULL);
    put_number("PK_RUN_PID", w->pid ? atol(w->pid) : (long)getpid());
    put_number("PK_RUN_RANK", world->rank);
    put_number("PK_RUN_SIZE", world->size);
    want_gpu();
    put("PK_RUN_PADDING", (count_variables() - variables) % 2 ? "1" : NULL);
    free(kept);
    return true;
}

/* ---- attached, or as without ---- */

/* By the environment, which may be a new one (env -i): then as it was. */
static void find_rank(const run_wish *w, pki_world *world)
{
    pki_world_detect(world);
    if (world->size || !w->rank || !w->size)
        return;
    world->rank = (int32_t)atol(w->rank);
    world->size = (int32_t)atol(w->size);
}

static void attach(const run_wish *w, const program *p, char *name)
{
    char folder[PATH_MAX], otherwise[PATH_MAX];
    bool first = !w->pid || atol(w->pid) == (long)getpid();
    pki_world world;
    find_rank(w, &world);
    speaks = world.rank == 0 && first;
    if (!may_attach(p) || !has_room(p))
        return;
    snprintf(otherwise, sizeof otherwise, "%.*s.pk", PATH_MAX - 8, basename(name));
    const char *wanted = w->folder ? w->folder : otherwise;
    if (!make_folder(wanted, folder)) {
        say("%s: %s: nothing can be written there, and the program runs as without", wanted,
            strerror(errno));
        return;
    }
    if (first)
        clean_folder(folder, world.rank, world.size, w->pid != NULL);
    set_environment(w, p, folder, &world);
}

/* As execvp does it with what has no head. */
static void become(const program *p, char *const arguments[])
{
    size_t n = 0;
    execv(p->path, arguments);
    if (errno != ENOEXEC || !p->headless)
        return;
    while (arguments[n])
        n++;
    char **with = calloc(n + 2, sizeof *with);
    if (!with)
        return;
    char shell[] = "sh";
    with[0] = shell;
    with[1] = (char *)(uintptr_t)p->path;
    for (size_t i = 1; i < n; i++)
        with[i + 1] = arguments[i];
    execv("/bin/sh", with);
    free(with);
}

static int cannot(const char *name, int status)
{
    int why = errno;
    complain("run: %s: %s", name, strerror(why));
    return status;
}

/* The process that we attached to becomes another program: lib/attach/attach.c lets us do it. Its
 * file, or NULL: that is not so. The variables are none of the program's. */
static const char *read_again(run_wish *w)
{
    const char *again = getenv("PK_RUN_AGAIN");
    if (again)
        *w = (run_wish){.folder = getenv("PK_RUN_FOLDER"),
                        .listen = getenv("PK_RUN_LISTEN"),
                        .mpi = getenv("PK_RUN_MPI"),
                        .step = getenv("PK_RUN_STEP"),
                        .functions = getenv("PK_RUN_FUNCTIONS"),
                        .pid = getenv("PK_RUN_PID"),
                        .rank = getenv("PK_RUN_RANK"),
                        .size = getenv("PK_RUN_SIZE"),
                        .trace = getenv("PK_RUN_TRACE") != NULL,
                        .children = getenv("PK_RUN_CHILDREN") != NULL,
                        .quiet = getenv("PK_RUN_QUIET") != NULL,
                        .program = w->program};
#define FORGET(name, member) unsetenv(name);
    PKI_ATTACH_VARIABLES(FORGET)
#undef FORGET
    unsetenv("PK_RUN_AGAIN");
    return again;
}

int command_run(int argc, char **argv)
{
    static run_wish w;
    static program p;
    int status = options_read(&run_table, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (w.none.count || !w.program)
        return complain("run: the program stands behind --: pk run -- PROGRAM [ARGUMENT ...]");
    const char *again = read_again(&w);
    const char *word = again ? again : w.program[0];
    char *name = strdup(w.program[0]);
    status = again ? program_take(again, &p) : program_find(word, &p);
    if (status || !name)
        return cannot(word, status ? status : 126);
    program_look(&p, getenv("LD_PRELOAD"));
    attach(&w, &p, name);
    become(&p, w.program);
    free(name);
    return cannot(word, errno == ENOENT ? 127 : 126);
}
