/* Sessions in programs that close what they did not open, or that run with 0, 1 or 2 closed. */
#include "document.h"
#include "../kit/tuning.h"
#include "valgrind.h"

#include <pk/pk.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- a session in a program that closes what it did not open ---- */

/* The files of the program stay as they are, and what could not be written is said. */

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
    for (int i = 0; i < n; i++) {
        PK_REGION_SCOPE(region);
    }
}

static pk_counts counts_now(void)
{
    pk_counts counts = {.size = sizeof counts};
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    return counts;
}

/* -- closed and taken -- */

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
        pk_start(pk_options(.trace_path = trace, .report_path = report, .backends = "none",
                            .memory_bytes = 16 << 20, .log = listen,
                            .tuning = kit_tuning("arena_path=%s", arena ? arena : ""))),
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

static const struct CMUnitTest descriptors_tests[] = {
    with_folder(a_trace),
    with_folder(a_compressed_trace),
    with_folder(a_trace_with_its_arena_in_memory),
    with_folder(statistics_only),
    with_folder(closed_only),
    with_folder(its_own_trace),
    with_folder(a_child),
};

/* ---- programs that run with 0, 1 or 2 closed ---- */

/* None of our files has such a number, and what is opened there by the program is not written to.
 */

#define FOREIGN 252 /* a program of another processor */

static char self[PATH_MAX]; /* this program */

/* In this program, run anew: the line that is not so is its exit status. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit(__LINE__ % 250 + 1);                                                             \
    } while (0)

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Opens its files, which get the numbers that are free, and prints as if nothing were. closed:
 * bits. */
static void be_host(unsigned closed, const char *report, bool files_first)
{
    char name[] = "host-0";
    pk_options options = {.size = sizeof options,
                          .trace_path = "run.json",
                          .report_path = report,
                          .backends = "none",
                          .memory_bytes = 16 << 20};
    must(files_first || pk_start(&options) == PK_OK);
    for (int fd = 0; fd < 3; fd++) {
        must(is_open(fd) == !(closed & 1u << fd)); /* nothing of ours is there */
        if (!(closed & 1u << fd))
            continue;
        name[5] = (char)('0' + fd);
        must(open(name, O_RDWR | O_CREAT, 0600) == fd);
        must(write(fd, PRECIOUS, strlen(PRECIOUS)) == (ssize_t)strlen(PRECIOUS));
    }
    must(!files_first || pk_start(&options) == PK_OK);
    record(100);
    must(pk_flush() == PK_OK);
    record(100);
    bool lost = strcmp(report, "-") == 0 && closed & 4;
    must(pk_stop() == (lost ? PK_EIO : PK_OK));
    must(!lost || strstr(pk_error_message(), "descriptor 2"));
    for (int fd = 0; fd < 3; fd++)
        must(is_open(fd));
    _exit(0);
}

static void run_host(unsigned closed, const char *report, bool files_first)
{
    int status;
    char bits[2] = {(char)('0' + closed), 0};
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int out = open("stderr", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
        for (int fd = 0; fd < 3; fd++)
            dup2(out, fd);
        close(out);
        for (int fd = 0; fd < 3; fd++)
            if (closed & 1u << fd)
                close(fd);
        execl(self, self, "host", bits, report, files_first ? "first" : "later", (char *)NULL);
        _exit(errno == ENOEXEC ? FOREIGN : 255);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == FOREIGN) {
        print_message("an emulator runs this program, and nobody would run it anew\n");
        skip();
    }
    if (status)
        fail_msg("closed %s, report %s, files %s: line %d (modulo 250)", bits, report,
                 files_first ? "first" : "later", WEXITSTATUS(status) - 1);
}

static void expect_host_files(unsigned closed)
{
    char name[] = "host-0";
    for (int fd = 0; fd < 3; fd++) {
        name[5] = (char)('0' + fd);
        assert_int_equal(exists(name), (closed >> fd) & 1);
        if (!exists(name))
            continue;
        char *text = read_file(name, NULL);
        assert_string_equal(text, PRECIOUS);
        free(text);
        assert_int_equal(remove(name), 0);
    }
    json_t *doc = load_document("run.json");
    assert_int_equal(count_events(doc, "X", "region"), 200);
    json_decref(doc);
}

static void expect_report(const char *report, bool wanted)
{
    char *text = read_file(strcmp(report, "-") == 0 ? "stderr" : report, NULL);
    assert_int_equal(strstr(text, "region") != NULL, wanted);
    free(text);
}

static void eight_combinations(void **state)
{
    (void)state;
    for (unsigned closed = 0; closed < 8; closed++)
        for (int files_first = 0; files_first < 2; files_first++) {
            run_host(closed, "-", files_first);
            expect_host_files(closed);
            expect_report("-", !(closed & 4));
            run_host(closed, "report.txt", files_first);
            expect_host_files(closed);
            expect_report("report.txt", true);
        }
}

/* The collector, too, may have a file open for a moment, by whatever number is free. */
static void open_as(int wanted)
{
    for (int tries = 0; tries < 10000; tries++) {
        int fd = open("theirs", O_RDWR | O_CREAT, 0600);
        if (fd == wanted)
            return;
        must(close(fd) == 0);
        usleep(1000);
    }
    must(false); /* the number stays taken */
}

/* All descriptors closed amid the session, standard streams too, and the program's files in their
 * place. */
static void no_report_into_the_programs_files(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        must(pk_start(pk_options(.report_path = "-", .backends = "none")) == PK_OK);
        record(10);
        for (int fd = 0; fd < 5000; fd++)
            close(fd);
        for (int fd = 0; fd < 3; fd++)
            open_as(fd);
        must(pk_stop() == PK_EIO);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    char *text = read_file("theirs", NULL);
    assert_string_equal(text, "");
    free(text);
}

/* -- few descriptors -- */

static void a_low_limit(void **state)
{
    (void)state;
    if (under_valgrind()) {
        print_message("valgrind needs descriptors of its own\n");
        skip();
    }
    for (rlim_t most = 3; most < 12; most++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (int fd = 3; fd < 5000; fd++)
                close(fd);
            must(setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, most}) == 0);
            pk_status s = pk_start(
                pk_options(.trace_path = "run.json", .backends = "none", .memory_bytes = 16 << 20));
            must(s == PK_OK ||
                 (s == PK_EIO && most < 7 && strstr(pk_error_message(), "many open")));
            record(10);
            must(s != PK_OK || pk_stop() == PK_OK);
            _exit(s == PK_OK ? 0 : 255);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 255);
        if (WEXITSTATUS(status) == 255)
            assert_int_equal(count_files(), 0); /* nothing left behind */
        else
            assert_int_equal(remove("run.json"), 0);
    }
}

static const struct CMUnitTest standard_tests[] = {
    in_folder(eight_combinations),
    in_folder(no_report_into_the_programs_files),
    in_folder(a_low_limit),
};

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "host") == 0)
        be_host((unsigned)(argv[2][0] - '0'), argv[3], strcmp(argv[4], "first") == 0);
    if (strstr(SANITIZERS, "thread")) {
        printf("ThreadSanitizer does not follow threads that a fork's child starts\n");
        return 77;
    }
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 77;
    int failed = cmocka_run_group_tests(descriptors_tests, NULL, NULL);
    failed += cmocka_run_group_tests(standard_tests, NULL, NULL);
    return failed;
}
