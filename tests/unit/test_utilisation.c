/* MFU and HFU: the peak and where it comes from, the steps that count, and what a session, its
 * windows, its metrics and its trace say of a step whose operations are known. */
#include "folder.h"

#include <math.h>
#include <time.h>

#include <pk/pk.h>

#include "measure/machine/peak.h"
#include "measure/steps/cut.h"

#define GB UINT64_C(1000000000)

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

/* ---- the formula ---- */

/* PaLM 540B: 6 N + 12 L H Q T by hand, with 118 layers, 48 heads of 256, sequences of 2,048. */
static void a_model_s_formula(void **state)
{
    (void)state;
    double token = pk_transformer_flops(UINT64_C(540350000000), 118, 48, 256, 2048);
    assert_true(token == 6.0 * 540.35e9 + 12.0 * 118 * 48 * 256 * 2048);
    /* The paper: 238,300 tokens per second on 6,144 chips of 275 Tflop/s are 46.2 % (table 3). */
    assert_true(fabs(238300 * token / (6144 * 275e12) - 0.462) < 0.002);
}

/* ---- the option ---- */

static void wishes(void **state)
{
    static const char *const wrong[] = {"",     "int4", "bf16:", "bf16:x",  ":1e9",
                                        "-1",   "1e",   "bf16 ", "989,5e9", "0",
                                        "1e31", "1e9x", ".5",    "BF16"};
    pki_peak_wish w;
    (void)state;
    assert_true(pki_peak_parse("bf16", &w) && w.flops == 0);
    assert_string_equal(w.precision, "bf16");
    assert_true(pki_peak_parse("fp8:1979e12", &w) && near(w.flops, 1979e12));
    assert_string_equal(w.precision, "fp8");
    assert_true(pki_peak_parse("989.5E+12", &w) && near(w.flops, 989.5e12) && !w.precision[0]);
    assert_true(pki_peak_parse("1234", &w) && w.flops == 1234);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (pki_peak_parse(wrong[i], &w))
            fail_msg("%s is taken", wrong[i]);
}

/* ---- where the peak comes from ---- */

static void make_machine(pki_machine *m)
{
    static const struct {
        const char *name;
        uint64_t one, all;
    } limits[] = {{"double-sse2", 10 * GB, 60 * GB},
                  {"double-avx2-fma", 50 * GB, 350 * GB},
                  {"single-avx2-fma", 100 * GB, 700 * GB}};
    pki_machine_here(m);
    m->measured = 1795369527;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int all = 0; all < 2; all++) {
            uint64_t rate = all ? limits[i].all : limits[i].one;
            pki_limit l = {.all = all, .best = rate, .median = rate, .worst = rate, .rounds = 1};
            snprintf(l.name, sizeof l.name, "%s", limits[i].name);
            assert_true(pki_machine_add(m, &l));
        }
}

/* has: a word of the source, or of the reason. */
static void expect(const char *wanted, pki_peak_place place, double flops, const char *has)
{
    pki_peak_wish wish = {.flops = 0};
    pki_peak peak;
    assert_true(!wanted || pki_peak_parse(wanted, &wish));
    pki_peak_find(&wish, &place, &peak);
    if (flops == 0 ? peak.flops != 0 : !near(peak.flops, flops))
        fail_msg("%s: %g, not %g", wanted ? wanted : "none", peak.flops, flops);
    if (!strstr(peak.source, has))
        fail_msg("%s: %s", has, peak.source);
}

static void peaks(void **state)
{
    pki_machine m;
    (void)state;
    make_machine(&m);
    const pki_peak_place eight = {.machine = &m, .gpu = "", .processors = 8};
    const pki_peak_place two = {.machine = &m, .gpu = "", .processors = 2};
    const pki_peak_place bare = {.no_machine = "no such file", .gpu = "", .processors = 8};
    const pki_peak_place h100 = {.machine = &m, .gpu = "NVIDIA H100 PCIe", .gpus = 2};
    const pki_peak_place idle = {.machine = &m, .gpu = "NVIDIA H100 PCIe", .processors = 8};
    const pki_peak_place a10 = {.machine = &m, .gpu = "NVIDIA A10", .gpus = 1};
    const pki_peak_place other = {.machine = &m, .gpu = "NVIDIA Z1", .gpus = 1};
    const pki_peak_place nameless = {.machine = &m, .gpu = "", .gpus = 1};
    expect(NULL, eight, 700e9, "no other was named");
    expect("fp32", eight, 700e9, "8 processors");
    expect("fp64", eight, 350e9, "pk machine measured on");
    expect("fp64", two, 100e9, "2 processors");
    expect("bf16", eight, 0, "in bf16 is measured");
    expect("bf16:1e12", eight, 1e12, "option peak");
    expect(NULL, bare, 0, "no such file");
    expect("2e12", bare, 2e12, "option peak");
    expect("bf16", h100, 2 * 756.5e12, "2 x NVIDIA H100 PCIe");
    expect("fp64", h100, 2 * 51e12, "data sheet");
    expect(NULL, h100, 0, "for each precision");
    expect("bf16", idle, 756.5e12, "1 x NVIDIA H100 PCIe"); /* the table's alone has it */
    expect("fp32", idle, 700e9, "8 processors");
    expect("fp64", a10, 0, "no figure for fp64");
    expect("bf16", other, 0, "NVIDIA Z1 is not in the table");
    expect("bf16", nameless, 0, "model is unknown");
}

/* ---- the steps that count ---- */

static const char *no_name(void *user, uint32_t id)
{
    (void)user, (void)id;
    return NULL;
}

static void add_steps(pki_steps *steps, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        pki_step step = {.index = i, .start = i * 1000000, .duration = i < 10 ? 9000000 : 1000000};
        step.kind = i % 10 == 5 ? "evaluation" : NULL;
        if (i % 10 != 7) /* some have not told it */
            step.work = pki_step_work_of(step.duration, 6e6, 8e6);
        pki_steps_add(steps, &step);
    }
}

static void expect_sums(const pki_utilisation *u, uint64_t steps)
{
    assert_int_equal(u->steps, steps);
    assert_int_equal(u->time, steps * 1000000);
    assert_true(u->model == (double)steps * 6e6 && u->hardware == (double)steps * 8e6);
}

/* Warm-up, other kinds and silent steps are left out; windows add up to the same. */
static void sums_of_steps(void **state)
{
    pki_steps *whole = pki_steps_create(), *cut = pki_steps_create(), *joined = pki_steps_create();
    pki_summary s;
    (void)state;
    pki_summary_init(&s);
    add_steps(whole, 0, 1000);
    assert_true(pki_steps_fill(whole, 9, no_name, NULL, &s));
    expect_sums(&s.steps.utilisation, 8 * 99);
    for (uint64_t i = 0; i < 1000; i += 100) {
        pki_steps_part part;
        add_steps(cut, i, i + 100);
        assert_true(pki_steps_cut(cut, &part));
        assert_true(pki_steps_join(joined, &part));
        pki_steps_part_finish(&part);
    }
    assert_true(pki_steps_fill(cut, 9, no_name, NULL, &s));
    expect_sums(&s.steps.utilisation, 8 * 99);
    assert_true(pki_steps_fill(joined, 9, no_name, NULL, &s));
    expect_sums(&s.steps.utilisation, 8 * 99);
    assert_int_equal(pki_steps_work_so_far(cut).steps, 800);
    pki_summary_finish(&s);
    pki_steps_destroy(whole);
    pki_steps_destroy(cut);
    pki_steps_destroy(joined);
}

/* ---- a matrix product of a session ---- */

#define N 64

static float a[N][N], b[N][N], c[N][N];

static void multiply(void)
{
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++)
            for (size_t j = 0; j < N; j++)
                c[i][j] += a[i][k] * b[k][j];
}

static double number_behind(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (!at)
        fail_msg("no %s", key);
    return strtod(at + strlen(key), NULL);
}

static char *file(const char *path)
{
    char *text = calloc(1, 1 << 20);
    FILE *from = fopen(path, "r");
    assert_non_null(text);
    assert_non_null(from);
    text[fread(text, 1, (1 << 20) - 1, from)] = '\0';
    fclose(from);
    return text;
}

static void run_products(const pk_options *options, unsigned steps)
{
    assert_int_equal(pk_start(options), PK_OK);
    for (unsigned i = 0; i < steps; i++) {
        for (int half = 0; half < 2; half++) { /* micro-batches add up */
            multiply();
            pk_step_flops(2.0 * N * N * N, 3.0 * N * N * N);
        }
        pk_step_flops(NAN, -1); /* no numbers */
        pk_step(1);
    }
    assert_int_equal(pk_stop(), PK_OK);
}

/* The rate is the operations over the time of the very steps; the peak is a number that is known.
 */
static void a_known_product(void **state)
{
    (void)state;
    run_products(pk_options(.backends = "none", .report_path = "r.json", .trace_path = "t.json",
                            .windows_path = "w.json", .window_steps = 8, .metrics_path = "m.prom",
                            .warmup_steps = 1, .peak = "bf16:1e12"),
                 33);
    char *report = file("r.json"), *trace = file("t.json"), *windows = file("w.json");
    char *metrics = file("m.prom");
    const char *u = strstr(report, "\"utilisation\":");
    assert_non_null(u);
    double time = number_behind(u, "\"time\":"), model = number_behind(u, "\"model\":");
    assert_true(number_behind(u, "\"steps\":") == 32);
    assert_true(model == 32 * 4.0 * N * N * N);
    assert_true(number_behind(u, "\"hardware\":") == 32 * 6.0 * N * N * N);
    assert_true(number_behind(u, "\"peak\":") == 1e12);
    assert_true(near(number_behind(u, "\"mfu\":"), model / (time / 1e9 * 1e12)));
    assert_true(near(number_behind(u, "\"hfu\":"), 1.5 * model / (time / 1e9 * 1e12)));
    assert_non_null(strstr(u, "\"precision\":\"bf16\""));
    assert_non_null(strstr(u, "as the option peak says"));
    assert_true(number_behind(trace, "\"model_flops\":") == 4.0 * N * N * N);
    assert_true(number_behind(trace, "\"hardware_flops\":") == 6.0 * N * N * N);
    const char *window = strstr(windows, "\"utilisation\":");
    assert_non_null(window);
    assert_true(number_behind(window, "\"steps\":") == 8);
    assert_true(number_behind(window, "\"peak\":") == 1e12);
    const char *total = strstr(metrics, "\npk_model_flops_total{");
    assert_non_null(total);
    assert_true(number_behind(total, "} ") == 33 * 4.0 * N * N * N);
    assert_non_null(strstr(metrics, "\npk_mfu_ratio{"));
    free(report);
    free(trace);
    free(windows);
    free(metrics);
}

static void without_a_peak(void **state)
{
    (void)state;
    run_products(pk_options(.backends = "none", .report_path = "r.txt", .machine_path = "none",
                            .metrics_path = "m.prom"),
                 9);
    char *report = file("r.txt"), *metrics = file("m.prom");
    assert_non_null(strstr(report, "utilisation"));
    assert_non_null(strstr(report, "No MFU: "));
    assert_null(strstr(report, "MFU 0"));
    assert_non_null(strstr(metrics, "\npk_model_flops_total{"));
    assert_null(strstr(metrics, "pk_mfu_ratio"));
    free(report);
    free(metrics);
}

static void steps_that_say_nothing(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none", .report_path = "r.json")), PK_OK);
    for (int i = 0; i < 9; i++)
        pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    char *report = file("r.json");
    assert_null(strstr(report, "\"utilisation\":"));
    free(report);
    assert_int_equal(pk_start(pk_options(.peak = "int4")), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "int4"));
    pk_step_flops(1, 1); /* off: nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_s_formula),
        cmocka_unit_test(wishes),
        cmocka_unit_test(peaks),
        cmocka_unit_test(sums_of_steps),
        cmocka_unit_test_setup_teardown(a_known_product, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(without_a_peak, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(steps_that_say_nothing, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
