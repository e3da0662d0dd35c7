/* library.c - what perfkit's own calls take, as a shared object for `pk bench-ab` (./dev ab): built
 * twice from this file, with the whole of the library of one commit and of another.
 *
 * One benchmark is open at a time there, so each may have a session of its own. They record into no
 * trace: whether a disk keeps up is nobody's change.
 */
#include <pk/bench.h>
#include <pk/pk.h>

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner");
static pk_counter queue = PK_COUNTER("queue", "items");

static int start(void *user)
{
    (void)user;
    return pk_start(pk_options(.backends = "none", .trace_path = NULL)) == PK_OK ? 0 : 1;
}

static void stop(void *user)
{
    (void)user;
    pk_stop();
}

#define WITH_SESSION(name)                                                                         \
    PK_BENCH_OPTIONS(name)                                                                         \
    {                                                                                              \
        options->setup = start;                                                                    \
        options->teardown = stop;                                                                  \
    }

PK_BENCH(region_off)
{
    PK_BENCH_LOOP {
        pk_region_begin(&outer);
        pk_region_end(&outer);
    }
}

PK_BENCH(region)
{
    PK_BENCH_LOOP {
        pk_region_begin(&outer);
        pk_region_end(&outer);
    }
}
WITH_SESSION(region)

PK_BENCH(region_nested)
{
    PK_BENCH_LOOP {
        pk_region_begin(&outer);
        pk_region_begin(&inner);
        pk_region_next(&inner, &outer);
        pk_region_end(&outer);
        pk_region_end(&outer);
    }
}
WITH_SESSION(region_nested)

PK_BENCH(counter)
{
    double value = 0;
    PK_BENCH_LOOP {
        pk_counter_set(&queue, value++);
    }
}
WITH_SESSION(counter)

PK_BENCH(named)
{
    PK_BENCH_LOOP {
        pk_keep(pk_region_named("a name that is looked up"));
    }
}
WITH_SESSION(named)

PK_BENCH(stats)
{
    PK_BENCH_LOOP {
        pk_stats stats;
        pk_keep(pk_region_stats(&outer, &stats));
    }
}
WITH_SESSION(stats)
