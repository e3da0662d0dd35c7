#include "base/process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/files.h"
#include "base/memory.h"

/* ---- which processor it is ---- */

#define INFO_BYTES 8192 /* of the first processor, its flags included */

bool pki_cpu_info(const char *root, const char *key, char *out, size_t size)
{
    char path[PATH_MAX], text[INFO_BYTES];
    out[0] = '\0';
    return snprintf(path, sizeof path, "%s/proc/cpuinfo", root) < PATH_MAX &&
           pki_small_file(path, text, sizeof text) > 0 &&
           pki_small_file_field(text, key, out, size) && out[0];
}

bool pki_cpu_name(const char *root, char *out, size_t size)
{
    char maker[16], part[16], variant[16];
    if (pki_cpu_info(root, "model name", out, size) || pki_cpu_info(root, "Model", out, size))
        return true;
    if (!pki_cpu_info(root, "CPU part", part, sizeof part))
        return false;
    pki_cpu_info(root, "CPU implementer", maker, sizeof maker);
    bool known = pki_cpu_info(root, "CPU variant", variant, sizeof variant);
    snprintf(out, size, "implementer %s part %s%s%s", maker, part, known ? " variant " : "",
             known ? variant : "");
    return true;
}

/* ---- the machine that the process runs on; what is not known is "" or 0 ---- */

#define GPUS "/proc/driver/nvidia/gpus"

static void read_system(pki_host *m)
{
    struct utsname names;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    m->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    m->processors = online > 0 ? (uint64_t)online : 0;
    if (uname(&names) != 0)
        return;
    snprintf(m->kernel, sizeof m->kernel, "%.20s %.70s", names.sysname, names.release);
    snprintf(m->architecture, sizeof m->architecture, "%.31s", names.machine);
}

static void read_gpu(pki_host *m)
{
    char path[400], text[1024];
    DIR *folder = opendir(GPUS);
    for (struct dirent *e; folder && !m->gpu[0] && (e = readdir(folder));) {
        snprintf(path, sizeof path, "%s/%.255s/information", GPUS, e->d_name);
        pki_small_file(path, text, sizeof text);
        pki_small_file_field(text, "Model", m->gpu, sizeof m->gpu);
    }
    if (folder)
        closedir(folder);
    pki_small_file("/proc/driver/nvidia/version", text, sizeof text);
    const char *module = strstr(text, "Module");
    if (module)
        snprintf(m->driver, sizeof m->driver, "%.*s",
                 (int)strcspn(module + 6 + strspn(module + 6, " "), " \n"),
                 module + 6 + strspn(module + 6, " "));
}

void pki_host_read(pki_host *m)
{
    memset(m, 0, sizeof *m);
    pki_cpu_name("", m->cpu, sizeof m->cpu);
    read_system(m);
    read_gpu(m);
}

/* ---- what an executable says of its making ---- */

#define SECTIONS_MOST 1024
#define CONTENT_MOST 1024
#define SECTIONS_AT_ONCE 32u
#define NAMES_AT_ONCE 1024u

typedef ElfW(Ehdr) header;
typedef ElfW(Shdr) section;
typedef ElfW(Nhdr) note;

static bool read_at(int fd, void *out, size_t size, uint64_t at)
{
    return at < INT64_MAX && pread(fd, out, size, (off_t)at) == (ssize_t)size;
}

static bool read_header(int fd, header *h)
{
    return read_at(fd, h, sizeof *h, 0) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
           h->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           h->e_shentsize == sizeof(section) && h->e_shnum <= SECTIONS_MOST;
}

/* What is read of it lies together, so a few reads do. */
typedef struct file {
    int fd;
    header header;
    section sections[SECTIONS_AT_ONCE];
    unsigned first, count; /* of those */
    section names;
    char text[NAMES_AT_ONCE]; /* the names' beginning */
    size_t length;
} file;

static const section *section_at(file *f, unsigned i)
{
    if (i >= f->header.e_shnum)
        return NULL;
    if (i < f->first || i >= f->first + f->count) {
        f->first = i;
        f->count = PKI_MIN(SECTIONS_AT_ONCE, f->header.e_shnum - i);
        if (!read_at(f->fd, f->sections, f->count * sizeof(section),
                     f->header.e_shoff + (uint64_t)i * sizeof(section)))
            f->count = 0;
    }
    return f->count ? &f->sections[i - f->first] : NULL;
}

static bool read_names(file *f)
{
    const section *names = section_at(f, f->header.e_shstrndx);
    if (!names)
        return false;
    f->names = *names;
    f->length = PKI_MIN((size_t)names->sh_size, sizeof f->text);
    if (!read_at(f->fd, f->text, f->length, names->sh_offset))
        f->length = 0;
    return true;
}

/* A name as far as it is needed to tell it. */
static bool is_named(const file *f, const section *s, const char *name)
{
    char found[24] = "";
    size_t n = strlen(name) + 1;
    if (s->sh_name < f->length && n <= f->length - s->sh_name)
        return memcmp(f->text + s->sh_name, name, n) == 0;
    return s->sh_name < f->names.sh_size &&
           read_at(f->fd, found, n, f->names.sh_offset + s->sh_name) && memcmp(found, name, n) == 0;
}

static void read_build_id(const char *content, size_t size, pki_executable *e)
{
    note n;
    if (size < sizeof n)
        return;
    memcpy(&n, content, sizeof n);
    size_t name = (n.n_namesz + 3u) & ~(size_t)3, most = (sizeof e->build_id - 1) / 2;
    if (n.n_type != NT_GNU_BUILD_ID || n.n_namesz > size || sizeof n + name >= size)
        return;
    const unsigned char *id = (const unsigned char *)content + sizeof n + name;
    size_t length = PKI_MIN(PKI_MIN((size_t)n.n_descsz, size - sizeof n - name), most);
    for (size_t i = 0; i < length; i++)
        snprintf(e->build_id + 2 * i, 3, "%02x", id[i]);
}

/* Texts with a 0 behind each; of each the first time. */
static void read_comment(const char *content, size_t size, pki_executable *e)
{
    for (size_t at = 0; at < size; at += strnlen(content + at, size - at) + 1) {
        const char *text = content + at;
        size_t used = strlen(e->compiler), n = strnlen(text, size - at);
        if (n == 0 || n + 3 > sizeof e->compiler - used || memmem(e->compiler, used, text, n))
            continue;
        snprintf(e->compiler + used, sizeof e->compiler - used, "%s%.*s", used ? "; " : "", (int)n,
                 text);
    }
}

static void read_sections(file *f, pki_executable *e)
{
    const section *s;
    char content[CONTENT_MOST];
    if (!read_names(f))
        return;
    for (unsigned i = 0; (s = section_at(f, i)); i++) {
        size_t size = PKI_MIN((size_t)s->sh_size, sizeof content);
        bool comment = s->sh_type == SHT_PROGBITS && is_named(f, s, ".comment");
        bool id = s->sh_type == SHT_NOTE && is_named(f, s, ".note.gnu.build-id");
        if ((!comment && !id) || !read_at(f->fd, content, size, s->sh_offset))
            continue;
        if (comment)
            read_comment(content, size, e);
        else
            read_build_id(content, size, e);
    }
}

void pki_executable_read(const char *path, pki_executable *e)
{
    file f = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    memset(e, 0, sizeof *e);
    if (f.fd < 0)
        return;
    if (read_header(f.fd, &f.header))
        read_sections(&f, e);
    close(f.fd);
}

/* ---- threads of ours, and what they wait for ---- */

#define LOCKED_STACK ((size_t)512 << 10) /* drivers are called on it */

/* Thread-local storage lies on the stack, too: where it is larger, the usual size will do. */
static int create(pthread_t *thread, void *(*body)(void *), void *arg)
{
    pthread_attr_t little;
    if (!pki_mem_is_locking() || pthread_attr_init(&little) != 0)
        return pthread_create(thread, NULL, body, arg);
    pthread_attr_setstacksize(&little, LOCKED_STACK);
    int error = pthread_create(thread, &little, body, arg);
    pthread_attr_destroy(&little);
    return error ? pthread_create(thread, NULL, body, arg) : 0;
}

int pki_spawn(pthread_t *thread, void *(*body)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = create(thread, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void pki_condition_make(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* ---- a command of the user's, run beside the program, which does not notice ---- */

#define STACK ((size_t)128 << 10)
#define DESCRIPTORS_MOST 65536

extern char **environ;

typedef struct plan {
    const char *command;
    bool out, err; /* are descriptors 1 and 2 what they seem */
    int error;
    pid_t pid;
} plan;

/* In the process between, whose descriptors are its own. */
static void close_others(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return;
#endif
    long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (most > 0 && most < DESCRIPTORS_MOST ? most : DESCRIPTORS_MOST); fd++)
        close(fd);
}

static int set_up(posix_spawn_file_actions_t *files, posix_spawnattr_t *how, const plan *p)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    if (!p->out)
        posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0);
    if (!p->err)
        posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setsigmask(how, &none);
    posix_spawnattr_setsigdefault(how, &all);
    posix_spawnattr_setpgroup(how, 0); /* of its own: a terminal's ^C is not for it */
    return posix_spawnattr_setflags(how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                             POSIX_SPAWN_SETPGROUP);
}

static int spawn(plan *p)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    char shell[] = "sh", option[] = "-c";
    char *arguments[] = {shell, option, (char *)(uintptr_t)p->command, NULL};
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&how) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    int error = set_up(&files, &how, p);
    if (!error)
        error = posix_spawn(&p->pid, "/bin/sh", &files, &how, arguments, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static int between(void *argument)
{
    plan *p = argument;
    close_others();
    p->error = spawn(p);
    return 0; /* to clone's own code, which ends this process and no more */
}

int pki_run_detached(const char *command, pid_t *pid)
{
    plan p = {command, pki_standard_is_there(1), pki_standard_is_there(2), 0, 0};
    char *stack = pki_mem_private(STACK);
    if (!stack)
        return ENOMEM;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all,
                    &before); /* a handler would run in the process between, too */
    int child = clone(between, stack + STACK, CLONE_VM | CLONE_VFORK, &p);
    int error = child < 0 ? errno : p.error;
    while (child > 0 && waitpid(child, NULL, (int)__WCLONE) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pki_mem_unmap(stack, STACK);
    *pid = p.pid;
    return error;
}

static bool adopts_orphans(void)
{
    int is = 0;
    return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &is, 0, 0, 0) == 0 && is);
}

bool pki_detached_is_over(pid_t pid)
{
    return pid <= 0 || !adopts_orphans() || waitpid(pid, NULL, WNOHANG) != 0;
}

/* ---- which process of which job this is ---- */

/* CLOCK_MONOTONIC begins with the machine's start, and a time namespace may have shifted it. */
static void detect_clock(pki_world *w)
{
    static const char usual[] = "time:[4026531834]"; /* that of the machine itself */
    char boot[40], space[48] = "";
    ssize_t n = readlink("/proc/self/ns/time", space, sizeof space - 1);
    if (!pki_read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot))
        return;
    bool shifted = n > 0 && strcmp(space, usual) != 0;
    snprintf(w->clock, sizeof w->clock, "%s%s%s", boot, shifted ? " " : "", shifted ? space : "");
}

static void detect_program(pki_world *w)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    const char *last = strrchr(path, '/');
    snprintf(w->program, sizeof w->program, "%.127s", last ? last + 1 : "program");
}

void pki_world_detect(pki_world *w)
{
    memset(w, 0, sizeof *w);
    w->pid = (uint32_t)getpid();
    if (gethostname(w->host, sizeof w->host - 1) != 0)
        strcpy(w->host, "localhost");
    detect_program(w);
    detect_clock(w);
    pki_launcher_read(w);
}

/* ---- launcher ---- */

/* What launchers set, the most specific first. Slurm comes last: under mpirun inside sbatch every
 * rank has SLURM_PROCID=0. "": it has none. */
static const struct launcher {
    const char *rank, *size, *local_rank, *local_size, *node;
} launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"}, /* torchrun */
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", ""},
    {"PMIX_RANK", "PMIX_SIZE", "", "", ""},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""}, /* Hydra: MPICH, Intel */
    {"PALS_RANKID", "PALS_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PALS_NODEID"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", ""},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "", ""},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
     "JSM_NAMESPACE_LOCAL_SIZE", ""},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", "SLURM_NODEID"},
};
#define SLURM (PKI_COUNT_OF(launchers) - 1)

/* The narrowest first: a step of Slurm's lies in its job, a namespace of PMIx is a start. */
static const char *const jobs[] = {
    "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "PALS_APID", "FLUX_JOB_ID",
    "SLURM_JOB_ID",        "LSB_JOBID",      "PBS_JOBID",
};

static const char *text_in(const char *variable)
{
    const char *text = *variable ? secure_getenv(variable) : NULL;
    return text ? text : "";
}

/* -1 if it is not there or no plain number. */
static int32_t number_in(const char *variable)
{
    const char *text = text_in(variable);
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    long n = strtol(text, &end, 10);
    return *end || n >= INT32_MAX ? -1 : (int32_t)n; /* a rank needs a size above it */
}

static bool speaks(size_t i, int32_t *rank, int32_t *size)
{
    const char *name = launchers[i].rank;
    *rank = number_in(name);
    *size = number_in(launchers[i].size);
    bool alone = strcmp(name, "RANK") == 0 && *size < 0; /* too common a word for that */
    return *rank >= 0 && !alone;
}

/* Of a launcher that does not tell it: by another one that has given the same number. */
static int32_t size_by_others(size_t launcher, int32_t rank)
{
    for (size_t i = launcher + 1; i < PKI_COUNT_OF(launchers); i++) {
        int32_t other, size;
        if (speaks(i, &other, &size) && other == rank && size > rank)
            return size;
    }
    return rank + 1;
}

/* The launcher whose ranks they are; none: their count. */
static size_t find_rank(pki_world *w)
{
    for (size_t i = 0; i < PKI_COUNT_OF(launchers); i++) {
        int32_t rank, size;
        if (!speaks(i, &rank, &size))
            continue;
        w->rank = rank;
        w->size = size > rank ? size : size < 0 ? size_by_others(i, rank) : rank + 1;
        return i;
    }
    return PKI_COUNT_OF(launchers);
}

int32_t pki_launcher_tasks(const char *list, int32_t node)
{
    while (*list >= '0' && *list <= '9') {
        char *at;
        long tasks = strtol(list, &at, 10), times = 1;
        if (strncmp(at, "(x", 2) == 0) {
            times = strtol(at + 2, &at, 10);
            at += *at == ')';
        }
        if (node < times)
            return tasks < INT32_MAX ? (int32_t)tasks : 0;
        node -= (int32_t)times;
        list = *at == ',' ? at + 1 : "";
    }
    return 0;
}

static int32_t local_size_of(size_t i, int32_t node)
{
    int32_t size = number_in(launchers[i].local_size);
    if (i != SLURM || size >= 0)
        return size;
    const char *step = text_in("SLURM_STEP_TASKS_PER_NODE");
    size = *step && node >= 0 ? pki_launcher_tasks(step, node) : 0;
    return size ? size : number_in("SLURM_NTASKS_PER_NODE");
}

static bool read_local_rank(pki_world *w, size_t i)
{
    int32_t node = number_in(launchers[i].node), rank = number_in(launchers[i].local_rank);
    int32_t size = local_size_of(i, node);
    if (rank < 0 || rank >= size)
        return false;
    w->local_rank = rank;
    w->local_size = size;
    return true;
}

/* First by who told the rank; then by whoever does. */
static void find_local_rank(pki_world *w, size_t launcher)
{
    bool found = launcher < PKI_COUNT_OF(launchers) && read_local_rank(w, launcher);
    for (size_t i = 0; !found && i < PKI_COUNT_OF(launchers); i++)
        found = read_local_rank(w, i);
}

static void find_job(pki_world *w)
{
    for (size_t i = 0; i < PKI_COUNT_OF(jobs) && !w->job[0]; i++)
        snprintf(w->job, sizeof w->job, "%.63s", text_in(jobs[i]));
}

void pki_launcher_read(pki_world *w)
{
    size_t launcher = find_rank(w);
    find_local_rank(w, launcher);
    w->node = launcher < PKI_COUNT_OF(launchers) ? number_in(launchers[launcher].node) : -1;
    find_job(w);
}
