/* Programs that run with 0, 1 or 2 closed: none of our files has such a number, and what is opened
 * there by the program is not written to. */
#include "document.h"
#include "valgrind.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <pk/pk.h>

#define PRECIOUS "precious\n"
#define FOREIGN 252 /* a program of another processor */

static char self[PATH_MAX]; /* this program */

static void record(int n)
{
    static pk_region region = PK_REGION("region");
    for (int i = 0; i < n; i++)
        PK_SCOPE(region) {
        }
}

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

/* ---- few descriptors ---- */

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
    const struct CMUnitTest tests[] = {
        in_folder(eight_combinations),
        in_folder(no_report_into_the_programs_files),
        in_folder(a_low_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
