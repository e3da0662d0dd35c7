/* TARGETs of the live commands: processes, files and folders, whole, torn, foreign, and gone. */
#include "live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <pk/pk.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/pk-target-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

typedef struct child {
    pid_t pid;
    int tell; /* closing it lets the child end its session, cleanly */
    int heard;
} child;

static void live(int ready, int end, int rank, bool in_memory)
{
    static pk_region outer = PK_REGION("outer");
    char byte = 0, trace[PATH_MAX];
    snprintf(trace, sizeof trace, "%s/run-%d.json", folder, rank);
    if (pk_start(pk_options(.trace_path = trace, .arena_path = in_memory ? "none" : NULL,
                            .rank = rank, .world_size = 8, .backends = "none")) != PK_OK)
        _exit(1);
    pk_region_begin(&outer);
    pk_step(1);
    alarm(240);
    if (write(ready, &byte, 1) != 1 || read(end, &byte, 1) != 0)
        _exit(2);
    pk_region_end(&outer);
    _exit(pk_stop() != PK_OK);
}

static child start(int rank, bool in_memory)
{
    int ready[2], end[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(end[1]);
        live(ready[1], end[0], rank, in_memory);
    }
    close(ready[1]);
    close(end[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    return (child){pid, end[1], ready[0]};
}

static void finish(child c)
{
    int status;
    close(c.tell);
    close(c.heard);
    waitpid(c.pid, &status, 0);
}

static void kill_it(child c)
{
    kill(c.pid, SIGKILL);
    finish(c);
}

static complaint why;

static bool open_named(targets *t, const char *name)
{
    char *names[] = {(char *)(uintptr_t)name};
    why.text[0] = 0;
    return targets_open(t, names, 1, &why);
}

static bool open_pid(targets *t, pid_t pid)
{
    char name[32];
    snprintf(name, sizeof name, "%d", (int)pid);
    return open_named(t, name);
}

static void is_of(const target *t, const child *c, int rank)
{
    char text[TARGET_TEXT], wanted[64];
    assert_int_equal(t->process.pid, c->pid);
    assert_int_equal(t->header->pid, c->pid);
    assert_int_equal(t->header->rank, rank);
    assert_int_equal(t->header->world_size, 8);
    assert_int_equal(t->header->steps, 1);
    assert_int_equal(t->state, TARGET_RUNNING);
    snprintf(wanted, sizeof wanted, "rank %d, pid %d on ", rank, (int)c->pid);
    target_describe(t, text);
    assert_memory_equal(text, wanted, strlen(wanted));
}

static void by_pid_in_a_file_and_in_memory(void **state)
{
    (void)state;
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        targets t;
        child c = start(3, in_memory);
        assert_true(open_pid(&t, c.pid));
        assert_int_equal(t.count, 1);
        assert_int_equal(t.all[0].in_memory, in_memory);
        is_of(&t.all[0], &c, 3);
        uint64_t now = target_now_ns(&t.all[0]);
        assert_true(now > 0 && now < 60000000000u);
        kill_it(c);
        assert_true(target_refresh(&t.all[0]));
        assert_int_equal(t.all[0].state, TARGET_GONE);
        assert_int_equal(t.all[0].process_state, 0);
        targets_close(&t);
        assert_false(open_pid(&t, c.pid));
        assert_non_null(strstr(why.text, "there is no process"));
        targets_close(&t);
    }
}

static void states(void **state)
{
    int status;
    targets t;
    (void)state;
    child c = start(1, false);
    assert_true(open_named(&t, path_of("run-1.json.arena")));
    is_of(&t.all[0], &c, 1);
    kill(c.pid, SIGSTOP);
    assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
    assert_true(target_refresh(&t.all[0]));
    assert_int_equal(t.all[0].state, TARGET_STOPPED);
    kill(c.pid, SIGCONT);
    finish(c);
    assert_true(target_refresh(&t.all[0]));
    assert_int_equal(t.all[0].state, TARGET_ENDED);
    assert_string_equal(target_state_text(t.all[0].state), "ended");
    targets_close(&t);
    assert_false(open_named(&t, path_of("run-1.json.arena"))); /* a clean stop leaves none */
    assert_non_null(strstr(why.text, "No such file"));
    targets_close(&t);
}

static void write_file(const char *path, const void *text, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static void a_folder_by_rank(void **state)
{
    targets t;
    child all[3];
    (void)state;
    assert_false(open_named(&t, folder));
    assert_non_null(strstr(why.text, "no arena is in this folder"));
    targets_close(&t);
    for (int i = 0; i < 3; i++)
        all[i] = start(2 - i, false);
    kill_it(all[1]);
    write_file(path_of("a.txt"), "no arena", 8);
    write_file(path_of("torn.arena"), PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC);
    write_file(path_of("empty.arena"), "", 0);
    write_file(path_of("old.prev.arena"), "", 0);
    assert_true(open_named(&t, folder));
    assert_int_equal(t.count, 3);
    assert_int_equal(t.skipped_count, 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(t.all[i].header->rank, i);
    is_of(&t.all[0], &all[2], 0);
    is_of(&t.all[2], &all[0], 2);
    assert_int_equal(t.all[1].state, TARGET_GONE);
    assert_int_equal(t.all[1].process.pid, 0);
    targets_close(&t);

    char pid[32], arena[PATH_MAX];
    snprintf(pid, sizeof pid, "%d", (int)all[0].pid);
    strcpy(arena, path_of("run-2.json.arena"));
    assert_true(targets_open(&t, (char *[]){pid, arena, folder}, 3, &why));
    assert_int_equal(t.count, 3); /* each once */
    targets_close(&t);
    finish(all[2]); /* the one that was forked last: it holds the pipes of the others */
    finish(all[0]);
}

static void what_is_none(void **state)
{
    static const char *const names[] = {"",          "nowhere",  "99999999999999999999", "0", "-1",
                                        "/dev/null", "/dev/zero"};
    targets t;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_false(open_named(&t, names[i]));
        assert_true(why.text[0]);
        targets_close(&t);
    }
    assert_false(open_pid(&t, getpid())); /* without a session */
    assert_non_null(strstr(why.text, "has no arena"));
    targets_close(&t);
    assert_int_equal(mkfifo(path_of("fifo.arena"), 0600), 0);
    assert_false(open_named(&t, path_of("fifo.arena"))); /* and does not wait for a writer */
    targets_close(&t);
}

/* A word of the header set to something else, in a file of its own. */
static bool opens_with(const void *whole, size_t bytes, size_t at, uint32_t word)
{
    targets t;
    const char *path = path_of("spoilt.arena");
    write_file(path, whole, bytes);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &word, sizeof word, (off_t)at), sizeof word);
    close(fd);
    bool opened = open_named(&t, path);
    if (opened) {
        assert_true(target_now_ns(&t.all[0]) < UINT64_MAX);
        assert_true(t.all[0].header->block_count <= PKI_BLOCKS_MAX);
    }
    targets_close(&t);
    return opened;
}

static void torn_and_foreign(void **state)
{
    targets t;
    (void)state;
    child c = start(0, false);
    kill_it(c);
    assert_true(open_named(&t, path_of("run-0.json.arena")));
    size_t bytes = t.all[0].header->names + PKI_NAMES_SPAN_BYTES;
    char *whole = malloc(bytes);
    assert_non_null(whole);
    assert_true(target_read(&t.all[0], 0, whole, bytes));
    assert_false(target_read(&t.all[0], t.all[0].bytes, whole, 1));
    assert_false(target_read(&t.all[0], UINT64_MAX, whole, 2));
    assert_int_equal(truncate(path_of("run-0.json.arena"), 4096), 0); /* under the reader's hands */
    assert_false(target_read(&t.all[0], 8192, whole, 1));
    assert_false(target_refresh(&t.all[0]));
    targets_close(&t);

    assert_true(opens_with(whole, bytes, offsetof(pki_arena_header, rank), 77));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, version), 0));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, version), 99));
    assert_non_null(strstr(why.text, "another perfkit"));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, layout), 99));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, clock.count), 0));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, clock.count), 99999));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, block_count), UINT32_MAX));
    assert_true(opens_with(whole, bytes, offsetof(pki_arena_header, generation), UINT32_MAX));
    for (size_t n = 0; n < sizeof(pki_arena_header); n = n * 2 + 5)
        assert_false(opens_with(whole, n, 0, 0x41504B50));
    for (size_t at = 8; at < offsetof(pki_arena_header, clock.segments); at += 4)
        opens_with(whole, bytes, at, UINT32_MAX);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(by_pid_in_a_file_and_in_memory, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(states, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_by_rank, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_is_none, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(torn_and_foreign, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
