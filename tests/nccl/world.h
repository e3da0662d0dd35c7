/* world.h - tests in a session with one communicator, once for each version of the interface. */
#ifndef TESTS_NCCL_WORLD_H
#define TESTS_NCCL_WORLD_H

#include "role.h"

static void *world;

static inline int open_world(void **state)
{
    (void)state;
    start_session();
    world = make_comm("world", 0x1234, 1, 4);
    return 0;
}

static inline int close_world(void **state)
{
    (void)state;
    plugin->finalize(world);
    pk_stop();
    kit_clean();
    unsetenv("NCCL_PROFILER_PLUGIN");
    return 0;
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

/* How many groups have failed. argv[1]: the shim, if not empty. */
static inline int in_versions(int first, int argc, char **argv, const struct CMUnitTest *tests,
                              size_t count)
{
    int failed = 0;
    char name[24];
    shim = argc > 1 && *argv[1] ? argv[1] : NULL;
    unsetenv("NCCL_PROFILER_PLUGIN");
    for (version = first; version <= 6; version++) {
        snprintf(name, sizeof name, "version %d", version);
        failed += _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    }
    return failed;
}

#endif
