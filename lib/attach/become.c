/* lib/attach/become.c - the process becomes another program, or another one to the kernel:
 * functions of the C library's in front of which libpk_attach stands
 *
 * They do what they do without it, but for the process of the session. Where that becomes another
 * program (sh -c './solver', env, numactl), `pk run` is asked to look at that one, too; and where
 * the kernel wants a process of one thread, or changes that thread alone, or is to kill who makes
 * other calls than some, perfkit's are gone first.
 * They need no malloc, no lock, and nothing that a constructor has made: children after vfork() and
 * handlers of signals call them.
 */
#include "attach/attach.h"

#include <pk/version.h>

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- would the kernel execute it? ---- */

/* Who tries to execute what cannot be executed goes on, so `pk` must not stand in its place. */
typedef enum file_kind {
    FILE_NONE,  /* execve fails */
    FILE_TEXT,  /* execve fails with ENOEXEC; execvp, and shells themselves, have a shell read it */
    FILE_OTHER, /* execve alone knows */
    FILE_SCRIPT, /* as the file that its first line names */
    FILE_RUNS,
} file_kind;

#define HEAD 256    /* what the kernel reads of a file to see what it is */
#define SCRIPTS 5   /* so many in a row */
#define AS_TEXT 128 /* shells look for a 0 in so many bytes */

/* By system calls alone: the C library's functions may end a thread that is to be cancelled. */
static int open_file(const char *path, int flags)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
}

static void close_file(int fd)
{
    syscall(SYS_close, fd);
}

static bool read_at(int fd, void *to, size_t size, uint64_t offset)
{
    return syscall(SYS_pread64, fd, to, size, offset) == (long)size;
}

static bool may_execute(const char *path)
{
    struct stat s;
    return path && strlen(path) < PATH_MAX && stat(path, &s) == 0 && S_ISREG(s.st_mode) &&
           access(path, X_OK) == 0;
}

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden"))); /* the linker's */

static bool is_native(const ElfW(Ehdr) * head)
{
    return memcmp(head->e_ident, __ehdr_start.e_ident, EI_VERSION) == 0 &&
           head->e_machine == __ehdr_start.e_machine &&
           (head->e_type == ET_EXEC || head->e_type == ET_DYN) &&
           head->e_phentsize == sizeof(ElfW(Phdr)) && head->e_phnum > 0;
}

static bool is_loader(const char *path)
{
    ElfW(Ehdr) head;
    int fd = may_execute(path) ? open_file(path, 0) : -1;
    bool is = fd >= 0 && read_at(fd, &head, sizeof head, 0) && is_native(&head);
    if (fd >= 0)
        close_file(fd);
    return is;
}

/* Its loader is another file that has to be there. */
static file_kind kind_of_elf(int fd, const ElfW(Ehdr) * head)
{
    ElfW(Phdr) part;
    char loader[HEAD];
    if (!is_native(head))
        return FILE_OTHER;
    for (unsigned n = 0; n < head->e_phnum; n++) {
        if (!read_at(fd, &part, sizeof part, head->e_phoff + n * sizeof part))
            return FILE_OTHER;
        if (part.p_type != PT_INTERP)
            continue;
        if (part.p_filesz < 2 || part.p_filesz > sizeof loader ||
            !read_at(fd, loader, part.p_filesz, part.p_offset) || loader[part.p_filesz - 1])
            return FILE_OTHER;
        return is_loader(loader) ? FILE_RUNS : FILE_NONE;
    }
    return FILE_RUNS;
}

/* What stands behind "#!", as the kernel reads it. */
static file_kind kind_of_script(const char *head, size_t size, char program[HEAD])
{
    const char *line = memchr(head, '\n', size);
    size_t from = 2, end = line ? (size_t)(line - head) : size, to;
    while (from < end && (head[from] == ' ' || head[from] == '\t'))
        from++;
    for (to = from; to < end && head[to] && head[to] != ' ' && head[to] != '\t';)
        to++;
    if (to == from || to >= HEAD - 1)
        return FILE_OTHER;
    memcpy(program, head + from, to - from);
    program[to - from] = '\0';
    return FILE_SCRIPT;
}

static file_kind kind_of(int fd, char program[HEAD])
{
    char head[HEAD];
    ElfW(Ehdr) elf;
    long size = syscall(SYS_pread64, fd, head, sizeof head, (off_t)0);
    if (size < 0)
        return FILE_OTHER;
    if (size >= 2 && memcmp(head, "#!", 2) == 0)
        return kind_of_script(head, (size_t)size, program);
    if (size >= (long)sizeof elf && memcmp(head, ELFMAG, SELFMAG) == 0) {
        memcpy(&elf, head, sizeof elf);
        return kind_of_elf(fd, &elf);
    }
    return memchr(head, 0, (size_t)(size < AS_TEXT ? size : AS_TEXT)) ? FILE_OTHER : FILE_TEXT;
}

static file_kind look_at(const char *path)
{
    char program[HEAD];
    for (int scripts = 0; scripts <= SCRIPTS; scripts++) {
        if (!may_execute(path))
            return FILE_NONE;
        int fd = open_file(path, 0);
        if (fd < 0)
            return errno == EACCES ? FILE_RUNS : FILE_OTHER; /* sudo, where it may not be read */
        file_kind kind = kind_of(fd, program);
        close_file(fd);
        if (kind != FILE_SCRIPT)
            return kind;
        path = program;
    }
    return FILE_NONE;
}

/* ---- another program in its place ---- */

#define MOST 4096 /* variables and arguments: they are copied on the stack */
#define PRELOAD "LD_PRELOAD"

/* The next ones: the C library's, or what the user has preloaded. */
static struct {
    int (*execve)(const char *, char *const[], char *const[]);
    int (*execvpe)(const char *, char *const[], char *const[]);
    int (*unshare)(int);
    int (*setns)(int, int);
    int (*capset)(void *, const void *);
    int (*prctl)(int, ...);
} real;

__attribute__((constructor)) static void find_real(void)
{
#define FIND(name)                                                                                 \
    do {                                                                                           \
        void *found = dlsym(RTLD_NEXT, #name);                                                     \
        if (found)                                                                                 \
            memcpy(&real.name, &found, sizeof found);                                              \
    } while (0)
    FIND(execve);
    FIND(execvpe);
    FIND(unshare);
    FIND(setns);
    FIND(capset);
    FIND(prctl);
#undef FIND
}

static int execute(const char *path, char *const arguments[], char *const environment[])
{
    return real.execve ? real.execve(path, arguments, environment)
                       : (int)syscall(SYS_execve, path, arguments, environment);
}

/* The kernel may kill it for calls that it does not make itself (seccomp). */
static bool sealed;
static pid_t sealed_child; /* of fork, or of vfork, whose memory is its parent's (--children) */

static bool is_sealed(void)
{
    return sealed || (sealed_child && sealed_child == getpid());
}

void pki_become_in_child(void)
{
    sealed |= sealed_child != 0;
}

static size_t count(char *const list[])
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

static bool is_followed(void)
{
    return pki_attach.command && (pki_attach.children || (!sealed && pki_attach_is_here()));
}

/* In `pk` it would be another file, or none where it is open until an exec. */
static bool is_of_this_process(const char *path)
{
    static const char *const folders[] = {"/proc/", "/dev/fd/", "/dev/std"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

static bool fit(const char *path, char *const arguments[], char *const environment[])
{
    return arguments && arguments[0] && count(arguments) < MOST && count(environment) < MOST &&
           !is_of_this_process(path);
}

static bool is_library_of_ours(const char *path, size_t size)
{
    const char *list = pki_attach.libraries ? pki_attach.libraries : "";
    for (size_t n; *list; list += n, list += *list == ':') {
        n = strcspn(list, ":");
        if (n == size && strncmp(list, path, n) == 0)
            return true;
    }
    return false;
}

static size_t length_of_preload(char *const environment[])
{
    for (; environment && *environment; environment++)
        if (pki_attach_is_variable(*environment, PRELOAD))
            return strlen(*environment);
    return 0;
}

/* The line LD_PRELOAD=... without our libraries, in out: what the user has set, and what the
 * program has made of it. NULL: nothing is left. */
static char *without_ours(const char *line, char *out)
{
    const size_t head = sizeof PRELOAD; /* with the = */
    const char *at = line + head;
    char *to = mempcpy(out, line, head);
    bool ours = false;
    for (size_t n, more; *at; at += n + more) {
        n = strcspn(at, " :");
        more = at[n] != 0;
        bool skipped = is_library_of_ours(at, n);
        ours |= skipped;
        if (!skipped)
            to = mempcpy(to, at, n + more);
        else if (!more && to > out + head)
            to--; /* what stood before it */
    }
    *to = '\0';
    bool was_empty = pki_attach.preload && !*pki_attach.preload;
    return ours && !out[head] && !was_empty ? NULL : out;
}

/* The variables of the new program: its own, so many, and what `pk run` is to be told again. */
static size_t gather(char **with, char *const environment[], char *again, char *preload)
{
    size_t n = 0;
    for (; environment && *environment; environment++) {
        bool preloads = preload && pki_attach_is_variable(*environment, PRELOAD);
        char *line = preloads ? without_ours(*environment, preload) : *environment;
        preload = preloads ? NULL : preload;
        if (line && !pki_attach_is_told(line))
            with[n++] = line;
    }
    size_t own = n;
#define PUT(name, member)                                                                          \
    if (pki_attach.member)                                                                         \
        with[n++] = (char *)(uintptr_t)(pki_attach.member - sizeof name);
    PKI_ATTACH_VARIABLES(PUT)
#undef PUT
    with[n++] = again;
    with[n] = NULL;
    return own;
}

/* pk run -- ARGUMENTS, with what the first one was asked for; and where `pk` is out of reach,
 * behind a chroot or for another user, the program as it is. */
static int follow(const char *path, char *const arguments[], char *const environment[])
{
    static char run[] = "run", end[] = "--";
    size_t words = count(arguments);
    char *to[words + 4], *with[count(environment) + 32], again[PATH_MAX + 16];
    snprintf(again, sizeof again, "PK_RUN_AGAIN=%s", path);
    char preload[length_of_preload(environment) + 1];
    size_t own = gather(with, environment, again, preload);
    to[0] = (char *)(uintptr_t)pki_attach.command;
    to[1] = run;
    to[2] = end;
    memcpy(to + 3, arguments, (words + 1) * sizeof *to);
    pki_attach_end(false, false);
    syscall(SYS_execve, pki_attach.command, to, with);
    with[own] = NULL;
    return execute(path, arguments, with);
}

/* What is not followed is told nothing: our libraries may be none that it can load. */
static int become_alone(int become(const char *, char *const[], char *const[]), const char *name,
                        char *const arguments[], char *const environment[])
{
    char again[] = "", *with[count(environment) + 32];
    char preload[length_of_preload(environment) + 1];
    with[gather(with, environment, again, preload)] = NULL;
    return become(name, arguments, with);
}

PK_API int execve(const char *path, char *const arguments[], char *const environment[])
{
    if (!is_followed())
        return execute(path, arguments, environment);
    if (!is_sealed() && look_at(path) == FILE_RUNS) {
        if (fit(path, arguments, environment))
            return follow(path, arguments, environment);
        pki_attach_end(false, false);
    }
    if (!pki_attach.children || count(environment) >= MOST)
        return execute(path, arguments, environment);
    return become_alone(execute, path, arguments, environment);
}

PK_API int execv(const char *path, char *const arguments[])
{
    return execve(path, arguments, environ);
}

/* Of a file in PATH as execvp takes it: the first one that can be executed, or that a shell reads.
 * Where another one is in its way, the C library is left to search itself. */
static bool search(const char *name, char path[PATH_MAX])
{
    const char *folders = pki_attach_find_variable("PATH"), *end;
    bool is_path = strchr(name, '/') != NULL;
    for (const char *at = folders && !is_path ? folders : "/bin:/usr/bin"; *name; at = end + 1) {
        end = at + strcspn(at, ":");
        int n = is_path ? snprintf(path, PATH_MAX, "%s", name)
                        : snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - at), at,
                                   end > at ? "/" : "./", name);
        file_kind kind = n < PATH_MAX ? look_at(path) : FILE_NONE;
        if (kind != FILE_NONE)
            return kind != FILE_OTHER;
        if (!*end || is_path)
            break;
    }
    return false;
}

PK_API int execvpe(const char *name, char *const arguments[], char *const environment[])
{
    char path[PATH_MAX];
    bool followed = is_followed();
    if (followed && !is_sealed() && search(name, path)) {
        if (fit(path, arguments, environment))
            follow(path, arguments, environment);
        else
            pki_attach_end(false, false);
    }
    if (!real.execvpe)
        find_real();
    if (!real.execvpe)
        return errno = ENOSYS, -1;
    if (!followed || !pki_attach.children || count(environment) >= MOST)
        return real.execvpe(name, arguments, environment);
    return become_alone(real.execvpe, name, arguments, environment);
}

PK_API int execvp(const char *name, char *const arguments[])
{
    return execvpe(name, arguments, environ);
}

/* ---- the same, with the arguments one by one ---- */

static size_t count_all(const char *first, va_list list)
{
    va_list more;
    size_t n = 0;
    va_copy(more, list);
    for (const char *each = first; each; each = va_arg(more, const char *))
        n++;
    va_end(more);
    return n;
}

static void take(char **to, const char *first, va_list *list)
{
    *to = (char *)(uintptr_t)first;
    while (*to)
        *++to = va_arg(*list, char *);
}

PK_API int execl(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    char *arguments[count_all(first, list) + 1];
    take(arguments, first, &list);
    va_end(list);
    return execve(path, arguments, environ);
}

PK_API int execlp(const char *name, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    char *arguments[count_all(first, list) + 1];
    take(arguments, first, &list);
    va_end(list);
    return execvpe(name, arguments, environ);
}

PK_API int execle(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    char *arguments[count_all(first, list) + 1];
    take(arguments, first, &list);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    return execve(path, arguments, environment);
}

/* ---- where the kernel wants a process of one thread, or changes one alone ---- */

#define PATIENCE 1000 /* ms: a thread that has ended is the kernel's for a moment more */

static bool is_named_by_us(const char *thread)
{
    char path[64], name[3];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", thread);
    int fd = *thread != '.' ? open_file(path, 0) : -1;
    bool is = fd >= 0 && read_at(fd, name, sizeof name, 0) && memcmp(name, "pk-", 3) == 0;
    if (fd >= 0)
        close_file(fd);
    return is;
}

/* One entry of a folder, as the kernel has it. */
typedef struct entry {
    uint64_t inode, next;
    uint16_t size;
    uint8_t type;
    char name[];
} entry;

/* All of them are named so; the calling one, which may be called like that, is none. */
static bool has_thread_of_ours(void)
{
    _Alignas(entry) char list[1024];
    char self[24];
    bool has = false;
    int fd = open_file("/proc/self/task", O_DIRECTORY);
    long n = 0;
    snprintf(self, sizeof self, "%ld", syscall(SYS_gettid));
    while (fd >= 0 && !has && (n = syscall(SYS_getdents64, fd, list, sizeof list)) > 0) {
        const entry *e;
        for (long at = 0; at < n && !has; at += e->size) {
            e = (const entry *)(const void *)(list + at);
            has = strcmp(e->name, self) != 0 && is_named_by_us(e->name);
        }
    }
    if (fd >= 0)
        close_file(fd);
    return has;
}

static void end_threads(void)
{
    int saved = errno;
    if (sealed || !pki_attach_is_here())
        return;
    pki_attach_end(false, false);
    for (int waited = 0; waited < PATIENCE && has_thread_of_ours(); waited++)
        syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 1000000}, NULL);
    errno = saved;
}

PK_API int unshare(int flags)
{
    if (flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM))
        end_threads();
    return real.unshare ? real.unshare(flags) : (int)syscall(SYS_unshare, flags);
}

PK_API int setns(int fd, int type)
{
    const int others = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWCGROUP;
    if (!type || (type & ~others))
        end_threads();
    return real.setns ? real.setns(fd, type) : (int)syscall(SYS_setns, fd, type);
}

/* Capabilities are a thread's own. Who sets them becomes another user next, by functions that have
 * each thread do the same, and end the process where one of them may not. */
PK_API int capset(void *head, const void *data);

int capset(void *head, const void *data)
{
    end_threads();
    return real.capset ? real.capset(head, data) : (int)syscall(SYS_capset, head, data);
}

/* A filter of calls may be set by syscall(), which is not seen; this is called before. */
static void seal(void)
{
    end_threads();
    if (pki_attach_is_here())
        sealed = true;
    else if (pki_attach.children)
        sealed_child = getpid();
}

PK_API int prctl(int option, ...)
{
    va_list list;
    unsigned long more[4];
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        more[i] = va_arg(list, unsigned long);
    va_end(list);
    if (option == PR_SET_KEEPCAPS || option == PR_SET_SECUREBITS)
        end_threads();
    if (!sealed && (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP))
        seal();
    return real.prctl ? real.prctl(option, more[0], more[1], more[2], more[3])
                      : (int)syscall(SYS_prctl, option, more[0], more[1], more[2], more[3]);
}
