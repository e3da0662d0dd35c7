/* many.c - sixteen communicators at once, each on a thread of its own, made, used and finalized
 * while the collector goes its rounds. However the threads fall: what was started is what is
 * counted, of each of them. A session has fewer events than the pool has places, so none may be
 * dropped.
 *
 * many [SHIM [SESSIONS]] */
#include "world.h"

#include <pthread.h>

enum { COMMS = 16, PLACES = 16384 };

static unsigned operations; /* of each communicator */
static unsigned running;
static pthread_barrier_t line;

static void *rank(void *number)
{
    char name[24];
    unsigned n = (unsigned)(uintptr_t)number;
    snprintf(name, sizeof name, "comm %u", n);
    pthread_barrier_wait(&line);
    void *context = make_comm(name, 100 + n, 0, 2);
    for (unsigned i = 0; i < operations; i++)
        collective(context, i % 2 ? "AllReduce" : "ReduceScatter", 4 + n);
    plugin->finalize(context);
    __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void play(void)
{
    pthread_t threads[COMMS];
    must(pthread_barrier_init(&line, NULL, COMMS) == 0);
    running = COMMS;
    for (unsigned i = 0; i < COMMS; i++)
        must(pthread_create(&threads[i], NULL, rank, (void *)(uintptr_t)i) == 0);
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0)
        must(pk_flush() == PK_OK); /* a round, and another */
    for (unsigned i = 0; i < COMMS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&line);
}

/* Of every communicator as many as were started; those of the session before may still be listed,
 * and have none. */
static void check(unsigned session)
{
    json_t *report = load_document(report_path), *comm;
    json_t *all = member(member(report, "comm"), "communicators");
    size_t i, right = 0;
    json_array_foreach(all, i, comm)
    {
        json_int_t calls = json_integer_value(member(comm, "calls"));
        right += calls == operations;
        if (calls > 0 && calls != operations)
            print_error("session %u, %s: %lld of %u\n", session,
                        json_string_value(member(comm, "name")), (long long)calls, operations);
    }
    json_decref(report);
    assert_int_equal(right, COMMS);
    assert_int_equal(calls(), COMMS * operations);
    assert_null(strstr(status(), "dropped"));
}

static unsigned sessions;

static void what_was_started(void **state)
{
    (void)state;
    operations = PLACES / COMMS / (version >= 5 ? 4u : 2u) - 1; /* so many events each */
    for (unsigned i = 0; i < sessions; i++) {
        start_session();
        play();
        assert_int_equal(pk_stop(), PK_OK);
        check(i);
        kit_clean();
        unsetenv("NCCL_PROFILER_PLUGIN");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_started)};
    sessions = argc > 2 ? (unsigned)atoi(argv[2]) : kit_scaled(10);
    return in_versions(4, argc, argv, tests, 1);
}
