/* Sessions of programs that keep their memory from being paged out (mlockall). What is locked is
 * what is used, not what is reserved. */
#include "folder.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <pk/pk.h>

#include "base/memory.h"
#include "valgrind.h"

#define SLACK_KB 2048 /* a small stack, what malloc needs */
#define MIB ((size_t)1 << 20)

/* In a child no assertion can be made: the line that is not so is its exit status. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit(__LINE__ % 250 + 1);                                                             \
    } while (0)

#define CANNOT 251 /* be tried here */

static void in_child(void (*body)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
        print_message("mlockall: not allowed here\n");
        skip();
    }
    if (status)
        fail_msg("line %d (modulo 250)", WEXITSTATUS(status) - 1);
}

/* A number of kB in /proc/self/NAME. */
static long read_kb(const char *name, const char *key)
{
    char line[256], path[64];
    long value = -1;
    snprintf(path, sizeof path, "/proc/self/%s", name);
    FILE *file = fopen(path, "re");
    must(file);
    while (value < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = atol(line + strlen(key));
    fclose(file);
    must(value >= 0);
    return value;
}

/* Of memory that is there; VmLck in status counts addresses, and C libraries reserve some. */
static long locked_kb(void)
{
    return read_kb("smaps_rollup", "Locked:");
}

static void lock_all(int how)
{
    if (mlockall(how) != 0)
        _exit(CANNOT);
}

static void start(const char *trace)
{
    must(pk_start(pk_options(.trace_path = trace, .backends = "none")) == PK_OK);
}

static long used_kb(void)
{
    pk_counts counts = {.size = sizeof counts};
    must(pk_get_counts(&counts) == PK_OK);
    return (long)(counts.memory_bytes >> 10);
}

static void record(int n)
{
    static pk_region region = PK_REGION("region");
    for (int i = 0; i < n; i++) {
        PK_REGION_SCOPE(region);
    }
}

/* Addresses, too, as long as nobody has allocated on a thread of ours. */
static void start_locked(const char *trace)
{
    lock_all(MCL_CURRENT | MCL_FUTURE);
    long addresses = read_kb("status", "VmLck:"), locked = locked_kb();
    start(trace);
    must(read_kb("status", "VmLck:") - addresses <= used_kb() + SLACK_KB);
    record(10000);
    must(pk_flush() == PK_OK);
    must(locked_kb() - locked <= used_kb() + SLACK_KB);
    must(pk_stop() == PK_OK);
}

static void future(void)
{
    start_locked(NULL);
}

static void future_in_file(void)
{
    start_locked("run.json");
}

static void locked_from_the_start(void **state)
{
    (void)state;
    in_child(future);
    in_child(future_in_file);
}

/* The wish is kept where memory is used. */
static void used_is_locked(void)
{
    bool locked = false;
    pki_owned file;
    must(!pki_mem_is_locking());
    lock_all(MCL_FUTURE);
    must(pki_mem_is_locking() && pki_mem_file(&file, "test"));
    char *base = pki_mem_map(&file, 16 * MIB, &locked);
    must(base && locked && pki_mem_back(&file, base, MIB, MIB, locked));
    memset(base + MIB, 1, MIB);
    must(msync(base + MIB, MIB, MS_INVALIDATE) != 0 && errno == EBUSY);
    must(msync(base, MIB, MS_INVALIDATE) == 0 &&
         msync(base + 2 * MIB, 14 * MIB, MS_INVALIDATE) == 0);
}

static void what_is_used_is_locked(void **state)
{
    (void)state;
    in_child(used_is_locked);
}

/* What has been reserved is not brought in, nor given room on the disk. */
static void lock_afterwards(void)
{
    struct stat file;
    start("run.json");
    record(10000);
    lock_all(MCL_CURRENT);
    must(locked_kb() <= used_kb() + 32 * 1024); /* the program and its stacks */
    must(stat("run.json.arena", &file) == 0);
    must(file.st_blocks / 2 <= used_kb() + 1024);
    record(10000);
    must(pk_stop() == PK_OK);
}

static void locked_later(void **state)
{
    (void)state;
    in_child(lock_afterwards);
}

/* Without the privilege, within what everybody may lock. */
static void within_a_limit(void)
{
    struct rlimit little = {4 * MIB, 4 * MIB};
    if (setrlimit(RLIMIT_MEMLOCK, &little) != 0 || (geteuid() == 0 && setuid(65534) != 0))
        _exit(CANNOT);
    lock_all(MCL_FUTURE);
    must(mmap(NULL, 8 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    start(NULL);
    record(10000);
    must(pk_stop() == PK_OK);
}

static void unprivileged(void **state)
{
    (void)state;
    in_child(within_a_limit);
}

int main(void)
{
    if (strcmp(RUN_BY, "none") != 0) {
        printf("sanitizers and emulators reserve terabytes, which nobody may lock\n");
        return 77;
    }
    if (under_valgrind()) {
        printf("valgrind does not know mlock2\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        in_folder(locked_from_the_start),
        in_folder(what_is_used_is_locked),
        in_folder(locked_later),
        in_folder(unprivileged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
