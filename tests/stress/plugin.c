/* Plug-ins come and go while threads that have recorded in them live on: nothing of theirs is
 * touched once they are unmapped, and a plug-in that comes back goes on with the same statistics.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "kit.h"
#include "trace.h"

#define THREADS 4
#define CALLS 25

typedef void work_function(unsigned calls, int leave_open);

static char **modules; /* two files with the same code */
static unsigned rounds;
static work_function *work;
static pthread_barrier_t loaded, used;

static void *load(const char *path)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        kit_give_up(__FILE__, __LINE__, dlerror(), 0, 0);
    void *found = dlsym(module, "plugin_work");
    must(found != NULL);
    memcpy(&work, &found, sizeof work);
    return module;
}

static void *use(void *argument)
{
    for (unsigned i = 0; i < rounds; i++) {
        PK_REGION_SCOPE_NAMED("host.round");
        pthread_barrier_wait(&loaded);
        work(CALLS, i % 3 == 0);
        pthread_barrier_wait(&used);
    }
    return argument;
}

static void unload(void *module, const char *path)
{
    assert_int_equal(dlclose(module), 0);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD)); /* it really is gone */
    assert_non_null(dlsym(RTLD_DEFAULT, "pk_start"));
}

static void come_and_go(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&loaded, NULL, THREADS + 1);
    pthread_barrier_init(&used, NULL, THREADS + 1);
    for (unsigned i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, use, NULL) == 0);
    for (unsigned i = 0; i < rounds; i++) {
        void *module = load(modules[i % 2]);
        pthread_barrier_wait(&loaded);
        pthread_barrier_wait(&used);
        unload(module, modules[i % 2]);
        assert_int_equal(pk_flush(), PK_OK); /* names are looked at only now */
    }
    for (unsigned i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
    pthread_barrier_destroy(&loaded);
    pthread_barrier_destroy(&used);
}

static void check(const trace *t, pk_kind kind, const char *name, uint64_t calls)
{
    static pk_stats stats;
    assert_int_equal(pk_region_stats(pk_region_named_of(kind, name), &stats), PK_OK);
    assert_int_equal(stats.count, calls);
    assert_int_equal(trace_slices(t, name), calls);
}

static void plugins_come_and_go(void **state)
{
    trace t;
    pk_counts c = {.size = sizeof c};
    const char *path = kit_path("plugin.json");
    uint64_t visits, leave = 0;
    (void)state;
    rounds = kit_scaled(100) + 5;
    visits = (uint64_t)rounds * THREADS;
    for (unsigned i = 0; i < rounds; i++)
        leave += i % 3 == 0 ? THREADS : 0;
    assert_int_equal(pk_start(pk_options(.trace_path = path, .backends = "none",
                                         .tuning = "ring_records=1024,flush_ms=3600000")),
                     PK_OK);
    come_and_go();
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&c), PK_OK);
    if (!trace_read(&t, path) || !trace_nests(&t))
        fail_msg("%s", t.why);
    assert_int_equal(c.dropped, 0);
    assert_int_equal(c.unbalanced, leave);
    assert_int_equal(trace_slices(&t, NULL), c.begun);
    check(&t, PK_OTHER, "host.round", visits);
    check(&t, PK_COMPUTE, "plugin.work", visits * CALLS);
    check(&t, PK_COMPUTE, "plugin.work[odd=0]", visits * (CALLS + 1) / 2);
    check(&t, PK_OTHER, "plugin.block", visits * CALLS);
    check(&t, PK_OTHER, "plugin.on the stack", visits);
    check(&t, PK_OTHER, "plugin.left open", leave);
    trace_free(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plugins_come_and_go)};
    if (argc != 3)
        kit_skip("needs the paths of two modules");
    modules = argv + 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
