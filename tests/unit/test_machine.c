/* What a machine can do, and what a run made of it. */
#include "folder.h"
#include "../kit/tuning.h"

#include <pk/pk.h>

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "measure/fold/fold.h"
#include "measure/machine/machine.h"
#include "measure/machine/roofline.h"
#include "measure/steps/cut.h"
#include "measure/verdict/verdict.h"

/* ---- the file of what a machine can do ---- */

/* Written, read, refused; and GPUs by their names. */

static const char machine_whole[] = "perfkit machine 1\n"
                                    "host node7\n"
                                    "cpu A processor, of some kind\n"
                                    "processors 64\n"
                                    "measured 1795369527\n"
                                    "limit triad one 21400000000 21100000000 20000000000 9\n"
                                    "limit triad all 380000000000 370000000000 10 9\n"
                                    "limit double-sse2 one 26000000000 26000000000 26000000000 1\n"
                                    "limit double-avx2-fma one 57000000000 50000000000 1 15\n";

static bool parse(const char *text, pki_machine *m, char why[160])
{
    why[0] = '\0';
    return pki_machine_parse(text, strlen(text), m, why, 160);
}

static void a_file_comes_back(void **state)
{
    pki_machine m;
    char why[160], text[PKI_MACHINE_BYTES];
    (void)state;
    assert_true(parse(machine_whole, &m, why));
    assert_string_equal(m.host, "node7");
    assert_string_equal(m.cpu, "A processor, of some kind");
    assert_int_equal(m.processors, 64);
    assert_int_equal(m.measured, 1795369527);
    assert_int_equal(m.limit_count, 4);
    assert_int_equal(m.limits[1].worst, 10);
    assert_true(m.limits[1].all);
    assert_int_equal(pki_machine_print(&m, text), strlen(machine_whole));
    assert_string_equal(text, machine_whole);
}

static void the_best_of_a_family(void **state)
{
    pki_machine m;
    char why[160];
    (void)state;
    assert_true(parse(machine_whole, &m, why));
    assert_int_equal(pki_machine_best(&m, "double-", false), 57000000000);
    assert_int_equal(pki_machine_best(&m, "double-", true), 0);
    assert_int_equal(pki_machine_best(&m, "single-", false), 0);
    assert_int_equal(pki_machine_best(&m, "triad", true), 380000000000);
    assert_int_equal(pki_machine_best(&m, "tri", true), 0);
}

/* A later version may say more; what is known has to make sense. */
static void what_is_refused(void **state)
{
    static const struct {
        const char *from, *to, *says; /* NULL: taken */
    } cases[] = {
        {"measured", "colour", NULL},
        {"host node7", "host node7 ", NULL},
        {"perfkit machine 1", "perfkit machine 2", "does not begin"},
        {"perfkit machine 1\n", "", "does not begin"},
        {"host node7\n", "", "missing"},
        {"processors 64", "processors 0", "line 4"},
        {"processors 64", "processors -1", "line 4"},
        {"processors 64", "processors 6.4", "line 4"},
        {"processors 64", "processors 64 65", "line 4"},
        {"processors 64", "processors", "line 4"},
        {"triad one 21400000000", "triad one 20", "line 6"},
        {"triad one 21400000000", "triad one 99999999999999999999", "line 6"},
        {"triad one 21400000000", "triad two 21400000000", "line 6"},
        {"20000000000 9\n", "20000000000\n", "line 6"},
        {"20000000000 9\n", "20000000000 0\n", "line 6"},
        {"20000000000 9\n", "20000000000 9 9\n", "line 6"},
        {"21100000000 20000000000", "21100000000 0", "line 6"},
        {"node7", "no\x1b[1mde", "no text"},
        {"node7", "no\xff", "no text"},
        {"50000000000 1 15\n", "50000000000 1 15", "cut off"},
        {"\nhost", "\n\nhost", "line 2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pki_machine m;
        char text[1024], why[160];
        const char *at = strstr(machine_whole, cases[i].from);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - machine_whole), machine_whole,
                 cases[i].to, at + strlen(cases[i].from));
        bool taken = parse(text, &m, why);
        if (taken != !cases[i].says || (!taken && !strstr(why, cases[i].says)))
            fail_msg("%s instead of %s: %s", cases[i].to, cases[i].from, why);
    }
}

static void more_limits_than_there_is_room_for(void **state)
{
    pki_machine m;
    char text[PKI_MACHINE_BYTES], why[160];
    (void)state;
    assert_true(parse(machine_whole, &m, why));
    pki_limit most = {.best = PKI_MACHINE_RATE_MOST,
                      .median = PKI_MACHINE_RATE_MOST,
                      .worst = PKI_MACHINE_RATE_MOST,
                      .rounds = PKI_MACHINE_RATE_MOST};
    memset(most.name, 'n', sizeof most.name - 1);
    memset(m.cpu, 'c', sizeof m.cpu - 1);
    while (pki_machine_add(&m, &most))
        continue;
    assert_int_equal(m.limit_count, PKI_MACHINE_LIMITS);
    size_t n = pki_machine_print(&m, text);
    assert_true(n < sizeof text);
    assert_true(pki_machine_parse(text, n, &m, why, sizeof why));
    assert_int_equal(m.limit_count, PKI_MACHINE_LIMITS);
    n += (size_t)snprintf(text + n, sizeof text - n, "limit x one 1 1 1 1\n");
    assert_false(pki_machine_parse(text, n, &m, why, sizeof why));
}

static void put(const char *path, const pki_machine *m)
{
    char text[PKI_MACHINE_BYTES];
    FILE *file = fopen(path, "w");
    size_t n = pki_machine_print(m, text);
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* A file of another machine is none; one that the user names may be of another host like it. */
static void only_of_this_machine(void **state)
{
    pki_machine here, other, read;
    char why[300];
    const pki_limit limit = {.name = "triad", .best = 3, .median = 2, .worst = 1, .rounds = 5};
    (void)state;
    pki_machine_here(&here);
    assert_true(here.host[0] && here.cpu[0] && here.processors > 0);
    assert_true(pki_machine_add(&here, &limit));
    put("here", &here);
    assert_true(pki_machine_load("here", false, &read, why, sizeof why));
    assert_int_equal(read.limits[0].best, 3);

    other = here;
    snprintf(other.host, sizeof other.host, "elsewhere");
    put("host", &other);
    assert_false(pki_machine_load("host", false, &read, why, sizeof why));
    assert_non_null(strstr(why, "elsewhere"));
    assert_true(pki_machine_load("host", true, &read, why, sizeof why));

    other = here;
    snprintf(other.cpu, sizeof other.cpu, "Z80");
    put("cpu", &other);
    assert_false(pki_machine_load("cpu", true, &read, why, sizeof why));
    assert_non_null(strstr(why, "Z80"));

    other = here;
    other.processors++;
    put("more", &other);
    assert_false(pki_machine_load("more", true, &read, why, sizeof why));
    assert_non_null(strstr(why, "processors"));
}

static void files_that_are_none(void **state)
{
    pki_machine m;
    char why[300];
    (void)state;
    assert_false(pki_machine_load("nowhere", false, &m, why, sizeof why));
    assert_non_null(strstr(why, "No such file"));
    assert_false(pki_machine_load(".", false, &m, why, sizeof why));
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_false(pki_machine_load("pipe", false, &m, why, sizeof why)); /* and nobody waits */
    FILE *file = fopen("large", "w");
    assert_non_null(file);
    for (int i = 0; i < 10000; i++)
        fputs("perfkit machine 1\n", file);
    fclose(file);
    assert_false(pki_machine_load("large", false, &m, why, sizeof why));
    assert_non_null(strstr(why, "longer"));
}

static void where_it_lies(void **state)
{
    char path[PATH_MAX];
    (void)state;
    setenv("HOME", "/where/home", 1);
    setenv("XDG_CACHE_HOME", "/var/cache/me", 1);
    assert_true(pki_machine_path("node7", path));
    assert_string_equal(path, "/var/cache/me/perfkit/machine-node7.txt");
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_true(pki_machine_path("../node7", path));
    assert_string_equal(path, "/where/home/.cache/perfkit/machine-.._node7.txt");
    unsetenv("HOME");
    assert_false(pki_machine_path("node7", path));
}

/* Names are compared whole, and a data sheet's own figures hold together. */
static void devices(void **state)
{
    (void)state;
    assert_null(pki_device_find("NVIDIA H100"));
    assert_null(pki_device_find(""));
    const pki_device_limits *h100 = pki_device_find("NVIDIA H100 80GB HBM3");
    assert_non_null(h100);
    assert_true(h100->bandwidth == 3350e9 && h100->bf16 == 989.5e12);
    for (size_t i = 0; i < pki_device_count; i++) {
        const pki_device_limits *d = &pki_devices[i];
        assert_ptr_equal(pki_device_find(d->name), d); /* no name twice */
        assert_true(strstr(d->source, "data sheet") != NULL);
        assert_true(d->bandwidth > 1e11 && d->bandwidth < 1e14 && d->fp32 > 1e12);
        assert_true(d->fp16 >= d->fp32 && d->fp32 >= d->fp64);
        assert_true(d->bf16 == 0 || d->bf16 == d->fp16);
        assert_true(d->fp8 == 0 || d->fp8 > 1.9 * d->fp16);
    }
}

static const struct CMUnitTest machine_tests[] = {
    cmocka_unit_test(a_file_comes_back),
    cmocka_unit_test(the_best_of_a_family),
    cmocka_unit_test(what_is_refused),
    cmocka_unit_test(more_limits_than_there_is_room_for),
    cmocka_unit_test_setup_teardown(only_of_this_machine, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(files_that_are_none, enter_folder, leave_folder),
    cmocka_unit_test(where_it_lies),
    cmocka_unit_test(devices),
};

/* ---- MFU and HFU ---- */

/* The peak and where it comes from, the steps that count, and what a session, its windows, its
 * metrics and its trace say of a step whose operations are known. */

#define GB UINT64_C(1000000000)

static bool near(double utilisation_a, double utilisation_b)
{
    return fabs(utilisation_a - utilisation_b) <= 1e-6 * fabs(utilisation_b);
}

/* -- the formula -- */

/* PaLM 540B: 6 N + 12 L H Q T by hand, with 118 layers, 48 heads of 256, sequences of 2,048. */
static void a_model_s_formula(void **state)
{
    (void)state;
    double token = pk_transformer_flops(UINT64_C(540350000000), 118, 48, 256, 2048);
    assert_true(token == 6.0 * 540.35e9 + 12.0 * 118 * 48 * 256 * 2048);
    /* The paper: 238,300 tokens per second on 6,144 chips of 275 Tflop/s are 46.2 % (table 3). */
    assert_true(fabs(238300 * token / (6144 * 275e12) - 0.462) < 0.002);
}

/* -- the option -- */

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

/* -- where the peak comes from -- */

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

/* -- the steps that count -- */

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

/* -- a matrix product of a session -- */

#define N 64

static float utilisation_a[N][N], utilisation_b[N][N], c[N][N];

static void multiply(void)
{
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++)
            for (size_t j = 0; j < N; j++)
                c[i][j] += utilisation_a[i][k] * utilisation_b[k][j];
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
            pk_step_add_flops(2.0 * N * N * N, 3.0 * N * N * N);
        }
        pk_step_add_flops(NAN, -1); /* no numbers */
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
                            .windows_path = "w.json", .metrics_path = "m.prom", .warmup_steps = 1,
                            .tuning = "window_steps=8,peak=bf16:1e12"),
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
    run_products(pk_options(.backends = "none", .report_path = "r.txt", .metrics_path = "m.prom",
                            .tuning = "machine_path=none"),
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
    assert_int_equal(pk_start(pk_options(.tuning = "peak=int4")), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "int4"));
    pk_step_add_flops(1, 1); /* off: nothing */
}

static const struct CMUnitTest utilisation_tests[] = {
    cmocka_unit_test(a_model_s_formula),
    cmocka_unit_test(wishes),
    cmocka_unit_test(peaks),
    cmocka_unit_test(sums_of_steps),
    cmocka_unit_test_setup_teardown(a_known_product, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(without_a_peak, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(steps_that_say_nothing, enter_folder, leave_folder),
};

/* ---- regions beside the limits of a machine that is made up ---- */

/* By hand, and as a session and its report say it. */

static const struct {
    const char *name;
    uint64_t one, all;
} limits[] = {
    {"triad", 20 * GB, 100 * GB},
    {"double-sse2", 10 * GB, 80 * GB}, /* not the widest */
    {"double-avx2-fma", 50 * GB, 350 * GB},
    {"single-avx2-fma", 100 * GB, 700 * GB},
};

static void roofline_make_machine(pki_machine *m)
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

static void roofline_put(pki_summary *s, pki_region_row row)
{
    pki_summary_init(s);
    s->regions = calloc(1, sizeof *s->regions);
    s->region_count = 1;
    *s->regions = row;
}

static bool roofline_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void roofline_expect(pki_region_row row, double of_double, bool memory_double,
                            double of_single, bool memory_single)
{
    pki_machine m;
    pki_summary s;
    roofline_make_machine(&m);
    roofline_put(&s, row);
    assert_true(pki_roofline_fill(&m, &s));
    assert_int_equal(s.roofline.row_count, 1);
    const pki_roofline_row *r = s.roofline.rows;
    if (!roofline_near(r->of_double, of_double) || !roofline_near(r->of_single, of_single) ||
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
    roofline_expect(region(PK_COMPUTE, 0.1, bytes, flops, 1), 0.4, false, 0.2, false);
    /* The same by 4 threads at once, each a quarter of it in 40 ms: 50 Gflop/s of 4 x 50. */
    roofline_expect(region(PK_COMPUTE, 4 * 0.04, bytes, flops, 4), 0.25, false, 0.125, false);
    /* By 8: 8 x 50 are more than all can do, 350. In 10 ms: 200 Gflop/s. */
    roofline_expect(region(PK_COMPUTE, 8 * 0.01, bytes, flops, 8), 200.0 / 350, false, 200.0 / 700,
                    false);
}

/* Naive, the matrix B is read for each row of A: n^3 x 8 bytes and more; a quarter of an operation
 * a byte. Attainable are 20 GB/s x 0.25 = 5 Gflop/s; 1 s makes 2 of them, 40 %. */
static void the_same_out_of_memory(void **state)
{
    const double n = 1000, flops = 2 * n * n * n, bytes = n * n * n * 8;
    (void)state;
    roofline_expect(region(PK_OTHER, 1, bytes, flops, 1), 0.4, true, 0.4, true);
    /* 16 bytes for 56 operations: above the ridge of doubles (2.5), below that of singles (5). */
    roofline_expect(region(PK_OTHER, 1, 16e9, 56e9, 1), 56.0 / 50, false, 16.0 / 20, true);
}

static void without_one_of_the_two(void **state)
{
    (void)state;
    roofline_expect(region(PK_COMPUTE, 1, 5e9, 0, 1), 0.25, true, 0.25, true);
    roofline_expect(region(PK_COMPUTE, 2, 5e9, 0, 2), 0.125, true, 0.125, true);
    roofline_expect(region(PK_WAIT, 1, 0, 5e9, 0), 0.1, false, 0.05, false);
    /* A library's threads inside one region: 180 Gflop/s are more than one processor has. */
    roofline_expect(region(PK_COMPUTE, 1, 0, 180e9, 1), 180.0 / 350, false, 180.0 / 700, false);
    /* More threads than processors: no more than those. */
    roofline_expect(region(PK_COMPUTE, 80, 0, 3500e9, 80), 1.0, false, 0.5, false);
}

/* Bytes of files and messages are no memory's, and a device's operations no processor's. */
static void what_has_no_place(void **state)
{
    pki_region_row rows[] = {region(PK_IO, 1, 5e9, 0, 1), region(PK_COMM, 1, 5e9, 0, 1),
                             region(PK_COMPUTE, 1, 0, 0, 0), region(PK_COMPUTE, 0, 5e9, 5e9, 1),
                             region(PK_COMPUTE, 1, 5e9, 5e9, 1)};
    pki_machine m;
    (void)state;
    roofline_make_machine(&m);
    rows[4].kernels.count = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pki_summary s;
        roofline_put(&s, rows[i]);
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
    roofline_make_machine(&m);
    m.limit_count = 4;
    roofline_put(&s, region(PK_COMPUTE, 1, 5e9, 5e9, 1));
    assert_true(pki_roofline_fill(&m, &s));
    assert_true(s.roofline.measured == 0 && s.roofline.row_count == 0);
    pki_summary_finish(&s);
}

static const char *verdict_of(pki_region_row row, char text[400])
{
    pki_machine m;
    pki_summary s;
    roofline_make_machine(&m);
    roofline_put(&s, row);
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

/* -- sessions -- */

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
    assert_int_equal(pk_start(pk_options(.backends = "none", .tuning = "arena_path=none")), PK_OK);
    run_work();
    run_work();
    assert_true(threads_at_once() == 1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_start(pk_options(.backends = "none", .tuning = "arena_path=none")), PK_OK);
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
    roofline_make_machine(&m);
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
    assert_int_equal(
        pk_start(pk_options(.backends = "none", .report_path = "report.txt", .log = hear,
                            .tuning = kit_tuning("machine_path=%s", machine ? machine : ""))),
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

static const struct CMUnitTest roofline_tests[] = {
    cmocka_unit_test(a_matrix_product),
    cmocka_unit_test(the_same_out_of_memory),
    cmocka_unit_test(without_one_of_the_two),
    cmocka_unit_test(what_has_no_place),
    cmocka_unit_test(a_file_that_lacks_something),
    cmocka_unit_test(near_the_roof),
    cmocka_unit_test(threads_of_a_region),
    cmocka_unit_test_setup_teardown(a_session_s_report, enter_folder, leave_folder),
};

int main(void)
{
    int failed = cmocka_run_group_tests(machine_tests, NULL, NULL);
    failed += cmocka_run_group_tests(utilisation_tests, NULL, NULL);
    failed += cmocka_run_group_tests(roofline_tests, NULL, NULL);
    return failed;
}
