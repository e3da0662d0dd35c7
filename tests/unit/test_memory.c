/* A run's memory: what grows without end and what only moves, what a look adds, limits, verdicts.
 */
#include "folder.h"
#include "valgrind.h"
#include "verdicts.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "measure/memory/course.h"
#include "measure/memory/limit.h"
#include "measure/verdict/verdict.h"

#define KIB 1024.0
#define MIB (1024 * KIB)

/* ---- growth: forged ---- */

static uint64_t seed;

static double uniform(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(seed >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform() + 1e-300)) * cos(6.283185307179586 * uniform());
}

/* A steady loop with what programs do: a warm-up that fills caches, noise that depends on what was
 * before, batches of other sizes, a checkpoint now and then, a cache that is enlarged once. */
typedef struct loop {
    double leak;             /* bytes a step */
    double noise, like;      /* standard deviation, and the part of it that stays */
    double spike;            /* of one step in 20 */
    double wave;             /* every 100 steps */
    double jump, jump_at;    /* once */
    double warm, warm_steps; /* grows towards it */
} loop;

static pki_growth watch(const loop *l, uint64_t steps, uint64_t every, double least)
{
    pki_growth_series s = {0};
    double rest = 0;
    for (uint64_t i = 0; i < steps; i++) {
        double t = (double)i, bytes = 200 * MIB + l->leak * t;
        rest = l->like * rest + l->noise * sqrt(1 - l->like * l->like) * normal();
        bytes += rest + (uniform() < 0.05 ? l->spike * uniform() : 0);
        bytes += l->wave * sin(t * 0.06283185307179586);
        bytes += t > l->jump_at * (double)steps ? l->jump : 0;
        bytes += l->warm * (1 - exp(-t / (l->warm_steps + 1)));
        if (i % every == 0)
            pki_growth_see(&s, i, (uint64_t)bytes);
    }
    pki_growth g = pki_growth_of(&s, least);
    pki_growth_finish(&s);
    return g;
}

static void one_kib_a_step_is_found_within_2000_steps(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        seed = (uint64_t)i;
        loop l = {.leak = KIB,
                  .noise = 32 * KIB * uniform(),
                  .like = 0.9 * uniform(),
                  .spike = 16 * MIB,
                  .wave = 32 * KIB,
                  .warm = 20 * MIB,
                  .warm_steps = 50};
        pki_growth g = watch(&l, 2000, 1 + (uint64_t)i % 20, PKI_MEMORY_GROWTH_LEAST);
        assert_true(g.per_step > 0.8 * KIB && g.per_step < 1.2 * KIB);
        assert_true(g.steps >= 1400 && g.steps <= 1600);
    }
}

/* Tools that only look for mistakes see as many in 100. */
static void none_is_found_in_1000_noisy_steady_loops(void **state)
{
    int found = 0, loops = is_slow() ? 100 : 1000;
    (void)state;
    for (int i = 0; i < loops; i++) {
        seed = 1000003u * (uint64_t)i + 17;
        loop l = {.noise = 4 * MIB * uniform(),
                  .like = i % 4 ? 0.99 * uniform() : 0.999,
                  .spike = 64 * MIB * uniform(),
                  .wave = i % 3 ? 0 : 2 * MIB * uniform(),
                  .jump = i % 2 ? 32 * MIB * uniform() : 0,
                  .jump_at = uniform(),
                  .warm = 50 * MIB * uniform(),
                  .warm_steps = 100 * uniform()};
        found += watch(&l, 2000, 1 + (uint64_t)i % 20, PKI_MEMORY_GROWTH_LEAST).per_step > 0;
    }
    print_message("# %d of %d\n", found, loops);
    assert_int_equal(found, 0);
}

static void a_staircase_grows_and_a_short_run_is_not_judged(void **state)
{
    pki_growth_series s = {0};
    (void)state;
    for (uint64_t i = 0; i < 3000; i++) /* as the kernel gives pages: 1 MiB at a time */
        pki_growth_see(&s, i, 100000000 + i / 100 * 1048576);
    pki_growth g = pki_growth_of(&s, MIB);
    assert_true(fabs(g.per_step - 10485.76) < 300);
    assert_true(pki_growth_of(&s, 100 * MIB).per_step <= 0); /* too little to matter */
    pki_growth_finish(&s);
    loop l = {.leak = MIB};
    assert_true(watch(&l, 20, 1, 0).per_step <= 0);
    pki_growth_finish(&s);
    assert_int_equal(pki_growth_of(&s, 0).steps, 0);
}

/* ---- looks ---- */

static void steps_share_what_was_found_since_the_last_look(void **state)
{
    pki_memory_course c = {0};
    pki_memory_summary m = {0};
    (void)state;
    for (uint64_t i = 0; i <= 10; i++)
        pki_memory_course_see(&c, &(pki_memory_look){.steps = 4 * i,
                                                     .resident = 1000 + i,
                                                     .private_bytes = 500 + i,
                                                     .minor = 100 + 40 * i,
                                                     .major = i,
                                                     .ns = 1000000 * i});
    /* nothing new: it belongs to the step that runs */
    pki_memory_course_see(&c, &(pki_memory_look){40, 2000, 900, 600, 10, 10000100});
    pki_memory_course_see(&c, &(pki_memory_look){41, 2001, 700, 600, 10, 12000000});
    assert_true(pki_memory_course_fill(&c, &m));
    assert_int_equal(m.looks, 13);
    assert_int_equal(m.step_minor.count, 41);
    assert_true(m.step_minor.p50 > 9.9 && m.step_minor.p50 < 10.1);
    assert_true(m.step_minor.max >= 99);
    assert_int_equal(m.minor_faults, 500);
    assert_int_equal(m.major_faults, 10);
    assert_int_equal(m.most_private, 900);
    assert_int_equal(m.resident, 2001);
    assert_true(m.steady_steps >= 20 && m.steady_steps <= 32); /* the later half, or more */
    assert_true(m.steady_minor > 9 && m.steady_minor < 16);
    /* with steps or without; 10,000,000 and 10,000,100 ns are one part */
    assert_int_equal(m.series_count, 12);
    assert_true(m.series[0].start == 0 && m.series[0].mean == 1000 && m.series[0].samples == 1);
    assert_true(m.series[10].start == 10000000 && m.series[10].samples == 2);
    assert_true(m.series[10].min == 1010 && m.series[10].max == 2000 && m.series[11].max == 2001);
    free(m.series);
    pki_memory_course_see_region(&c, 700, 5);
    pki_memory_course_see_region(&c, PKI_MEMORY_REGIONS, 5);
    assert_int_equal(pki_memory_course_region(&c, 701).steps, 0);
    pki_memory_course_finish(&c);
}

/* ---- limits ---- */

static char root[PATH_MAX];

static void put(const char *name, const char *text)
{
    char path[2 * PATH_MAX];
    (void)mkdir(root, 0755);
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        (void)mkdir(path, 0755);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void the_narrowest_group_counts(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "%s/two", the_folder);
    put("proc/self/cgroup", "0::/job/step\n");
    put("sys/fs/cgroup/job/step/memory.max", "max\n");
    put("sys/fs/cgroup/job/memory.max", "1000000\n");
    put("sys/fs/cgroup/job/memory.stat", "anon 600000\nfile 390000\nshmem 50000\n");
    pki_memory_limit l = pki_memory_limit_find(root, 1000);
    assert_string_equal(l.of, "cgroup");
    assert_int_equal(l.limit, 1000000);
    assert_int_equal(l.used, 650000); /* pages of files are the kernel's to take back */
    assert_int_equal(pki_memory_limit_find(root, 900000).used, 900000);
    put("sys/fs/cgroup/job/step/memory.max", "800000\n");
    assert_int_equal(pki_memory_limit_find(root, 1000).limit, 800000);
    snprintf(root, sizeof root, "%s/one", the_folder);
    put("proc/self/cgroup", "11:cpu,cpuacct:/x\n9:memory:/slurm/7\n0::/other\n");
    put("sys/fs/cgroup/memory/slurm/7/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "4096000\n");
    put("sys/fs/cgroup/memory/slurm/memory.stat", "rss 1\ntotal_rss 2048000\ntotal_shmem 1000\n");
    l = pki_memory_limit_find(root, 1000);
    assert_int_equal(l.limit, 4096000);
    assert_int_equal(l.used, 2049000);
    snprintf(root, sizeof root, "%s/contained", the_folder);
    put("proc/self/cgroup", "0::/\n"); /* of a container: its own group is the root */
    put("sys/fs/cgroup/memory.max", "500000\n");
    assert_int_equal(pki_memory_limit_find(root, 1000).limit, 500000);
    snprintf(root, sizeof root, "%s/none", the_folder);
    struct rlimit as;
    if (getrlimit(RLIMIT_AS, &as) == 0 && as.rlim_cur == RLIM_INFINITY)
        assert_null(pki_memory_limit_find(root, 1000).of);
}

static void lines_have_their_units(void **state)
{
    char path[2 * PATH_MAX];
    uint64_t value = 0;
    (void)state;
    snprintf(root, sizeof root, "%s/lines", the_folder);
    put("status", "VmPeakX:\t 1 kB\nVmPeak:\t  2048 kB\nVmHWM:\t 7\nanon_thp 9\nanon 11\n");
    snprintf(path, sizeof path, "%s/status", root);
    assert_true(pki_memory_field(path, "VmPeak", &value) && value == 2048 * 1024);
    assert_true(pki_memory_field(path, "VmHWM", &value) && value == 7);
    assert_true(pki_memory_field(path, "anon", &value) && value == 11);
    assert_false(pki_memory_field(path, "ano", &value));
}

/* ---- verdicts ---- */

static void make(pki_summary *s)
{
    pki_summary_init(s);
    s->steps.count = 1000;
    s->steps.steady = (pki_dist){.count = 1000, .sum = 1e9, .p50 = 1e6, .p99 = 1e6, .mean = 1e6};
    s->memory = (pki_memory_summary){.looks = 100,
                                     .limit_of = strdup("cgroup"),
                                     .allocator = strdup(""),
                                     .uncounted = strdup("")};
    s->memory.regions = calloc(2, sizeof *s->memory.regions);
    s->memory.regions[0].name = strdup("forward");
    s->memory.regions[1].name = strdup("");
    s->memory.region_count = 2;
}

static void verdicts_say_what_and_where(void **state)
{
    pki_summary s;
    (void)state;
    make(&s);
    assert_true(pki_verdicts_fill(&s));
    assert_null(find_verdict(&s, "leak"));
    assert_null(find_verdict(&s, "near-memory-limit"));
    assert_null(find_verdict(&s, "allocates"));
    assert_null(find_verdict(&s, "page-faults"));
    s.memory.growth = (pki_growth){.steps = 900, .per_step = 4096, .z = 9};
    s.memory.limit = 1000000000;
    s.memory.used = 950000000;
    s.memory.steady_minor = 200; /* 100 us of 1 ms */
    s.memory.regions[0].steady = 300;
    s.memory.regions[1].steady = 200; /* 25 us */
    assert_true(pki_verdicts_fill(&s));
    assert_non_null(strstr(find_verdict(&s, "leak")->text, "process"));
    assert_non_null(strstr(find_verdict(&s, "leak")->text, "libpk_alloc"));
    assert_non_null(strstr(find_verdict(&s, "near-memory-limit")->text, "95.0 %"));
    assert_non_null(strstr(find_verdict(&s, "page-faults")->text, "10.0 %"));
    assert_int_equal(find_verdict(&s, "page-faults")->severity, PKI_WARN);
    assert_non_null(strstr(find_verdict(&s, "allocates")->text, "\"forward\""));
    assert_int_equal(find_verdict(&s, "allocates")->severity, PKI_NOTE);
    s.memory.regions[0].growth = (pki_growth){.steps = 900, .per_step = 1024, .z = 12};
    assert_true(pki_verdicts_fill(&s));
    assert_non_null(strstr(find_verdict(&s, "leak")->text, "\"forward\""));
    s.memory.regions[1].growth = (pki_growth){.steps = 900, .per_step = 2048, .z = 5};
    assert_true(pki_verdicts_fill(&s));
    assert_non_null(strstr(find_verdict(&s, "leak")->text, "outside of all regions"));
    s.memory.used = 900000000; /* it has to be exceeded */
    assert_true(pki_verdicts_fill(&s));
    assert_null(find_verdict(&s, "near-memory-limit"));
    pki_summary_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_kib_a_step_is_found_within_2000_steps),
        cmocka_unit_test(none_is_found_in_1000_noisy_steady_loops),
        cmocka_unit_test(a_staircase_grows_and_a_short_run_is_not_judged),
        cmocka_unit_test(steps_share_what_was_found_since_the_last_look),
        cmocka_unit_test_setup_teardown(the_narrowest_group_counts, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(lines_have_their_units, enter_folder, leave_folder),
        cmocka_unit_test(verdicts_say_what_and_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
