/* The structs that callers size, the log that they ask for, and which rank of which job this is. */
#include "session/options/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "base/log.h"

static pki_config config;

static const char *const launchers[][2] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMIX_RANK", "PMIX_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"PALS_RANKID", "PALS_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};
#define LAUNCHERS (sizeof launchers / sizeof *launchers)

static int clear_environment(void **state)
{
    static const char *const ours[] = {"PK_RANK", "PK_WORLD_SIZE", "PK_LOG", "PK_LOG_LEVEL",
                                       "PK_BACKENDS"};
    (void)state;
    for (size_t i = 0; i < LAUNCHERS; i++) {
        unsetenv(launchers[i][0]);
        unsetenv(launchers[i][1]);
    }
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        unsetenv(ours[i]);
    return 0;
}

static int stop_session(void **state)
{
    (void)state;
    pk_stop();
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
    return 0;
}

/* ---- sizes ---- */

typedef struct tomorrow {
    pk_options known;
    uint64_t unknown[4];
} tomorrow;

static pk_status read_as(const void *options)
{
    return pki_config_read(&config, options);
}

static void larger_structs(void **state)
{
    tomorrow t;
    (void)state;
    memset(&t, 0, sizeof t);
    t.known.size = sizeof t;
    t.known.flush_ms = 77;
    assert_int_equal(read_as(&t), PK_OK);
    assert_int_equal(config.flush_ms, 77);
    for (size_t i = 0; i < sizeof t.unknown;
         i++) { /* any byte of it is a wish that would be lost */
        ((char *)t.unknown)[i] = 1;
        assert_int_equal(read_as(&t), PK_EINVAL);
        assert_non_null(strstr(pk_error_message(), "does not know"));
        ((char *)t.unknown)[i] = 0;
    }
    t.unknown[3] = 1;
    t.known.size = sizeof t - 8; /* outside what it says it is */
    assert_int_equal(read_as(&t), PK_OK);
}

static void smaller_structs(void **state)
{
    pk_options o;
    (void)state;
    memset(&o, 0xFF, sizeof o); /* what lies beyond the size is not looked at */
    o.size = 8;
    o.ring_records = 512;
    assert_int_equal(read_as(&o), PK_OK);
    assert_true(config.ring_records == 512 && config.flush_ms == 1000 && !config.trace[0]);
    memset(&o, 0, offsetof(pk_options, report_path));
    o.size = offsetof(pk_options, report_path);
    o.trace_path = "t.json";
    assert_int_equal(read_as(&o), PK_OK);
    assert_string_equal(config.trace, "t.json");
}

static void sizes_that_no_struct_has(void **state)
{
    static const uint32_t bad[] = {
        0, 4, 7, 9, 12, sizeof(pk_options) - 4, sizeof(pk_options) + 1, 65544, UINT32_MAX};
    pk_options o;
    (void)state;
    memset(&o, 0, sizeof o);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        o.size = bad[i];
        assert_int_equal(read_as(&o), PK_EINVAL);
        assert_non_null(strstr(pk_error_message(), "size"));
    }
}

static void counts_of_any_size(void **state)
{
    pk_counts counts;
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    PK_SCOPE_NAMED("one") {
    }
    memset(&counts, 0xEE, sizeof counts);
    counts.size = offsetof(pk_counts, recorded);
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_true(counts.begun == 1 && counts.threads == 1 &&
                counts.size == offsetof(pk_counts, recorded));
    assert_int_equal(counts.recorded, 0xEEEEEEEEEEEEEEEEu); /* not touched */
    static const uint32_t bad[] = {0, 7, sizeof(pk_counts) + 8};
    for (size_t i = 0; i < 3; i++) {
        counts.size = bad[i];
        assert_int_equal(pk_get_counts(&counts), PK_EINVAL);
        assert_non_null(strstr(pk_error_message(), "pk_counts.size"));
    }
    assert_int_equal(pk_get_counts(NULL), PK_EINVAL);
    assert_int_equal(pk_region_stats(NULL, NULL), PK_EINVAL);
    assert_int_equal(pk_step_stats(NULL), PK_EINVAL);
}

/* The functions themselves, as other languages call them. */
static void stats_of_any_size(void **state)
{
    static pk_stats stats;
    pk_region *one = pk_region_named("one");
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    PK_SCOPE(*one) {
    }
    memset(&stats, 0xEE, sizeof stats);
    stats.size = offsetof(pk_stats, buckets);
    assert_int_equal((pk_region_stats)(one, &stats), PK_OK);
    assert_true(stats.count == 1 && stats.sum == stats.max && stats.spare[3] == 0);
    assert_int_equal(stats.size, offsetof(pk_stats, buckets));
    assert_int_equal(stats.buckets[0], 0xEEEEEEEEEEEEEEEEu); /* not touched */
    assert_int_equal(pk_stats_quantile(&stats, 0.5), 0);
    memset(&stats, 0xEE, sizeof stats);
    assert_int_equal(pk_region_stats(one, &stats), PK_OK); /* the macro knows the size */
    assert_true(stats.size == sizeof stats && stats.count == 1 && stats.buckets[0] <= 1);
    assert_int_equal(pk_stats_quantile(&stats, 0.5), stats.max);
    static const uint32_t bad[] = {0, 7, sizeof stats + 8};
    for (size_t i = 0; i < 3; i++) {
        stats.size = bad[i];
        assert_int_equal((pk_region_stats)(one, &stats), PK_EINVAL);
        assert_non_null(strstr(pk_error_message(), "pk_stats.size"));
        assert_int_equal((pk_step_stats)(&stats), PK_EINVAL);
        assert_int_equal((pk_region_gpu_stats)(one, &stats), PK_EINVAL);
    }
}

/* ---- the log ---- */

static char heard[2000];

static void listen(void *user, pk_log_level level, const char *message)
{
    (void)level;
    assert_ptr_equal(user, heard);
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s\n", message);
}

static void the_log_hears_what_was_refused(void **state)
{
    (void)state;
    heard[0] = 0;
    assert_int_equal(pk_start(pk_options(.ring_records = 3, .log = listen, .log_user = heard)),
                     PK_EINVAL);
    assert_non_null(strstr(heard, "ring_records"));
    heard[0] = 0;
    pk_stop(); /* that start has failed: nobody listens any more */
    assert_string_equal(heard, "");
}

static void the_log_ends_with_the_session(void **state)
{
    (void)state;
    heard[0] = 0;
    assert_int_equal(pk_start(pk_options(.backends = "none", .log = listen, .log_user = heard,
                                         .log_level = PK_LOG_INFO)),
                     PK_OK);
    assert_non_null(strstr(heard, pk_version()));
    assert_int_equal(pk_start(pk_options(.log = NULL)), PK_EBUSY);
    assert_non_null(strstr(heard, "already started"));
    assert_int_equal(pk_stop(), PK_OK);
    heard[0] = 0;
    assert_int_equal(pk_stop(), PK_EOFF);
    assert_string_equal(heard, "");
}

static void log_of_the_environment(void **state)
{
    (void)state;
    setenv("PK_LOG", "file.txt", 1);
    assert_int_equal(read_as(NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_LOG=file.txt"));
    setenv("PK_LOG", "stderr", 1);
    setenv("PK_LOG_LEVEL", "loud", 1);
    assert_int_equal(read_as(NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_LOG_LEVEL=loud"));
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    for (int i = 0; i < 4; i++) {
        setenv("PK_LOG_LEVEL", levels[i], 1);
        assert_int_equal(read_as(NULL), PK_OK);
    }
}

/* ---- rank and world ---- */

static void set_launcher(size_t i, const char *rank, const char *size)
{
    setenv(launchers[i][0], rank, 1);
    if (size)
        setenv(launchers[i][1], size, 1);
}

static void expect_world(int rank, int size)
{
    assert_int_equal(read_as(NULL), PK_OK);
    assert_int_equal(config.world.rank, rank);
    assert_int_equal(config.world.size, size);
}

static void each_launcher(void **state)
{
    (void)state;
    expect_world(0, 0);
    for (size_t i = 0; i < LAUNCHERS; i++) {
        set_launcher(i, "3", "8");
        expect_world(3, 8);
        clear_environment(NULL);
    }
}

/* Under mpirun inside sbatch every rank has SLURM_PROCID=0; and torchrun may run under anything. */
static void the_most_specific_launcher_wins(void **state)
{
    (void)state;
    for (size_t i = LAUNCHERS; i-- > 0;) {
        char rank[32];
        snprintf(rank, sizeof rank, "%zu", i);
        set_launcher(i, rank, "16");
        expect_world((int)i, 16);
    }
}

static void odd_launchers(void **state)
{
    (void)state;
    setenv("RANK", "2", 1); /* too common a word to stand for itself */
    expect_world(0, 0);
    set_launcher(8, "1", "4");
    expect_world(1, 4);
    clear_environment(NULL);
    set_launcher(1, "5", NULL); /* at least that many there are */
    expect_world(5, 6);
    set_launcher(1, "5", "3");
    expect_world(5, 6);
    static const char *const bad[] = {"", "x", "-1", "1x", "99999999999", " 1", "2147483647"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        set_launcher(1, bad[i], "8");
        expect_world(0, 0);
        set_launcher(8, "1", "2"); /* the next one that makes sense */
        expect_world(1, 2);
        clear_environment(NULL);
    }
}

static void rank_by_option(void **state)
{
    (void)state;
    set_launcher(0, "3", "8");
    assert_int_equal(read_as(pk_options(.rank = 1, .world_size = 2)), PK_OK);
    assert_true(config.world.rank == 1 && config.world.size == 2);
    assert_int_equal(read_as(pk_options(.rank = 7)), PK_OK); /* read only with world_size */
    assert_true(config.world.rank == 3 && config.world.size == 8);
    setenv("PK_WORLD_SIZE", "5", 1);
    expect_world(0, 5);
    setenv("PK_RANK", "4", 1);
    expect_world(4, 5);
    assert_int_equal(read_as(pk_options(.rank = 2, .world_size = 2)), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "rank 2 of world_size 2"));
    assert_int_equal(read_as(pk_options(.rank = -1, .world_size = 2)), PK_EINVAL);
    assert_int_equal(read_as(pk_options(.world_size = -2)), PK_EINVAL);
    setenv("PK_RANK", "5", 1);
    assert_int_equal(read_as(NULL), PK_EINVAL);
    setenv("PK_RANK", "first", 1);
    assert_int_equal(read_as(NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_RANK=first"));
    setenv("PK_WORLD_SIZE", "many", 1);
    assert_int_equal(read_as(NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_WORLD_SIZE=many"));
}

/* ---- backends ---- */

static void backends_say_why_they_are_off(void **state)
{
    static const char *const names[] = {"cuda", "cupti", "nvtx", "nccl"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        pk_backend_info info = {.size = sizeof info};
        assert_int_equal(pk_backend_status(names[i], &info), PK_OK);
        assert_true(info.size == sizeof info && (info.live || info.reason[0]));
        info.size = 8;
        info.version[0] = 'x';
        assert_int_equal(pk_backend_status(names[i], &info), PK_OK);
        assert_true(info.size == 8 && info.version[0] == 'x');
        info.size = sizeof info + 1;
        assert_int_equal(pk_backend_status(names[i], &info), PK_EINVAL);
        assert_int_equal(pk_backend_status(names[i], NULL), PK_EINVAL);
    }
    assert_int_equal(pk_backend_status("opencl", NULL), PK_ENOENT);
    assert_non_null(strstr(pk_error_message(), "opencl"));
    assert_int_equal(pk_backend_status(NULL, NULL), PK_ENOENT);
}

#define alone(test) cmocka_unit_test_setup_teardown(test, clear_environment, stop_session)

int main(void)
{
    const struct CMUnitTest tests[] = {
        alone(larger_structs),
        alone(smaller_structs),
        alone(sizes_that_no_struct_has),
        alone(counts_of_any_size),
        alone(stats_of_any_size),
        alone(the_log_hears_what_was_refused),
        alone(the_log_ends_with_the_session),
        alone(log_of_the_environment),
        alone(each_launcher),
        alone(the_most_specific_launcher_wins),
        alone(odd_launchers),
        alone(rank_by_option),
        alone(backends_say_why_they_are_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
