/* What `pk run` runs: run_program WORD ... - each word is something to do. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void show(const char *what, char **list)
{
    printf("%s\n", what);
    for (; *list; list++)
        if (strncmp(*list, "_=", 2) != 0)
            printf("  %s\n", *list);
    fflush(stdout);
}

/* The environment of this process, by main and by environ, and that of a child. */
static void show_environment(char **given, const char *self)
{
    show("main", given);
    show("environ", environ);
    const char *listener = getenv("NVTX_INJECTION64_PATH");
    fprintf(stderr, "listener %s\n", listener ? listener : "none");
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, "child", (char *)NULL);
        _exit(9);
    }
    waitpid(child, NULL, 0);
}

/* As a daemon's, which closes all there is. perfkit's thread may have a number for a moment: then
 * once more. */
static void file_for_stderr(void)
{
    for (int tries = 0; tries < 1000; tries++) {
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
        if (open("/dev/null", O_RDWR) == 0 && dup(0) == 1 &&
            open("mine", O_CREAT | O_WRONLY | O_TRUNC, 0644) == 2)
            return;
    }
    exit(8);
}

static void spin(void)
{
    volatile double x = 0;
    while (clock() < CLOCKS_PER_SEC / 2)
        for (int k = 0; k < 10000; k++)
            x = x + 1;
}

/* Behind the variables, in pairs, as Go's runtime and others find it. */
static void find_auxiliary(char **variables)
{
    const ElfW(auxv_t) * pair;
    while (*variables)
        variables++;
    pair = (const ElfW(auxv_t) *)(const void *)(variables + 1);
    while (pair->a_type != AT_NULL && pair->a_type != AT_PAGESZ)
        pair++;
    printf("page %s\n",
           pair->a_un.a_val == (unsigned long)sysconf(_SC_PAGESIZE) ? "found" : "lost");
}

/* By files that are this process's own. */
static void become_self(char **self, const char *how)
{
    char path[64];
    if (strcmp(how, "self") == 0)
        execl("/proc/self/exe", *self, "a", "exit", (char *)NULL);
    snprintf(path, sizeof path, "/dev/fd/%d", open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    execl(path, *self, "a", "exit", (char *)NULL);
    exit(9);
}

/* Of all threads: kill those that call anything but this, or, instead, this. */
static void seal(int number, int but)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, but ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, but ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
}

static void sealed(char **self, const char *how)
{
    int status = 0;
    if (strcmp(how, "sealed-exec") == 0) {
        seal(SYS_getdents64, 0); /* as `pk run` reads a folder */
        execl(*self, *self, "a", "exit", (char *)NULL);
        exit(9);
    }
    if (strcmp(how, "sealed-child") == 0 && fork() == 0) {
        seal(SYS_exit_group, 1);
        _exit(5);
    }
    if (strcmp(how, "sealed-child") == 0) {
        wait(&status);
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
    }
    seal(SYS_exit_group, 1);
    exit(3);
}

/* execl, execle, execlp and one exec with more arguments than perfkit copies. */
static void become(char **self, const char *how)
{
    static char *many[6000];
    char word[] = "exit";
    for (int i = 0; i < 5999; i++)
        many[i] = i ? word : *self;
    many[5999] = NULL;
    if (strcmp(how, "become") == 0)
        execl(*self, *self, "a", "exit", (char *)NULL);
    else if (strcmp(how, "become-env") == 0)
        execle(*self, *self, "a", "exit", (char *)NULL, environ);
    else if (strcmp(how, "become-path") == 0)
        execlp(*self, *self, "a", "exit", (char *)NULL);
    else
        execv(*self, many);
    exit(9);
}

static void leave(int number)
{
    (void)number;
    exit(6);
}

/* From a handler, while this thread holds the lock of malloc's. */
static void exit_amid_malloc(void)
{
    static void *parts[100000];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        parts[i] = malloc(100);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i += 2)
        free(parts[i]);
    signal(SIGALRM, leave);
    ualarm(50000, 0);
    for (;;)
        malloc_trim(0);
}

int main(int argc, char **argv, char **given)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "env") == 0)
            show_environment(given, argv[0]);
        else if (strcmp(argv[i], "child") == 0)
            show("child", environ);
        else if (strcmp(argv[i], "exit") == 0)
            exit(3);
        else if (strcmp(argv[i], "_exit") == 0)
            _exit(4);
        else if (strcmp(argv[i], "kill") == 0)
            raise(SIGKILL);
        else if (strcmp(argv[i], "interrupt") == 0)
            raise(SIGINT);
        else if (strcmp(argv[i], "own-stderr") == 0)
            file_for_stderr();
        else if (strcmp(argv[i], "auxiliary") == 0)
            find_auxiliary(given);
        else if (strncmp(argv[i], "self", 4) == 0)
            become_self(argv, argv[i]);
        else if (strncmp(argv[i], "sealed", 6) == 0)
            sealed(argv, argv[i]);
        else if (strcmp(argv[i], "cancelled") == 0)
            exit(3 + pthread_cancel(pthread_self()));
        else if (strcmp(argv[i], "unshare") == 0)
            printf("%d\n", unshare(CLONE_FS));
        else if (strncmp(argv[i], "become", 6) == 0)
            become(argv, argv[i]);
        else if (strcmp(argv[i], "exit-amid-malloc") == 0)
            exit_amid_malloc();
        else if (strcmp(argv[i], "spin") == 0)
            spin();
        else if (strcmp(argv[i], "fork") == 0 && fork() == 0)
            _exit(5);
        else
            printf("[%s]\n", argv[i]);
    }
    return 0;
}
