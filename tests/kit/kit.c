#include "kit.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

void kit_give_up(const char *file, int line, const char *what, long long a, long long b)
{
    fprintf(stderr, "%s:%d: not so: %s", file, line, what);
    if (a != b)
        fprintf(stderr, " (%lld, %lld)", a, b);
    fprintf(stderr, "\n");
    fflush(NULL);
    _exit(99);
}

void kit_skip(const char *why)
{
    printf("skipped: %s\n", why);
    fflush(stdout);
    exit(77);
}

bool kit_sanitized(const char *name)
{
    return strstr(KIT_SANITIZERS, name);
}

bool kit_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload");
}

static double scale(void)
{
    const char *said = getenv("PK_TEST_SCALE");
    if (said)
        return strtod(said, NULL);
    /* What only happens by luck has most tries where a try is cheapest; the sanitizers see a
     * mistake the first time that its code runs. */
    if (kit_valgrind())
        return 0.04;
    return kit_sanitized("thread") ? 0.1 : kit_sanitized("address") ? 0.15 : 0.35;
}

unsigned kit_scaled(unsigned n)
{
    double scaled = n * scale();
    return scaled < 1 ? 1 : (unsigned)scaled;
}

uint64_t kit_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* ---- a folder ---- */

static char folder[PATH_MAX / 2];
static pid_t owner;

static int remove_entry(const char *path, const struct stat *what, int type, struct FTW *where)
{
    (void)what, (void)type;
    return where->level > 0 ? remove(path) : 0;
}

void kit_clean(void)
{
    if (folder[0])
        nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void remove_folder(void)
{
    if (getpid() != owner)
        return;
    kit_clean();
    rmdir(folder);
}

const char *kit_folder(void)
{
    const char *where = getenv("TMPDIR");
    if (folder[0])
        return folder;
    snprintf(folder, sizeof folder, "%s/pk-test-XXXXXX", where && *where ? where : "/tmp");
    if (!mkdtemp(folder)) {
        folder[0] = 0;
        kit_give_up(__FILE__, __LINE__, "a folder for temporary files", 0, 0);
    }
    owner = getpid();
    atexit(remove_folder);
    return folder;
}

const char *kit_path(const char *name)
{
    static _Thread_local char paths[3][PATH_MAX];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 3];
    snprintf(path, PATH_MAX, "%s/%s", kit_folder(), name);
    return path;
}

static unsigned count_entries(const char *path, const char *containing)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    if (!d)
        return 0;
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.' && strstr(e->d_name, containing);
    closedir(d);
    return n;
}

unsigned kit_count_files(const char *containing)
{
    return count_entries(kit_folder(), containing);
}

/* The folder's own descriptor is among them every time. */
unsigned kit_open_files(void)
{
    return count_entries("/proc/self/fd", "");
}

unsigned kit_threads(void)
{
    return count_entries("/proc/self/task", "");
}

unsigned kit_threads_left(unsigned expected)
{
    for (unsigned looks = 0; kit_threads() > expected && looks < 1000; looks++)
        kit_sleep_us(10000);
    return kit_threads();
}

/* ---- children ---- */

void kit_watchdog(unsigned seconds)
{
    bool slow = kit_valgrind() || KIT_SANITIZERS[0] != 'n';
    alarm(slow ? 10 * seconds : 2 * seconds);
}

int kit_child(void (*body)(void *), void *arg, unsigned seconds)
{
    int status = 0;
    fflush(NULL);
    (void)kit_folder(); /* ours, which we remove: a child does not get there */
    pid_t child = fork();
    if (child == 0) {
        kit_watchdog(seconds);
        body(arg);
        _exit(0);
    }
    if (child < 0)
        return -1000;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void kit_sleep_us(unsigned us)
{
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}
