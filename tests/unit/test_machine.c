/* The file of what a machine can do: written, read, refused; and GPUs by their names. */
#include "folder.h"

#include "measure/machine/devices.h"
#include "measure/machine/machine.h"

static const char whole[] = "perfkit machine 1\n"
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
    assert_true(parse(whole, &m, why));
    assert_string_equal(m.host, "node7");
    assert_string_equal(m.cpu, "A processor, of some kind");
    assert_int_equal(m.processors, 64);
    assert_int_equal(m.measured, 1795369527);
    assert_int_equal(m.limit_count, 4);
    assert_int_equal(m.limits[1].worst, 10);
    assert_true(m.limits[1].all);
    assert_int_equal(pki_machine_print(&m, text), strlen(whole));
    assert_string_equal(text, whole);
}

static void the_best_of_a_family(void **state)
{
    pki_machine m;
    char why[160];
    (void)state;
    assert_true(parse(whole, &m, why));
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
        const char *at = strstr(whole, cases[i].from);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, cases[i].to,
                 at + strlen(cases[i].from));
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
    assert_true(parse(whole, &m, why));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_comes_back),
        cmocka_unit_test(the_best_of_a_family),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(more_limits_than_there_is_room_for),
        cmocka_unit_test_setup_teardown(only_of_this_machine, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(files_that_are_none, enter_folder, leave_folder),
        cmocka_unit_test(where_it_lies),
        cmocka_unit_test(devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
