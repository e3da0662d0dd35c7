/* A session in a program that closes what it did not open: the files of the program stay as they
 * are, and what could not be written is said. */
#include "document.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include <pk/pk.h>

#define PRECIOUS "precious\n"
#define MOST 64 /* descriptors that a test takes away */

static char heard[8000];

static void listen(void *user, pk_log_level level, const char *message)
{
    (void)user, (void)level;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", message);
}

static void record(int n)
{
    static pk_region region = PK_REGION("region");
    for (int i = 0; i < n; i++)
        PK_SCOPE(region) {
        }
}

static pk_counts counts_now(void)
{
    pk_counts counts = {.size = sizeof counts};
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    return counts;
}

/* ---- closed and taken ---- */

typedef struct loot {
    int fd[MOST];
    unsigned count;
} loot;

static bool listed(const loot *list, int fd)
{
    for (unsigned i = 0; i < list->count; i++)
        if (list->fd[i] == fd)
            return true;
    return false;
}

static loot open_now(void)
{
    loot all = {.count = 0};
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL && all.count < MOST;)
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(folder))
            all.fd[all.count++] = atoi(e->d_name);
    closedir(folder);
    return all;
}

/* What perfkit has opened since: each number is now a file of the program's. */
static loot take_over(const loot *before)
{
    loot all = open_now(), taken = {.count = 0};
    int theirs = open("theirs", O_RDWR | O_CREAT, 0600);
    assert_int_equal(write(theirs, PRECIOUS, strlen(PRECIOUS)), strlen(PRECIOUS));
    for (unsigned i = 0; i < all.count; i++)
        if (!listed(before, all.fd[i])) {
            assert_int_equal(dup2(theirs, all.fd[i]), all.fd[i]);
            taken.fd[taken.count++] = all.fd[i];
        }
    close(theirs);
    return taken;
}

/* Open, and with what the program had put there. */
static void expect_untouched(const loot *taken)
{
    struct stat wanted, there;
    assert_int_equal(stat("theirs", &wanted), 0);
    for (unsigned i = 0; i < taken->count; i++) {
        assert_int_equal(fstat(taken->fd[i], &there), 0);
        assert_int_equal(there.st_ino, wanted.st_ino);
    }
    char *text = read_file("theirs", NULL);
    assert_string_equal(text, PRECIOUS);
    free(text);
}

static void give_back(const loot *taken)
{
    for (unsigned i = 0; i < taken->count; i++)
        close(taken->fd[i]);
}

static void start(const char *trace, const char *arena, const char *report)
{
    heard[0] = 0;
    assert_int_equal(
        pk_start(pk_options(.trace_path = trace, .arena_path = arena, .report_path = report,
                            .backends = "none", .memory_bytes = 16 << 20, .log = listen)),
        PK_OK);
}

/* The trace up to there is whole, and the rest is accounted for. */
static void lose(const char *trace, const char *arena)
{
    loot before = open_now();
    start(trace, arena, NULL);
    record(100);
    assert_int_equal(pk_flush(), PK_OK);
    loot taken = take_over(&before);
    assert_true(taken.count >= 2);
    record(1000);
    assert_int_equal(pk_flush(), PK_EIO);
    assert_non_null(strstr(heard, "the program has closed perfkit's descriptor of it"));
    record(20000); /* more than waits in memory for the file */
    assert_int_equal(pk_stop(), PK_EIO);
    pk_counts counts = counts_now();
    assert_true(counts.begun == 21100 && counts.recorded == 21100 && counts.written == 100);
    assert_int_equal(counts.unwritten, 21000);
    expect_untouched(&taken);
    give_back(&taken);
    json_t *doc = load_document(trace);
    assert_int_equal(count_events(doc, "X", "region"), 100);
    json_decref(doc);
}

static void a_trace(void **state)
{
    (void)state;
    lose("run.json", NULL);
    assert_true(exists("run.json.arena")); /* it has the rest, for pk recover */
}

static void a_compressed_trace(void **state)
{
    (void)state;
    lose("run.json.gz", NULL);
}

static void a_trace_with_its_arena_in_memory(void **state)
{
    (void)state;
    lose("run.json", "none");
}

static void *join(void *unused)
{
    record(10);
    return unused;
}

/* The arena cannot grow. What it has goes on, what needs more is dropped and counted. */
static void statistics_only(void **state)
{
    (void)state;
    loot before = open_now();
    start(NULL, NULL, NULL);
    record(100);
    loot taken = take_over(&before);
    assert_int_equal(taken.count, 1);
    record(100);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, join, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(pk_flush(), PK_OK);
    assert_non_null(strstr(heard, "the program has closed perfkit's descriptor of it"));
    assert_int_equal(pk_stop(), PK_OK);
    pk_counts counts = counts_now();
    assert_int_equal(counts.begun, 210);
    assert_int_equal(counts.recorded + counts.dropped, 210);
    assert_int_equal(counts.dropped, 10);
    expect_untouched(&taken);
    start(NULL, NULL, NULL); /* lets go of the session before */
    expect_untouched(&taken);
    assert_int_equal(pk_stop(), PK_OK);
    give_back(&taken);
}

/* close_range as such: the numbers are nobody's. */
static void closed_only(void **state)
{
    (void)state;
    loot before = open_now();
    start("run.json", NULL, NULL);
    record(10);
    loot now = open_now();
    for (unsigned i = 0; i < now.count; i++)
        if (!listed(&before, now.fd[i]))
            close(now.fd[i]);
    record(10);
    assert_int_equal(pk_stop(), PK_EIO);
    assert_int_equal(counts_now().unwritten, 20);
}

/* The program reads its own trace, under the number that was ours. */
static void its_own_trace(void **state)
{
    (void)state;
    loot before = open_now();
    start("run.json", "none", NULL);
    assert_int_equal(pk_flush(), PK_OK);
    int reader = open("run.json", O_RDWR);
    loot now = open_now();
    for (unsigned i = 0; i < now.count; i++)
        if (!listed(&before, now.fd[i]) && now.fd[i] != reader)
            dup2(reader, now.fd[i]);
    record(10);
    assert_int_equal(pk_stop(), PK_EIO);
    for (unsigned i = 0; i < now.count; i++) /* all still open */
        assert_true(fcntl(now.fd[i], F_GETFD) >= 0);
    for (unsigned i = 0; i < now.count; i++)
        if (!listed(&before, now.fd[i]))
            close(now.fd[i]);
}

/* Neither by the child as it lets go of everything, nor by what it does afterwards. */
static void a_child(void **state)
{
    int status;
    (void)state;
    loot before = open_now();
    start("run.json", NULL, NULL);
    record(10);
    loot taken = take_over(&before);
    pid_t child = fork();
    if (child == 0) {
        bool open = true;
        for (unsigned i = 0; i < taken.count; i++)
            open &= fcntl(taken.fd[i], F_GETFD) >= 0;
        _exit(open ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pk_stop(), PK_EIO);
    expect_untouched(&taken);
    give_back(&taken);
}

static int leave(void **state)
{
    pk_stop();
    return leave_folder(state);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave)

int main(void)
{
    if (strstr(SANITIZERS, "thread")) {
        printf("ThreadSanitizer does not follow threads that a fork's child starts\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        with_folder(a_trace),
        with_folder(a_compressed_trace),
        with_folder(a_trace_with_its_arena_in_memory),
        with_folder(statistics_only),
        with_folder(closed_only),
        with_folder(its_own_trace),
        with_folder(a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
