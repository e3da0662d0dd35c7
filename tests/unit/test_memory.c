/* Memory: a run's, at the ends of steps, and of devices. */
#include "folder.h"
#include "valgrind.h"
#include "verdicts.h"

#include <pk/pk.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "measure/memory/course.h"
#include "measure/memory/gpu.h"
#include "measure/verdict/verdict.h"
#include "measure/window/merge.h"
#include "out/report/report.h"
#include "session/costs/memory.h"
#include "session/windows/metrics.h"

/* ---- a run's memory ---- */

/* What grows without end and what only moves, what a look adds, limits, verdicts. */

#define KIB 1024.0
#define MIB (1024 * KIB)

/* -- growth: forged -- */

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

/* On a busy machine the looks come after 300 steps or after 3,000. */
static void a_line_is_found_by_looks_that_come_unevenly(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        pki_growth_series s = {0};
        seed = (uint64_t)i;
        for (uint64_t step = 0, k = 0; k < 56;
             step += 300 + (uint64_t)(2700 * pow(uniform(), 2)), k++)
            pki_growth_see(&s, step, (uint64_t)(10 * MIB + KIB * (double)step) / 4096 * 4096);
        pki_growth g = pki_growth_of(&s, PKI_MEMORY_GROWTH_LEAST);
        assert_true(g.per_step > 0.98 * KIB && g.per_step < 1.02 * KIB);
        pki_growth_finish(&s);
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

/* -- looks -- */

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
    assert_int_equal(pki_memory_course_region(&c, 701, 0).steps, 0);
    pki_memory_course_finish(&c);
}

/* -- limits -- */

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

/* -- verdicts -- */

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

static const struct CMUnitTest memory_tests[] = {
    cmocka_unit_test(one_kib_a_step_is_found_within_2000_steps),
    cmocka_unit_test(a_line_is_found_by_looks_that_come_unevenly),
    cmocka_unit_test(none_is_found_in_1000_noisy_steady_loops),
    cmocka_unit_test(a_staircase_grows_and_a_short_run_is_not_judged),
    cmocka_unit_test(steps_share_what_was_found_since_the_last_look),
    cmocka_unit_test_setup_teardown(the_narrowest_group_counts, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(lines_have_their_units, enter_folder, leave_folder),
    cmocka_unit_test(verdicts_say_what_and_where),
};

/* ---- memory at the ends of steps ---- */

/* A counter in the trace where costs=memory asks for it, nothing where it does not. */

#define STEPS 12
#define BLOCK (4u << 20)
#define SAMPLE "\"name\":\"memory.resident\",\"pid\""

/* Longer than what is between two readings, however slow the machine is. */
static void work(void)
{
    uint64_t until = pki_monotonic_ns() + 2 * (uint64_t)PKI_MEMORY_STEP_LEAST;
    while (pki_monotonic_ns() < until)
        ;
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static char *trace_of(const char *costs, bool short_steps)
{
    size_t size;
    assert_int_equal(
        pk_start(pk_options(.costs = costs, .backends = "none", .trace_path = "run.json")), PK_OK);
    errno = 99;
    for (int i = 0; i < STEPS; i++) {
        if (!short_steps)
            work();
        pk_step(1);
    }
    assert_int_equal(errno, 99);
    assert_int_equal(pk_stop(), PK_OK);
    return read_file("run.json", &size);
}

static void each_long_step_has_a_sample(void **state)
{
    (void)state;
    char *trace = trace_of("memory", false);
    assert_true(count(trace, SAMPLE) >= STEPS); /* and looks while none ended */
    free(trace);
}

static void none_without(void **state)
{
    (void)state;
    char *trace = trace_of("io", false);
    assert_int_equal(count(trace, SAMPLE), 0);
    free(trace);
    trace = trace_of(NULL, false);
    assert_int_equal(count(trace, SAMPLE), 0);
    free(trace);
}

/* The sample that a step's end left, with more memory in use than at the one before. */
static double last_value(const char *trace)
{
    double last = 0;
    for (const char *at = trace; (at = strstr(at, SAMPLE)); at++) {
        const char *value = strstr(at, "\"bytes\":");
        assert_non_null(value);
        last = strtod(value + 8, NULL);
    }
    return last;
}

static void values_are_the_kernels(void **state)
{
    size_t size;
    (void)state;
    assert_int_equal(
        pk_start(pk_options(.costs = "memory", .backends = "none", .trace_path = "run.json")),
        PK_OK);
    char *volatile block = malloc(BLOCK);
    assert_non_null(block);
    memset(block, 1, BLOCK);
    work();
    pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    char *trace = read_file("run.json", &size);
    assert_true(last_value(trace) > BLOCK);
    free(trace);
    free(block);
}

/* What it takes is in perfkit's own account, and a session of its own begins at 0. */
static void it_is_in_the_account(void **state)
{
    (void)state;
    free(trace_of("memory", false));
    assert_true(pki_memory_steps_spent() > 0);
    free(trace_of(NULL, true));
    assert_int_equal(pki_memory_steps_spent(), 0);
}

/* In metrics it is a family of its own, and takes no counter's place among the first 16. */
static void metrics_keep_the_programs_counters(void **state)
{
    static char names[16][24];
    static pk_counter counters[16];
    size_t size;
    (void)state;
    assert_int_equal(
        pk_start(pk_options(.costs = "memory", .backends = "none", .metrics_path = "run.prom")),
        PK_OK);
    work();
    pk_step(1); /* memory.resident is the first */
    for (int i = 0; i < 16; i++) {
        snprintf(names[i], sizeof names[i], "of the program %d", i);
        counters[i] = (pk_counter)PK_COUNTER(names[i], "");
        pk_counter_set(&counters[i], i);
    }
    assert_int_equal(pk_stop(), PK_OK);
    char *text = read_file("run.prom", &size);
    assert_int_equal(count(text, "name=\"of the program "), 16);
    assert_int_equal(count(text, "name=\"memory.resident\""), 0);
    assert_int_equal(count(text, "\npk_process_resident_memory_bytes{"), 1);
    free(text);
}

static void counters_with_a_family_of_their_own(void **state)
{
    static pki_metrics_costs none, some = {.memory.looks = 1,
                                           .allocated_known = true,
                                           .place_count = 2,
                                           .places = {{.name = "gpu1"}, {.name = "host"}}};
    static const char *const have[] = {"memory.resident", "memory.allocated", "memory.pinned",
                                       "gpu1.allocated", "gpu1.pool_reserved"};
    static const char *const lack[] = {"gpu10.allocated", "gpu1.memory", "gpu0.allocated",
                                       "host.memory",     "gpu1",        "straggler"};
    (void)state;
    for (size_t i = 0; i < PKI_COUNT_OF(have); i++) {
        assert_true(pki_metrics_costs_have(&some, have[i]));
        assert_false(pki_metrics_costs_have(&none, have[i]));
    }
    for (size_t i = 0; i < PKI_COUNT_OF(lack); i++)
        assert_false(pki_metrics_costs_have(&some, lack[i]));
}

static const struct CMUnitTest memory_steps_tests[] = {
    cmocka_unit_test_setup_teardown(each_long_step_has_a_sample, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(none_without, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(values_are_the_kernels, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(it_is_in_the_account, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(metrics_keep_the_programs_counters, enter_folder, leave_folder),
    cmocka_unit_test(counters_with_a_family_of_their_own),
};

/* ---- the account of what is allocated on devices ---- */

/* Against a list that is looked through, with operations that come late, and how it looks in
 * reports. */

#define LENGTH_OF(a) (sizeof(a) / sizeof *(a))

static uint64_t gpu_memory_seed = 1;

static uint64_t chance(uint64_t below)
{
    gpu_memory_seed =
        gpu_memory_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (gpu_memory_seed >> 33) % below;
}

static const char *name_of(uint32_t id)
{
    static const char *const names[] = {"", "a", "b", "c", "d", "e", "f", "g", "h", "i"};
    return id < LENGTH_OF(names) ? names[id] : NULL;
}

static void take(pki_gpu_account *a, uint64_t ns, uint64_t at, uint64_t bytes, uint32_t region)
{
    pki_gpu_account_do(
        a, &(pki_gpu_operation){
               .ns = ns, .address = at, .bytes = bytes, .region = region, .known_region = true});
}

static void give(pki_gpu_account *a, uint64_t ns, uint64_t at)
{
    pki_gpu_account_do(a, &(pki_gpu_operation){.frees = true, .ns = ns, .address = at, .bytes = 3});
}

static pki_summary summary_of(const pki_gpu_account *a, uint64_t steady)
{
    pki_summary s;
    pki_summary_init(&s);
    s.gpu_memory.asked = 1;
    assert_true(pki_gpu_account_fill(a, name_of, steady, &s.gpu_memory));
    return s;
}

static const pki_memory_region *row(const pki_summary *s, const char *name)
{
    for (size_t i = 0; i < s->gpu_memory.places[0].region_count; i++)
        if (strcmp(s->gpu_memory.places[0].regions[i].name, name) == 0)
            return &s->gpu_memory.places[0].regions[i];
    return NULL;
}

/* -- exact -- */

#define BLOCKS 3000

typedef struct truth {
    struct {
        uint64_t bytes;
        uint32_t region;
    } blocks[BLOCKS]; /* bytes 0: free */
    uint64_t live[10], peaks[10], at_peak[10], all, peak;
} truth;

static void change(truth *t, pki_gpu_account *a, uint64_t ns)
{
    size_t i = (size_t)chance(BLOCKS);
    uint64_t at = 512 * (i + 1);
    uint32_t r = t->blocks[i].region;
    if (t->blocks[i].bytes) {
        give(a, ns, at);
        t->live[r] -= t->blocks[i].bytes;
        t->all -= t->blocks[i].bytes;
        t->blocks[i].bytes = 0;
        return;
    }
    r = t->blocks[i].region = (uint32_t)chance(10);
    t->blocks[i].bytes = 1 + chance(1000000);
    take(a, ns, at, t->blocks[i].bytes, r);
    t->live[r] += t->blocks[i].bytes;
    t->peaks[r] = t->live[r] > t->peaks[r] ? t->live[r] : t->peaks[r];
    t->all += t->blocks[i].bytes;
    if (t->all >= t->peak) {
        t->peak = t->all;
        memcpy(t->at_peak, t->live, sizeof t->live);
    }
}

static void against_a_list(void **state)
{
    truth *t = calloc(1, sizeof *t);
    pki_gpu_account *a = calloc(1, sizeof *a);
    (void)state;
    assert_true(t && a);
    for (uint64_t ns = 1; ns <= 100000; ns++)
        change(t, a, ns);
    pki_summary s = summary_of(a, 0);
    assert_int_equal(s.gpu_memory.place_count, 1);
    assert_true(s.gpu_memory.places[0].live == t->all);
    assert_true(s.gpu_memory.places[0].peak == t->peak);
    for (uint32_t r = 0; r < 10; r++) {
        const pki_memory_region *found = row(&s, name_of(r));
        assert_true(found && found->live == t->live[r] && found->peak == t->peaks[r] &&
                    found->at_peak == t->at_peak[r]);
    }
    assert_true(!s.gpu_memory.unknown_frees && !s.gpu_memory.missed_frees && !s.gpu_memory.lost);
    pki_summary_finish(&s);
    pki_gpu_account_finish(a);
    free(a);
    free(t);
}

/* -- late -- */

/* Three lives of one address, told in each order there is: the same in the end. */
static void in_any_order(void **state)
{
    (void)state;
    for (unsigned order = 0; order < 720; order++) {
        pki_gpu_account *a = calloc(1, sizeof *a);
        unsigned rest = order, left[] = {0, 1, 2, 3, 4, 5};
        assert_non_null(a);
        for (unsigned n = 6; n > 0; n--) {
            unsigned i = rest % n, which = left[i];
            rest /= n;
            left[i] = left[n - 1];
            if (which == 5)
                take(a, 60, 0x2000, 1000, 2); /* lives */
            else if (which % 2)
                give(a, 10 * (which + 1), 0x1000);
            else
                take(a, 10 * (which + 1), 0x1000, 100 + which, 1);
        }
        pki_summary s = summary_of(a, 0);
        const pki_gpu_memory_place *p = &s.gpu_memory.places[0];
        const pki_memory_region *r = row(&s, "a");
        assert_true(row(&s, "b")->live == 1000 && r->allocations == 3 && r->bytes == 306);
        assert_true(r->live + r->freed == r->bytes && p->live == 1000 + r->live);
        assert_true(r->live == 104 && r->freed == 202);
        pki_summary_finish(&s);
        pki_gpu_account_finish(a);
        free(a);
    }
}

/* -- pools -- */

static void many_pools(void **state)
{
    pki_gpu_account *a = calloc(1, sizeof *a);
    (void)state;
    assert_non_null(a);
    for (uint64_t i = 1; i <= 100; i++)
        pki_gpu_account_pool(a, 3, i, 10, 20, false); /* no more in use than there is */
    assert_true(a->places[3].reserved == 640 && a->places[3].used == 640);
    for (uint64_t i = 1; i <= 100; i++)
        pki_gpu_account_pool(a, 3, i, 0, 0, true);
    assert_true(a->places[3].reserved == 0 && a->pools_beyond == 36);
    pki_gpu_account_pool(a, 99, 1, 10, 5, false); /* the last place has those beyond */
    assert_true(a->places[PKI_GPU_DEVICES - 1].reserved == 10);
    pki_summary s = summary_of(a, 0);
    assert_true(s.gpu_memory.place_count == 2 && s.gpu_memory.places[0].unused == 0 &&
                s.gpu_memory.places[1].unused == 0.5);
    pki_summary_finish(&s);
    pki_gpu_account_finish(a);
    free(a);
}

/* -- verdicts -- */

static const pki_verdict *verdict(pki_summary *s, const char *name)
{
    assert_true(pki_verdicts_fill(s));
    for (size_t i = 0; i < s->verdict_count; i++)
        if (strcmp(s->verdicts[i].name, name) == 0)
            return &s->verdicts[i];
    return NULL;
}

static void near_the_limit(void **state)
{
    pki_gpu_account *a = calloc(1, sizeof *a);
    (void)state;
    assert_non_null(a);
    take(a, 1, 0x1000, 80, 1);
    pki_gpu_account_pool(a, 0, 7, 15, 5, false);
    pki_summary s = summary_of(a, 0);
    pki_gpu_memory_place *p = &s.gpu_memory.places[0];
    assert_null(verdict(&s, "gpu-near-memory-limit")); /* of how much is not known */
    p->total = 100;
    const pki_verdict *v = verdict(&s, "gpu-near-memory-limit");
    assert_true(v && v->value == 0.95 && strstr(v->text, "in \"a\"") &&
                strstr(v->text, "kept 10 B"));
    p->total = 106;
    assert_null(verdict(&s, "gpu-near-memory-limit"));
    p->in_use = 100; /* with other processes */
    v = verdict(&s, "gpu-near-memory-limit");
    assert_true(v && strstr(v->text, "by all processes"));
    pki_summary_finish(&s);
    pki_gpu_account_finish(a);
    free(a);
}

/* What a loop leaves allocated each step; it takes and gives some anyway. */
static pki_summary gpu_memory_loop(uint64_t steps, uint64_t leak, bool from_pool)
{
    pki_gpu_account *a = calloc(1, sizeof *a);
    assert_non_null(a);
    for (uint64_t i = 0; i < steps; i++) {
        pki_gpu_operation o = {.address = 1,
                               .bytes = 1000000 + chance(1000000),
                               .region = 1,
                               .ns = 4 * i + 1,
                               .known_region = true,
                               .kind = from_pool ? PKI_GPU_POOL : PKI_GPU_DEVICE};
        pki_gpu_account_do(a, &o);
        if (leak)
            take(a, 4 * i + 2, 1000 + i, leak, 2);
        if (i % 3 == 0)
            pki_gpu_account_see(a, i + 1, i == steps / 2 - steps / 2 % 3 || i == 0, 4 * i + 2);
        o.frees = true;
        o.ns = 4 * i + 3;
        pki_gpu_account_do(a, &o);
    }
    pki_summary s = summary_of(a, steps - 1);
    pki_gpu_account_finish(a);
    free(a);
    return s;
}

static void leaks_and_steady_loops(void **state)
{
    (void)state;
    pki_summary s = gpu_memory_loop(2000, 1024, false);
    const pki_verdict *v = verdict(&s, "gpu-leak");
    assert_true(v && strstr(v->text, "in \"b\"") && strstr(v->text, "1.02 KB a step"));
    v = verdict(&s, "gpu-allocates");
    assert_true(v && v->value > 1);
    pki_summary_finish(&s);
    for (int i = 0; i < 20; i++) {
        s = gpu_memory_loop(500, 0, true);
        assert_null(verdict(&s, "gpu-leak"));
        assert_null(verdict(&s, "gpu-allocates"));
        pki_summary_finish(&s);
    }
}

/* -- reports -- */

static char *text_of(const pki_summary *s)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_int_equal(pki_report_text(s, file), 0);
    fclose(file);
    return text;
}

/* What was made before the steps that count, and is told behind the look that begins them. */
static void operations_that_are_told_late(void **state)
{
    (void)state;
    pki_gpu_account *a = calloc(1, sizeof *a);
    assert_non_null(a);
    pki_gpu_account_see(a, 1, true, 100);
    pki_gpu_account_see(a, 50, true, 1000);
    for (uint64_t i = 0; i < 1000; i++)
        take(a, 50, 1000 + i, 10, 1);
    pki_summary s = summary_of(a, 100);
    assert_true(row(&s, "a")->steady <= 0);
    pki_summary_finish(&s);
    for (uint64_t i = 0; i < 200; i++)
        take(a, 500 + i, 5000 + i, 10, 1);
    s = summary_of(a, 100);
    assert_true(row(&s, "a")->steady > 1.99 && row(&s, "a")->steady < 2.01);
    pki_summary_finish(&s);
    pki_gpu_account_finish(a);
    free(a);
}

static void says(const pki_summary *s, const char *what)
{
    char *text = text_of(s);
    if (!strstr(text, what))
        fail_msg("no \"%s\" in\n%s", what, text);
    free(text);
}

static void in_words(void **state)
{
    pki_gpu_account *a = calloc(1, sizeof *a);
    (void)state;
    assert_non_null(a);
    take(a, 1000, 0x1000, 80000000, 1);
    pki_gpu_account_pool(a, 0, 7, 16000000, 4000000, false);
    give(a, 2000, 0x5000);
    pki_summary s = summary_of(a, 0);
    s.gpu_memory.places[0].total = 1000000000;
    says(&s, "DEVICE MEMORY");
    says(&s, "gpu0: 80.0 MB live at the end, 80.0 MB at most");
    says(&s, "96.0 MB of 1.00 GB taken");
    says(&s, "75.0 % of it unused then");
    says(&s, "freed, and allocated before the recording: 3 B in 1 calls");
    s.gpu_memory.why_not = strdup("cupti: there is none");
    says(&s, "not recorded: cupti: there is none");
    pki_summary_finish(&s);
    pki_gpu_account_finish(a);
    free(a);
}

static const struct CMUnitTest gpu_memory_tests[] = {
    cmocka_unit_test(against_a_list),
    cmocka_unit_test(in_any_order),
    cmocka_unit_test(many_pools),
    cmocka_unit_test(near_the_limit),
    cmocka_unit_test(leaks_and_steady_loops),
    cmocka_unit_test(operations_that_are_told_late),
    cmocka_unit_test(in_words),
};

/* ---- memory of devices by pools, and in parts of a run ---- */

/* What windows have adds up to the run's. */

static const char *gpu_memory_parts_name_of(uint32_t id)
{
    return id == 1 ? "a" : NULL;
}

static void gpu_memory_parts_take(pki_gpu_account *a, uint64_t ns, uint64_t at, uint64_t bytes)
{
    pki_gpu_account_do(
        a, &(pki_gpu_operation){
               .ns = ns, .address = at, .bytes = bytes, .region = 1, .known_region = true});
}

static void gpu_memory_parts_give(pki_gpu_account *a, uint64_t ns, uint64_t at)
{
    pki_gpu_account_do(a, &(pki_gpu_operation){.frees = true, .ns = ns, .address = at});
}

static pki_gpu_account *new_account(void)
{
    pki_gpu_account *a = calloc(1, sizeof *a);
    assert_non_null(a);
    return a;
}

static void free_account(pki_gpu_account *a)
{
    pki_gpu_account_finish(a);
    free(a);
}

static pki_summary gpu_memory_parts_summary_of(const pki_gpu_account *a)
{
    pki_summary s;
    pki_summary_init(&s);
    s.gpu_memory.asked = 1;
    assert_true(pki_gpu_account_fill(a, gpu_memory_parts_name_of, 0, &s.gpu_memory));
    return s;
}

/* -- pools -- */

static void each_pool_has_its_own(void **state)
{
    (void)state;
    pki_gpu_account *a = new_account();
    pki_gpu_account_pool(a, 0, 0x10, 100, 0, false);
    pki_gpu_account_pool(a, 0, 0x10, 100, 60, false); /* grows before it is used */
    pki_gpu_account_pool(a, 0, 0x20, 400, 400, false);
    pki_gpu_account_pool(a, 0, 0x10, 80, 80, false);
    pki_gpu_account_pool(a, 0, 0x20, 0, 0, true);
    pki_gpu_account_pool(a, 0, 0x20, 50, 25, false); /* another one, at the same address */
    pki_gpu_account_pool(a, 1, 0x10, 7, 7, false);
    pki_gpu_account_pool(a, 1, 0x99, 0, 0, true); /* that nobody has told of */
    pki_summary s = gpu_memory_parts_summary_of(a);
    assert_int_equal(s.gpu_memory.place_count, 2);
    const pki_gpu_memory_place *p = s.gpu_memory.places;
    assert_int_equal(p[0].pool_count, 3);
    assert_int_equal(p[1].pool_count, 1);
    const pki_gpu_pool_row *pool = p[0].pools;
    assert_true(pool[0].pool == 0 && pool[0].most_reserved == 100 && pool[0].used_then == 60);
    assert_true(pool[0].unused == 0.4 && pool[0].reserved == 80 && !pool[0].gone);
    assert_true(pool[1].gone && pool[1].most_reserved == 400 && pool[1].reserved == 0);
    assert_true(pool[2].pool == 2 && pool[2].unused == 0.5 && pool[2].used == 25);
    assert_true(p[0].pool_reserved == 130 && p[0].pool_used == 105 && p[0].most_reserved == 500);
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    assert_int_equal(pki_report_text(&s, file), 0);
    fclose(file);
    assert_non_null(strstr(text, "\n  1, given back "));
    assert_non_null(strstr(text, "40.0 %"));
    free(text);
    pki_summary_finish(&s);
    free_account(a);
}

/* Rows of pools that are gone make room for others; those that live stay. */
static void rows_of_pools_come_again(void **state)
{
    (void)state;
    pki_gpu_account *a = new_account();
    pki_gpu_account_pool(a, 0, 1, 10, 10, false);
    for (uint64_t i = 2; i < 1000; i++) {
        pki_gpu_account_pool(a, 0, i, 5, 5, false);
        pki_gpu_account_pool(a, 0, i, 0, 0, true);
    }
    pki_summary s = gpu_memory_parts_summary_of(a);
    const pki_gpu_memory_place *p = &s.gpu_memory.places[0];
    assert_int_equal(p->pool_count, PKI_GPU_POOLS);
    assert_true(p->pools[0].pool == 0 && p->pools[PKI_GPU_POOLS - 1].pool == 998);
    assert_true(p->pool_reserved == 10 && p->most_reserved == 15 && !a->pools_beyond);
    pki_summary_finish(&s);
    free_account(a);
}

/* -- parts -- */

typedef struct parts {
    pki_window_costs before, sum;
    uint64_t peaks[3];
    size_t count;
} parts;

/* As session/windows/windows.c does. */
static void cut(parts *p, pki_gpu_account *a)
{
    pki_window_costs now = {.gpu_memory = {.asked = 1, .why_not = strdup("")}}, one = {0};
    assert_true(pki_gpu_account_sums(a, &now.gpu_memory));
    assert_true(pki_window_costs_more(&now, &p->before, &one));
    p->peaks[p->count++] = one.gpu_memory.place_count ? one.gpu_memory.places[0].peak : 0;
    assert_true(pki_window_costs_add(&p->sum, &one));
    pki_window_costs_finish(&one);
    pki_window_costs_finish(&p->before);
    p->before = now;
    pki_gpu_account_cut(a);
}

static void parts_add_up(void **state)
{
    (void)state;
    pki_gpu_account *a = new_account();
    parts p = {.count = 0};
    gpu_memory_parts_take(a, 1, 0x100, 1000);
    gpu_memory_parts_take(a, 2, 0x200, 5000);
    gpu_memory_parts_give(a, 3, 0x200);
    cut(&p, a);
    gpu_memory_parts_take(a, 4, 0x300, 200); /* the peak of this part is its own */
    pki_gpu_account_pool(a, 0, 0x10, 64, 32, false);
    pki_gpu_account_pool(a, 2, 0x10, 9, 9, false); /* a device that only comes now */
    cut(&p, a);
    gpu_memory_parts_give(a, 5, 0x100);
    cut(&p, a);
    assert_true(p.peaks[0] == 6000 && p.peaks[1] == 1200 && p.peaks[2] == 1200);
    pki_summary whole = gpu_memory_parts_summary_of(a), sum;
    pki_summary_init(&sum);
    assert_true(pki_window_costs_fill(&p.sum, &sum));
    const pki_gpu_memory_place *x = whole.gpu_memory.places, *y = sum.gpu_memory.places;
    assert_int_equal(sum.gpu_memory.place_count, whole.gpu_memory.place_count);
    for (size_t i = 0; i < whole.gpu_memory.place_count; i++, x++, y++) {
        assert_string_equal(x->place, y->place);
        assert_true(x->allocations == y->allocations && x->bytes == y->bytes);
        assert_true(x->frees == y->frees && x->freed == y->freed && x->live == y->live);
        assert_true(x->peak == y->peak && x->held == y->held && x->most_held == y->most_held);
        assert_true(x->pool_reserved == y->pool_reserved && x->pool_used == y->pool_used &&
                    x->most_reserved == y->most_reserved && x->used_then == y->used_then);
        assert_true(x->peak_ns == y->peak_ns && x->unused >= y->unused && y->unused >= x->unused);
    }
    assert_true(whole.gpu_memory.operations == sum.gpu_memory.operations);
    pki_window_costs_finish(&p.before);
    pki_window_costs_finish(&p.sum);
    pki_summary_finish(&whole);
    pki_summary_finish(&sum);
    free_account(a);
}

static const struct CMUnitTest gpu_memory_parts_tests[] = {
    cmocka_unit_test(each_pool_has_its_own),
    cmocka_unit_test(rows_of_pools_come_again),
    cmocka_unit_test(parts_add_up),
};

int main(void)
{
    int failed = cmocka_run_group_tests(memory_tests, NULL, NULL);
    failed += cmocka_run_group_tests(memory_steps_tests, NULL, NULL);
    failed += cmocka_run_group_tests(gpu_memory_tests, NULL, NULL);
    failed += cmocka_run_group_tests(gpu_memory_parts_tests, NULL, NULL);
    return failed;
}
