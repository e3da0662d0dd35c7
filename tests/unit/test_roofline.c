/* Regions beside the limits of a machine that is made up: by hand, and as a session and its report
 * say it. */
#include "folder.h"

#include <math.h>
#include <pthread.h>

#include <pk/pk.h>

#include "measure/fold/fold.h"
#include "measure/machine/roofline.h"
#include "measure/verdict/verdict.h"

#define GB UINT64_C(1000000000)

static const struct {
    const char *name;
    uint64_t one, all;
} limits[] = {
    {"triad", 20 * GB, 100 * GB},
    {"double-sse2", 10 * GB, 80 * GB}, /* not the widest */
    {"double-avx2-fma", 50 * GB, 350 * GB},
    {"single-avx2-fma", 100 * GB, 700 * GB},
};

static void make_machine(pki_machine *m)
{
    pki_machine_here(m);
    m->processors = 8;
    m->measured = 1795369527;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int all = 0; all < 2; all++) {
            uint64_t rate = all ? limits[i].all : limits[i].one;
            pki_limit l = {.all = all, .best = rate, .median = rate, .worst = rate, .rounds = 1};
            snprintf(l.name, sizeof l.name, "%s", limits[i].name);
            assert_true(pki_machine_add(m, &l));
        }
}

/* A region that took so many seconds. */
static pki_region_row region(uint32_t kind, double seconds, double bytes, double flops,
                             double threads)
{
    return (pki_region_row){.name = strdup("r"),
                            .kind = kind,
                            .self = (uint64_t)(seconds * 1e9),
                            .time = {.count = 1, .sum = seconds * 1e9},
                            .bytes = (uint64_t)bytes,
                            .flops = (uint64_t)flops,
                            .threads = threads};
}

static void put(pki_summary *s, pki_region_row row)
{
    pki_summary_init(s);
    s->regions = calloc(1, sizeof *s->regions);
    s->region_count = 1;
    *s->regions = row;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void expect(pki_region_row row, double of_double, bool memory_double, double of_single,
                   bool memory_single)
{
    pki_machine m;
    pki_summary s;
    make_machine(&m);
    put(&s, row);
    assert_true(pki_roofline_fill(&m, &s));
    assert_int_equal(s.roofline.row_count, 1);
    const pki_roofline_row *r = s.roofline.rows;
    if (!near(r->of_double, of_double) || !near(r->of_single, of_single) ||
        r->memory_bound_double != memory_double || r->memory_bound_single != memory_single)
        fail_msg("%g %d, %g %d", r->of_double, r->memory_bound_double, r->of_single,
                 r->memory_bound_single);
    pki_summary_finish(&s);
}

/* C = A B with n = 1000 in doubles: 2 n^3 operations, 3 n^2 x 8 bytes when each is moved once;
 * 83 operations a byte, so arithmetic is the limit. In 100 ms it is 20 Gflop/s of 50. */
static void a_matrix_product(void **state)
{
    const double n = 1000, flops = 2 * n * n * n, bytes = 3 * n * n * 8;
    (void)state;
    expect(region(PK_COMPUTE, 0.1, bytes, flops, 1), 0.4, false, 0.2, false);
    /* The same by 4 threads at once, each a quarter of it in 40 ms: 50 Gflop/s of 4 x 50. */
    expect(region(PK_COMPUTE, 4 * 0.04, bytes, flops, 4), 0.25, false, 0.125, false);
    /* By 8: 8 x 50 are more than all can do, 350. In 10 ms: 200 Gflop/s. */
    expect(region(PK_COMPUTE, 8 * 0.01, bytes, flops, 8), 200.0 / 350, false, 200.0 / 700, false);
}

/* Naive, the matrix B is read for each row of A: n^3 x 8 bytes and more; a quarter of an operation
 * a byte. Attainable are 20 GB/s x 0.25 = 5 Gflop/s; 1 s makes 2 of them, 40 %. */
static void the_same_out_of_memory(void **state)
{
    const double n = 1000, flops = 2 * n * n * n, bytes = n * n * n * 8;
    (void)state;
    expect(region(PK_OTHER, 1, bytes, flops, 1), 0.4, true, 0.4, true);
    /* 16 bytes for 56 operations: above the ridge of doubles (2.5), below that of singles (5). */
    expect(region(PK_OTHER, 1, 16e9, 56e9, 1), 56.0 / 50, false, 16.0 / 20, true);
}

static void without_one_of_the_two(void **state)
{
    (void)state;
    expect(region(PK_COMPUTE, 1, 5e9, 0, 1), 0.25, true, 0.25, true);
    expect(region(PK_COMPUTE, 2, 5e9, 0, 2), 0.125, true, 0.125, true);
    expect(region(PK_WAIT, 1, 0, 5e9, 0), 0.1, false, 0.05, false);
    /* A library's threads inside one region: 180 Gflop/s are more than one processor has. */
    expect(region(PK_COMPUTE, 1, 0, 180e9, 1), 180.0 / 350, false, 180.0 / 700, false);
    /* More threads than processors: no more than those. */
    expect(region(PK_COMPUTE, 80, 0, 3500e9, 80), 1.0, false, 0.5, false);
}

/* Bytes of files and messages are no memory's, and a device's operations no processor's. */
static void what_has_no_place(void **state)
{
    pki_region_row rows[] = {region(PK_IO, 1, 5e9, 0, 1), region(PK_COMM, 1, 5e9, 0, 1),
                             region(PK_COMPUTE, 1, 0, 0, 0), region(PK_COMPUTE, 0, 5e9, 5e9, 1),
                             region(PK_COMPUTE, 1, 5e9, 5e9, 1)};
    pki_machine m;
    (void)state;
    make_machine(&m);
    rows[4].kernels.count = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pki_summary s;
        put(&s, rows[i]);
        assert_false(pki_roofline_wanted(&s));
        assert_true(pki_roofline_fill(&m, &s));
        assert_int_equal(s.roofline.measured, 0);
        pki_summary_finish(&s);
    }
}

/* A file without a peak says nothing of regions. */
static void a_file_that_lacks_something(void **state)
{
    pki_machine m;
    pki_summary s;
    (void)state;
    make_machine(&m);
    m.limit_count = 4;
    put(&s, region(PK_COMPUTE, 1, 5e9, 5e9, 1));
    assert_true(pki_roofline_fill(&m, &s));
    assert_true(s.roofline.measured == 0 && s.roofline.row_count == 0);
    pki_summary_finish(&s);
}

static const char *verdict_of(pki_region_row row, char text[400])
{
    pki_machine m;
    pki_summary s;
    make_machine(&m);
    put(&s, row);
    text[0] = '\0';
    assert_true(pki_roofline_fill(&m, &s) && pki_verdicts_fill(&s));
    for (size_t i = 0; i < s.verdict_count; i++)
        if (strcmp(s.verdicts[i].name, "at-the-roof") == 0)
            snprintf(text, 400, "%s", s.verdicts[i].text);
    pki_summary_finish(&s);
    return text;
}

static void near_the_roof(void **state)
{
    char text[400];
    (void)state;
    assert_non_null(strstr(verdict_of(region(PK_COMPUTE, 1, 16e9, 1e9, 1), text),
                           "reaches 80.0 % (threshold 70 %) of what the machine's memory allows"));
    assert_non_null(strstr(verdict_of(region(PK_COMPUTE, 1, 1e9, 40e9, 1), text),
                           "arithmetic in double precision"));
    assert_non_null(strstr(verdict_of(region(PK_COMPUTE, 1, 1e9, 80e9, 1), text),
                           "arithmetic in single precision"));
    assert_string_equal(verdict_of(region(PK_COMPUTE, 1, 1e9, 20e9, 1), text), "");
    /* Out of a cache: no roof of memory's. */
    assert_string_equal(verdict_of(region(PK_COMPUTE, 1, 60e9, 1e9, 1), text), "");
}

/* ---- sessions ---- */

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");
static pthread_barrier_t together;

static void run_work(void)
{
    pk_region_begin(&work);
    pk_region_add(&work, 1000, 4000);
    pk_region_end(&work);
}

static void *work_beside(void *arg)
{
    pthread_barrier_wait(&together);
    pk_region_begin(&work);
    pk_region_add(&work, 1000, 4000);
    pthread_barrier_wait(&together); /* both are in it */
    pthread_barrier_wait(&together);
    pk_region_end(&work);
    return arg;
}

/* Both threads are in the region from before the second barrier on until behind the third, and the
 * time between those two is most of it. */
static void two_threads(void)
{
    pthread_t threads[2];
    const struct timespec pause = {0, 50000000};
    pthread_barrier_init(&together, NULL, 3);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_beside, NULL), 0);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    nanosleep(&pause, NULL);
    pthread_barrier_wait(&together);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
}

static double threads_at_once(void)
{
    uint32_t id = __atomic_load_n(&work.id, __ATOMIC_ACQUIRE);
    pki_fold_lock();
    pki_fold_all(pki_fold_now());
    double threads = pki_fold_threads(pki_fold_now(), id);
    pki_fold_unlock();
    return threads;
}

static void threads_of_a_region(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none", .arena_path = "none")), PK_OK);
    run_work();
    run_work();
    assert_true(threads_at_once() == 1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_start(pk_options(.backends = "none", .arena_path = "none")), PK_OK);
    two_threads();
    double threads = threads_at_once();
    assert_true(threads > 1 && threads <= 2);
    assert_int_equal(pk_stop(), PK_OK);
}

static void write_machine(const char *path, const char *cpu)
{
    pki_machine m, here;
    char text[PKI_MACHINE_BYTES];
    FILE *file = fopen(path, "w");
    pki_machine_here(&here);
    make_machine(&m);
    m.processors = here.processors;
    snprintf(m.cpu, sizeof m.cpu, "%s", cpu ? cpu : here.cpu);
    size_t n = pki_machine_print(&m, text);
    assert_true(file && fwrite(text, 1, n, file) == n && fclose(file) == 0);
}

static unsigned warnings;

static void hear(void *user, pk_log_level level, const char *message)
{
    (void)user;
    warnings += level == PK_LOG_WARNING && strstr(message, "no roofline") != NULL;
}

static bool report_has(const char *machine, bool with_work)
{
    char text[16384] = "";
    warnings = 0;
    assert_int_equal(pk_start(pk_options(.backends = "none", .report_path = "report.txt",
                                         .machine_path = machine, .log = hear)),
                     PK_OK);
    if (with_work)
        run_work();
    assert_int_equal(pk_stop(), PK_OK);
    FILE *file = fopen("report.txt", "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return strstr(text, "ROOFLINE") != NULL;
}

static void a_session_s_report(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", "/nowhere", 1);
    write_machine("machine", NULL);
    write_machine("other", "Z80");
    assert_true(report_has("machine", true));
    assert_int_equal(warnings, 0);
    assert_false(report_has("machine", false));
    assert_false(report_has("none", true));
    assert_false(report_has(NULL, true)); /* there is none in the usual place */
    assert_int_equal(warnings, 0);
    assert_false(report_has("other", true));
    assert_int_equal(warnings, 1);
    assert_false(report_has("absent", true));
    assert_int_equal(warnings, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_product),
        cmocka_unit_test(the_same_out_of_memory),
        cmocka_unit_test(without_one_of_the_two),
        cmocka_unit_test(what_has_no_place),
        cmocka_unit_test(a_file_that_lacks_something),
        cmocka_unit_test(near_the_roof),
        cmocka_unit_test(threads_of_a_region),
        cmocka_unit_test_setup_teardown(a_session_s_report, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
