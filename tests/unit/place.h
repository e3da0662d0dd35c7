/* tests/unit/place.h - processes that start a session at some path, and what becomes of them. */
#ifndef TESTS_PLACE_H
#define TESTS_PLACE_H

#include "document.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include <pk/pk.h>

#include "base/log.h"

static char heard[4000];

static inline void listen(void *user, pk_log_level level, const char *message)
{
    (void)user, (void)level;
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", message);
}

static inline pk_status start(const char *trace, const char *arena)
{
    heard[0] = 0;
    return pk_start(pk_options(.trace_path = trace, .arena_path = arena, .memory_bytes = 8 << 20,
                               .ring_records = 1024, .backends = "none", .log = listen));
}

static inline int leave(void **state)
{
    pk_stop();
    return leave_folder(state);
}

static inline void record(const char *name)
{
    PK_SCOPE(*pk_region_named(name)) {
    }
}

static inline void expect_region(const char *path, const char *name)
{
    json_t *doc = load_document(path);
    assert_int_equal(count_events(doc, "X", name), 1);
    json_decref(doc);
}

/* A process that starts a session, records, and dies of it. */
static inline void run_and_die(const char *trace, const char *arena, const char *name)
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
static inline neighbour begin_neighbour(const char *trace, const char *arena, const char *name)
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

static inline void end_neighbour(neighbour n)
{
    int status;
    assert_int_equal(write(n.go, "", 1), 1);
    assert_int_equal(waitpid(n.pid, &status, 0), n.pid);
    assert_int_equal(status, 0);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave)

#endif
