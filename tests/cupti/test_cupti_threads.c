/* Threads that launch while sessions come and go, buffers come back from a worker, and flushes come
 * from several sides. Best under ThreadSanitizer. */
#include "scene.h"

#define THREADS 4

static pk_region forward = PK_REGION("forward"), inner = PK_REGION("inner");
static bool over;

/* So that two processors can do what comes of it. */
static void nap(void)
{
    struct timespec t = {0, is_slow() ? 500000 : 100000};
    nanosleep(&t, NULL);
}

static bool goes_on(void)
{
    return !__atomic_load_n(&over, __ATOMIC_RELAXED);
}

static void *program(void *arg)
{
    unsigned n = 0;
    while (goes_on()) {
        pk_region_begin(&forward);
        launch(.kernel = "a", .inner = 307);
        if (n % 3 == 0) {
            pk_region_begin(&inner);
            play(RUNTIME, .id = 41, .device = CUPTI_ACTIVITY_KIND_MEMCPY, .bytes = n);
            pk_region_end(&inner);
        }
        if (arg && n % 7 == 0)
            pk_step(1);
        pk_region_end(&forward);
        launch(.kernel = "outside");
        n++;
        nap();
    }
    return NULL;
}

static void *worker(void *arg)
{
    (void)arg;
    while (goes_on()) {
        fake->finish();
        fake->complete();
        nap();
    }
    return NULL;
}

static void *flusher(void *arg)
{
    pk_backend_info info = {.size = sizeof info};
    (void)arg;
    while (goes_on()) {
        pk_flush();
        pk_backend_status("cupti", &info);
        nap();
    }
    return NULL;
}

/* Every kernel whose launch is there has that call's region, and no other one. */
static void expect_regions(const json_t *doc)
{
    size_t i;
    json_t *event;
    json_array_foreach(member(doc, "traceEvents"), i, event)
    {
        const char *cat = json_string_value(json_object_get(event, "cat"));
        const char *name = json_string_value(member(event, "name"));
        const char *region = json_object_get(event, "args") ? text_of(event, "region") : "";
        if (!cat || *region == 0)
            continue;
        if (strcmp(name, "outside") == 0 ||
            (strcmp(cat, "gpu_memcpy") == 0 && strcmp(region, "inner") != 0))
            fail_msg("%s %s is of %s", cat, name, region);
    }
}

static void sessions_come_and_go(void **state)
{
    pthread_t threads[THREADS + 2];
    (void)state;
    over = false;
    for (long i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, program, i ? NULL : &over), 0);
    assert_int_equal(pthread_create(&threads[THREADS], NULL, worker, NULL), 0);
    assert_int_equal(pthread_create(&threads[THREADS + 1], NULL, flusher, NULL), 0);
    for (int i = is_slow() ? 12 : 0; i < 20; i++) {
        struct timespec t = {0, 5000000};
        start_cupti(.cupti_steps = i % 4 == 3 ? "0-50" : NULL);
        nanosleep(&t, NULL);
        json_t *doc = stop_and_load();
        expect_regions(doc);
        json_decref(doc);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS + 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(fake->nulls == 0 && fake->misaligned == 0 && fake->clocks == 1);
    assert_true(fake->pushes >= fake->pops && fake->pushes - fake->pops <= THREADS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sessions_come_and_go, reset_fake, stop_and_leave),
    };
    if (argc < 2)
        return 2;
    open_fake(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
