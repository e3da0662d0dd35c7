/* Whose trace it is: killed runs are kept, running ones are left alone, and nothing but its end
 * lets go of a session's files. */
#include "document.h"
#include "../kit/tuning.h"
#include "valgrind.h"

#include <pk/pk.h>

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/log.h"

/* ---- processes that start a session at some path, and what becomes of them ---- */

static char heard[4000];

static void listen(void *user, pk_log_level level, const char *message)
{
    (void)user, (void)level;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", message);
}

static pk_status start(const char *trace, const char *arena)
{
    heard[0] = 0;
    return pk_start(
        pk_options(.trace_path = trace, .memory_bytes = 8 << 20, .backends = "none", .log = listen,
                   .tuning = kit_tuning("arena_path=%s,ring_records=1024", arena ? arena : "")));
}

static int leave(void **state)
{
    pk_stop();
    return leave_folder(state);
}

static void record(const char *name)
{
    PK_REGION_SCOPE(*pk_region_named(name));
}

static void expect_region(const char *path, const char *name)
{
    json_t *doc = load_document(path);
    assert_int_equal(count_events(doc, "X", name), 1);
    json_decref(doc);
}

/* A process that starts a session, records, and dies of it. */
static void run_and_die(const char *trace, const char *arena, const char *name)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (start(trace, arena))
            _exit(1);
        record(name);
        pk_flush();
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

typedef struct neighbour {
    pid_t pid;
    int ready, go; /* it says so, it is told so */
} neighbour;

static void (*what_it_does)(void); /* amid its session; NULL: nothing more */

/* A process that has a session open until it is let go. */
static neighbour begin_neighbour(const char *trace, const char *arena, const char *name)
{
    int ready[2], go[2];
    char byte = 0;
    assert_true(pipe(ready) == 0 && pipe(go) == 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (start(trace, arena))
            _exit(1);
        record(name);
        if (what_it_does)
            what_it_does();
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(2);
        _exit(pk_stop() ? 3 : 0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    return (neighbour){child, ready[0], go[1]};
}

static void end_neighbour(neighbour n)
{
    int status;
    assert_int_equal(write(n.go, "", 1), 1);
    assert_int_equal(waitpid(n.pid, &status, 0), n.pid);
    assert_int_equal(status, 0);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave)

/* ---- whose trace it is ---- */

/* Killed runs are kept, running ones are left alone, and processes that start at once each get a
 * name. */

/* -- a run that was killed -- */

static void a_killed_run_is_kept(void **state)
{
    (void)state;
    run_and_die("run.json", NULL, "of the killed");
    assert_true(exists("run.json") && exists("run.json.arena") && count_files() == 2);
    expect_region("run.json", "of the killed");
    assert_int_equal(start("run.json", NULL), PK_OK);
    assert_non_null(strstr(heard, "run.json.prev"));
    record("of the next");
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 3);
    expect_region("run.json", "of the next");
    expect_region("run.json.prev", "of the killed");
    size_t n;
    char *arena = read_file("run.json.prev.arena", &n);
    assert_memory_equal(arena, "PKARENA", 8);
    free(arena);
    run_and_die("run.json", NULL, "killed again"); /* the latest one is kept */
    assert_int_equal(start("run.json", NULL), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    expect_region("run.json.prev", "killed again");
    assert_int_equal(count_files(), 3);
}

static void a_clean_run_is_replaced(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(start("run.json", NULL), PK_OK);
        assert_int_equal(pk_stop(), PK_OK);
    }
    assert_int_equal(count_files(), 1);
    assert_string_equal(heard, "");
}

static void arenas_with_paths_of_their_own(void **state)
{
    (void)state;
    run_and_die("run.json", "elsewhere.arena", "first");
    assert_int_equal(start("run.json", "elsewhere.arena"), PK_OK);
    assert_true(exists("elsewhere.prev.arena") && exists("run.json.prev"));
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 3);
    run_and_die("", "odd name", "second"); /* statistics only */
    assert_int_equal(start("", "odd name"), PK_OK);
    assert_true(exists("odd name.prev.arena"));
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 4);
    expect_region("run.json.prev", "first");
}

static bool reserves_addresses(void)
{
    return is_slow() || strstr(SANITIZERS, "address");
}

static uint64_t address_space(void)
{
    char *text = read_file("/proc/self/statm", NULL);
    uint64_t pages = strtoull(text, NULL, 10);
    free(text);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A batch system's limit: most of what it leaves is the program's. */
static void a_limit_on_addresses(void **state)
{
    int status;
    (void)state;
    if (reserves_addresses())
        skip();
    pid_t child = fork();
    if (child == 0) {
        struct rlimit most = {.rlim_max = RLIM_INFINITY};
        most.rlim_cur = (rlim_t)address_space() + ((rlim_t)512 << 20);
        if (setrlimit(RLIMIT_AS, &most) != 0 ||
            pk_start(pk_options(.trace_path = "run.json", .backends = "none")) != PK_OK)
            _exit(1);
        record("of little");
        void *ours = malloc((size_t)400 << 20);
        _exit(ours && pk_stop() == PK_OK ? 7 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    expect_region("run.json", "of little");
}

static void memory_only(void **state)
{
    (void)state;
    assert_int_equal(start("run.json", "none"), PK_OK);
    assert_int_equal(count_files(), 1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(start("", NULL), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 1);
}

static void what_is_no_arena_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(mkdir("run.json.arena", 0700), 0);
    assert_int_equal(start("run.json", NULL), PK_EACCES);
    assert_non_null(strstr(pk_error_message(), "run.json.arena"));
    assert_int_equal(count_files(), 1);
    write_file("precious", "precious");
    assert_int_equal(symlink("precious", "link.json.arena"), 0);
    assert_int_equal(start("link.json", NULL), PK_EACCES);
    char *text = read_file("precious", NULL);
    assert_string_equal(text, "precious");
    free(text);
    assert_false(exists("link.json"));
}

/* -- processes side by side -- */

static void a_running_neighbour_keeps_its_name(void **state)
{
    char mine[64];
    (void)state;
    neighbour n = begin_neighbour("run.json", NULL, "the neighbour's");
    assert_int_equal(start("run.json", NULL), PK_OK);
    snprintf(mine, sizeof mine, "run.%d.json", (int)getpid());
    assert_true(exists(mine) && strstr(heard, mine) && strstr(heard, "%r"));
    record("mine");
    assert_int_equal(pk_stop(), PK_OK);
    end_neighbour(n);
    assert_int_equal(count_files(), 2);
    expect_region("run.json", "the neighbour's");
    expect_region(mine, "mine");
}

static void names_with_a_pid(void **state)
{
    static const char *const patterns[][2] = {{"a.json.gz", "a.%d.json.gz"},
                                              {"b.trace", "b.%d.trace"},
                                              {"plain", "plain.%d"},
                                              {"./x.y/plain", "./x.y/plain.%d"}};
    (void)state;
    assert_int_equal(mkdir("x.y", 0700), 0);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        char mine[64];
        snprintf(mine, sizeof mine, "%.*s%d%s", (int)(strchr(patterns[i][1], '%') - patterns[i][1]),
                 patterns[i][1], (int)getpid(), strchr(patterns[i][1], '%') + 2);
        neighbour n = begin_neighbour(patterns[i][0], NULL, "x");
        assert_int_equal(start(patterns[i][0], NULL), PK_OK);
        assert_true(exists(mine));
        assert_int_equal(pk_stop(), PK_OK);
        end_neighbour(n);
    }
}

static void an_arena_in_use(void **state)
{
    char pid[32];
    (void)state;
    neighbour n = begin_neighbour("run.json", "the.arena", "x");
    assert_int_equal(start("other.json", "the.arena"), PK_EACCES);
    snprintf(pid, sizeof pid, "process %d", (int)n.pid);
    assert_non_null(strstr(pk_error_message(), pid));
    assert_false(exists("other.json"));
    end_neighbour(n);
    assert_int_equal(count_files(), 1);
}

/* -- all at once -- */

#define CROWD 6
#define ROUNDS (is_slow() ? 2u : 5u)

/* One of them: begins when `begin` is closed, says so, and ends when `end` is. */
static void be_one(const int begin[2], const int ready[2], const int end[2], const char *name)
{
    char byte;
    close(begin[1]);
    close(end[1]);
    if (read(begin[0], &byte, 1) != 0 || start("crowd.json", NULL))
        _exit(1);
    record(name);
    if (write(ready[1], "", 1) != 1 || read(end[0], &byte, 1) != 0)
        _exit(2);
    _exit(pk_stop() ? 3 : 0);
}

static void close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* Ranks of a job without %r in the path, all at the same moment, none done before all have
 * begun. */
static void start_a_crowd(unsigned round)
{
    int begin[2], ready[2], end[2], status;
    char byte, name[32];
    pid_t children[CROWD];
    assert_true(pipe(begin) == 0 && pipe(ready) == 0 && pipe(end) == 0);
    for (unsigned i = 0; i < CROWD; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        snprintf(name, sizeof name, "%u of round %u", i, round);
        if (children[i] == 0)
            be_one(begin, ready, end, name);
    }
    close_both(begin); /* off they go */
    close(ready[1]);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close_both(end);
    for (unsigned i = 0; i < CROWD; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
}

/* In how many of the folder's traces, which are removed. */
static unsigned collect(unsigned round)
{
    unsigned found = 0;
    DIR *folder = opendir(".");
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        if (strstr(e->d_name, ".prev") || e->d_name[0] == '.')
            continue;
        json_t *doc = load_document(e->d_name);
        for (unsigned i = 0; i < CROWD; i++) {
            char name[32];
            snprintf(name, sizeof name, "%u of round %u", i, round);
            found += count_events(doc, "X", name) == 1;
        }
        json_decref(doc);
        assert_int_equal(remove(e->d_name), 0);
    }
    closedir(folder);
    return found;
}

static void all_at_once(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_a_crowd(round);
        assert_int_equal(collect(round), CROWD);
        assert_int_equal(count_files(), 0);
    }
}

static void all_at_once_after_a_kill(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        run_and_die("crowd.json", NULL, "of the killed");
        start_a_crowd(round);
        expect_region("crowd.json.prev", "of the killed");
        assert_int_equal(collect(round), CROWD);
        assert_int_equal(count_files(), 2);
        assert_int_equal(remove("crowd.json.prev"), 0);
        assert_int_equal(remove("crowd.json.prev.arena"), 0);
    }
}

static const struct CMUnitTest place_tests[] = {
    with_folder(a_killed_run_is_kept),
    with_folder(a_clean_run_is_replaced),
    with_folder(arenas_with_paths_of_their_own),
    with_folder(a_limit_on_addresses),
    with_folder(memory_only),
    with_folder(what_is_no_arena_is_left_alone),
    with_folder(a_running_neighbour_keeps_its_name),
    with_folder(names_with_a_pid),
    with_folder(an_arena_in_use),
    with_folder(all_at_once),
    with_folder(all_at_once_after_a_kill),
};

/* ---- nothing but the end of a session lets go of its files ---- */

/* Not what its process opens, closes or forks. */

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

static const struct CMUnitTest place_held_tests[] = {
    with_folder(a_neighbour_that_reads_its_files), with_folder(a_neighbour_that_closes_everything),
    with_folder(a_neighbour_without_an_arena),     with_folder(the_killed_had_children),
    with_folder(what_came_to_the_name_stays),      with_folder(left_after_trouble),
};

int main(void)
{
    if (strstr(SANITIZERS, "thread")) {
        printf("ThreadSanitizer does not follow threads that a fork's child starts\n");
        return 77;
    }
    int failed = cmocka_run_group_tests(place_tests, NULL, NULL);
    failed += cmocka_run_group_tests(place_held_tests, NULL, NULL);
    return failed;
}
