/* Machine, command line, builds and revision: what a report says of where a run ran. */
#include <pk/pk.h>

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "base/process.h"
#include "base/files.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define OTHER "fedcba9876543210fedcba9876543210fedcba98"

static const char *program;
static char folder[] = "/tmp/pk-environment-XXXXXX";

static void path_in(char path[300], const char *name)
{
    snprintf(path, 300, "%s/%s", folder, name);
}

static void write_file(const char *name, const void *content, size_t size)
{
    char path[300];
    path_in(path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, size, file), size);
    fclose(file);
}

static void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static void make_folder(const char *name)
{
    char path[300];
    path_in(path, name);
    mkdir(path, 0700);
}

static void remove_file(const char *name)
{
    char path[300];
    path_in(path, name);
    unlink(path);
}

/* ---- the command line ---- */

static void check_shown(const char *arguments, size_t length, const char *wanted)
{
    char out[400];
    pki_arguments_show(arguments, length, out, sizeof out);
    assert_string_equal(out, wanted);
}

#define SHOWN(arguments, wanted) check_shown(arguments, sizeof(arguments), wanted)

static void secrets_are_not_shown(void **state)
{
    (void)state;
    SHOWN("train\0--steps\0"
          "5\0a file",
          "train --steps 5 'a file'");
    SHOWN("train\0--api-key=abc\0--token\0xyz\0--steps=3",
          "train --api-key=*** --token *** --steps=3");
    SHOWN("train\0--PASSWORD\0--quiet\0x", "train --PASSWORD --quiet x");
    SHOWN("env\0HF_TOKEN=abc\0MY_SECRET=\0X=1", "env HF_TOKEN=*** MY_SECRET=*** X=1");
    SHOWN("get\0https://me:word@host/path\0https://host/a@b",
          "get https://***@host/path https://host/a@b");
    SHOWN("", "''");
}

static void a_long_command_line_is_cut(void **state)
{
    char out[20];
    (void)state;
    pki_arguments_show("0123456789\0abcdefghijklmnop", 28, out, sizeof out);
    assert_string_equal(out, "0123456789 abcde...");
}

static void its_own_is_read(void **state)
{
    char out[2000];
    (void)state;
    pki_arguments_read(out, sizeof out);
    assert_non_null(strstr(out, "environment"));
}

/* ---- the executable ---- */

static void an_executable_says_its_compiler(void **state)
{
    pki_executable e;
    (void)state;
    pki_executable_read(program, &e);
    assert_true(strstr(e.compiler, "GCC") || strstr(e.compiler, "clang"));
    assert_int_equal(strlen(e.build_id) % 2, 0);
    for (const char *c = e.build_id; *c; c++)
        assert_true(isxdigit((unsigned char)*c));
}

/* Each byte of the header and the sections' table, and every length: nothing is read beyond. */
static void a_damaged_one_says_nothing_or_something(void **state)
{
    static char content[8192];
    char path[300];
    pki_executable e;
    (void)state;
    size_t size = pki_small_file(program, content, sizeof content);
    assert_true(size > 1000);
    path_in(path, "damaged");
    for (size_t n = 0; n < 64; n++) {
        char kept = content[n];
        content[n] = (char)~content[n];
        write_file("damaged", content, size);
        pki_executable_read(path, &e);
        content[n] = kept;
    }
    for (size_t n = 0; n < 70; n += 3) {
        write_file("damaged", content, n);
        pki_executable_read(path, &e);
        assert_string_equal(e.compiler, "");
    }
    pki_executable_read("/nowhere", &e);
    assert_string_equal(e.build_id, "");
}

/* ---- the revision ---- */

static void expect_revision(const char *commit, const char *branch)
{
    pki_revision r;
    pki_revision_read(folder, &r);
    assert_string_equal(r.commit, commit);
    assert_string_equal(r.branch, branch);
}

static void a_branch_is_followed(void **state)
{
    (void)state;
    make_folder(".git");
    write_text(".git/HEAD", "ref: refs/heads/topic/one\n");
    expect_revision("", "topic/one");
    write_text(".git/packed-refs", "# pack-refs\n" OTHER " refs/heads/topic/one-more\n" COMMIT
                                   " refs/heads/topic/one\n");
    expect_revision(COMMIT, "topic/one");
    make_folder(".git/refs");
    make_folder(".git/refs/heads");
    make_folder(".git/refs/heads/topic");
    write_text(".git/refs/heads/topic/one", OTHER "\n");
    expect_revision(OTHER, "topic/one");
    write_text(".git/HEAD", COMMIT "\n");
    expect_revision(COMMIT, "");
    write_text(".git/HEAD", "nonsense\n");
    expect_revision("", "");
}

/* Only root may give a folder away. */
static void somebody_elses_is_not_followed(void **state)
{
    char path[300];
    (void)state;
    if (geteuid() != 0)
        skip();
    path_in(path, ".git");
    write_text(".git/HEAD", COMMIT "\n");
    expect_revision(COMMIT, "");
    if (chown(path, 65534, (gid_t)-1) != 0)
        skip();
    expect_revision("", "");
    assert_int_equal(chown(path, 0, (gid_t)-1), 0);
}

static void a_work_tree_has_its_refs_elsewhere(void **state)
{
    pki_revision r;
    char path[300], text[400];
    (void)state;
    make_folder("tree");
    make_folder("tree/below");
    make_folder(".git/worktrees");
    make_folder(".git/worktrees/tree");
    path_in(path, ".git/worktrees/tree");
    snprintf(text, sizeof text, "gitdir: %s\n", path);
    write_text("tree/.git", text);
    write_text(".git/worktrees/tree/HEAD", "ref: refs/heads/topic/one\n");
    write_text(".git/worktrees/tree/commondir", "../..\n");
    path_in(path, "tree/below");
    pki_revision_read(path, &r);
    assert_string_equal(r.commit, OTHER);
    assert_string_equal(r.branch, "topic/one");
}

/* ---- files, the machine ---- */

static void nobody_is_waited_for(void **state)
{
    char path[300], text[10];
    (void)state;
    path_in(path, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pki_small_file(path, text, sizeof text), 0);
    assert_int_equal(pki_small_file(folder, text, sizeof text), 0);
}

static void the_machine_is_known(void **state)
{
    pki_host m;
    (void)state;
    pki_host_read(&m);
    assert_true(m.memory_bytes > 1 << 20 && m.processors > 0);
    assert_non_null(strstr(m.kernel, "Linux "));
    assert_true(m.architecture[0] != 0);
}

/* ---- the report ---- */

static bool report_tells(const char *variable)
{
    static char text[1 << 20];
    char path[300];
    path_in(path, "report.json");
    setenv("PK_ENVIRONMENT", variable, 1);
    assert_int_equal(pk_start(pk_options(.report_path = path, .backends = "none")), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    unsetenv("PK_ENVIRONMENT");
    assert_true(pki_small_file(path, text, sizeof text) > 0);
    return strstr(text, "\"environment\":{\"memory\":") != NULL;
}

static void the_report_has_it_unless_it_is_off(void **state)
{
    (void)state;
    assert_true(report_tells("1"));
    assert_false(report_tells("0"));
    setenv("PK_ENVIRONMENT", "perhaps", 1);
    assert_int_equal(pk_start(NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_ENVIRONMENT"));
    unsetenv("PK_ENVIRONMENT");
}

/* The block as it stands in a file; "": it does not. */
static void block_of(const char *name, char block[16384])
{
    static char text[1 << 20];
    char path[300];
    path_in(path, name);
    assert_true(pki_small_file(path, text, sizeof text) > 0);
    const char *begin = strstr(text, "\"environment\":{");
    const char *last = begin ? strstr(begin, "\"branch\":\"") : NULL;
    const char *end = last ? strchr(last, '}') : begin;
    snprintf(block, 16384, "%.*s", (int)(end - begin), begin ? begin : "");
    remove_file(name);
}

static void record_a_captured_step(const char *variable)
{
    char trace[300], captures[300];
    path_in(trace, "trace.json");
    path_in(captures, "capture-%s.json");
    setenv("PK_ENVIRONMENT", variable, 1);
    assert_int_equal(pk_start(pk_options(.trace_path = trace, .capture = "steps=1",
                                         .capture_path = captures, .backends = "none")),
                     PK_OK);
    for (unsigned i = 0; i < 3; i++)
        pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    unsetenv("PK_ENVIRONMENT");
}

static void a_capture_has_the_same(void **state)
{
    static char report[16384], capture[16384];
    (void)state;
    write_text(".git/HEAD", COMMIT "\n"); /* one that nobody else changes meanwhile */
    assert_int_equal(chdir(folder), 0);
    record_a_captured_step("1");
    block_of("trace.json", report);
    block_of("capture-1.json", capture);
    assert_non_null(strstr(report, "\"command\":"));
    assert_non_null(strstr(report, "\"commit\":\"" COMMIT "\""));
    assert_string_equal(capture, report);
    record_a_captured_step("0");
    block_of("capture-1.json", capture);
    assert_string_equal(capture, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(a_long_command_line_is_cut),
        cmocka_unit_test(its_own_is_read),
        cmocka_unit_test(an_executable_says_its_compiler),
        cmocka_unit_test(a_damaged_one_says_nothing_or_something),
        cmocka_unit_test(a_branch_is_followed),
        cmocka_unit_test(somebody_elses_is_not_followed),
        cmocka_unit_test(a_work_tree_has_its_refs_elsewhere),
        cmocka_unit_test(nobody_is_waited_for),
        cmocka_unit_test(the_machine_is_known),
        cmocka_unit_test(the_report_has_it_unless_it_is_off),
        cmocka_unit_test(a_capture_has_the_same),
    };
    char command[400];
    program = argv[0];
    if (argc < 1 || !mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) || failed;
}
