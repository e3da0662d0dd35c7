/* Nothing but the end of a session lets go of its files: not what its process opens, closes or
 * forks. */
#include "place.h"

#include <sys/resource.h>

static void back_up(void)
{
    free(read_file("run.json.arena", NULL));
    free(read_file("run.json", NULL));
}

static void close_all(void)
{
    for (int fd = 100; fd < 5000; fd++)
        close(fd);
}

/* Until the child is past its fork: before that it has what its parent had, locks too. */
static void fork_a_while(void)
{
    int ends[2];
    char byte = 0;
    if (pipe(ends) != 0)
        _exit(3);
    pid_t child = fork();
    if (child == 0) {
        if (write(ends[1], &byte, 1) != 1)
            _exit(1);
        for (int fd = 0; fd < 3; fd++)
            close(fd); /* whoever runs this test waits for their end */
        close(ends[0]);
        close(ends[1]);
        sleep(20);
        _exit(0);
    }
    if (child < 0 || read(ends[0], &byte, 1) != 1)
        _exit(3);
    close(ends[0]);
    close(ends[1]);
}

static void expect_way_given(const char *arena)
{
    char mine[64], *text;
    assert_int_equal(start("run.json", arena), PK_OK);
    snprintf(mine, sizeof mine, "run.%d.json", (int)getpid());
    assert_true(exists(mine) && strstr(heard, mine));
    assert_int_equal(pk_stop(), PK_OK);
    text = read_file("run.json", NULL);
    assert_null(strstr(text, "perfkitReport")); /* not ours, and still being written */
    free(text);
}

static void a_neighbour_that_reads_its_files(void **state)
{
    (void)state;
    what_it_does = back_up;
    neighbour n = begin_neighbour("run.json", NULL, "the neighbour's");
    what_it_does = NULL;
    expect_way_given(NULL);
    end_neighbour(n);
    expect_region("run.json", "the neighbour's");
}

static void a_neighbour_that_closes_everything(void **state)
{
    int status;
    (void)state;
    what_it_does = close_all;
    neighbour n = begin_neighbour("run.json", NULL, "the neighbour's");
    what_it_does = NULL;
    expect_way_given(NULL);
    close(n.go);
    close(n.ready);
    kill(n.pid, SIGKILL); /* its stop would fail */
    assert_int_equal(waitpid(n.pid, &status, 0), n.pid);
}

static void a_neighbour_without_an_arena(void **state)
{
    (void)state;
    neighbour n = begin_neighbour("run.json", "none", "the neighbour's");
    expect_way_given(NULL);
    expect_way_given("none");
    expect_way_given("mine.arena");
    end_neighbour(n);
    expect_region("run.json", "the neighbour's");
}

/* What it was still running is no reason to take the killed run for a live one. */
static void the_killed_had_children(void **state)
{
    int status;
    (void)state;
    what_it_does = fork_a_while;
    neighbour n = begin_neighbour("run.json", NULL, "of the killed");
    what_it_does = NULL;
    kill(n.pid, SIGKILL);
    assert_int_equal(waitpid(n.pid, &status, 0), n.pid);
    assert_int_equal(start("run.json", NULL), PK_OK);
    assert_non_null(strstr(heard, "run.json.prev"));
    assert_int_equal(pk_stop(), PK_OK);
}

/* Somebody has moved ours away, and put something else in its place. */
static void what_came_to_the_name_stays(void **state)
{
    (void)state;
    assert_int_equal(start("run.json", NULL), PK_OK);
    assert_int_equal(rename("run.json.arena", "moved"), 0);
    write_file("run.json.arena", "precious");
    assert_int_equal(pk_stop(), PK_OK);
    char *text = read_file("run.json.arena", NULL);
    assert_string_equal(text, "precious");
    free(text);
}

/* A stop that fails leaves the arena; whoever comes next finds it, though this process goes on. */
static void left_after_trouble(void **state)
{
    int ends[2], status;
    char byte;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit least = {1 << 16, RLIM_INFINITY};
        if (pk_start(
                pk_options(.trace_path = "run.json", .backends = "none", .memory_bytes = 8 << 20)))
            _exit(1);
        setrlimit(RLIMIT_FSIZE, &least);
        for (int i = 0; i < 5000; i++)
            record("too much");
        if (pk_stop() != PK_ENOSPC || write(ends[1], "", 1) != 1)
            _exit(2);
        pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    assert_true(exists("run.json.arena"));
    assert_int_equal(start("run.json", NULL), PK_OK);
    assert_non_null(strstr(heard, "run.json.prev"));
    assert_int_equal(pk_stop(), PK_OK);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
}

int main(void)
{
    if (strstr(SANITIZERS, "thread")) {
        printf("ThreadSanitizer does not follow threads that a fork's child starts\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        with_folder(a_neighbour_that_reads_its_files),
        with_folder(a_neighbour_that_closes_everything),
        with_folder(a_neighbour_without_an_arena),
        with_folder(the_killed_had_children),
        with_folder(what_came_to_the_name_stays),
        with_folder(left_after_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
