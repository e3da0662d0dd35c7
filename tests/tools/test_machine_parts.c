/* What pk machine is made of: loops that compute what they should, threads that do so at once,
 * rounds in figures, and how large arrays are. No figure of this machine is tested. */
#include "machine/machine.h"
#include "machine/kernels.h"
#include "base/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void fill(double *x, double first)
{
    for (unsigned i = 0; i < 2 * MEMORY_STEP; i++)
        x[i] = first + i;
}

static void loops_over_memory(void **state)
{
    static double a[2 * MEMORY_STEP + 1] __attribute__((aligned(16)));
    static double b[2 * MEMORY_STEP] __attribute__((aligned(16)));
    static double c[2 * MEMORY_STEP] __attribute__((aligned(16)));
    memory_kernel *const triads[] = {kernel_triad, kernel_triad_streamed};
    (void)state;
    fill(b, 7);
    fill(c, 100);
    a[2 * MEMORY_STEP] = -1;
    kernel_copy(a, b, c, 2 * MEMORY_STEP);
    assert_memory_equal(a, b, sizeof b);
    for (size_t k = 0; k < PKI_COUNT_OF(triads); k++) {
        memset(a, 0, sizeof b);
        if (triads[k])
            triads[k](a, b, c, 2 * MEMORY_STEP);
        for (unsigned i = 0; triads[k] && i < 2 * MEMORY_STEP; i++)
            assert_true(a[i] == 7.0 + i + 3.0 * (100 + i));
    }
    assert_true(a[2 * MEMORY_STEP] == -1);
}

/* Every width that this processor has runs, and values around it stay what they were. */
static void loops_of_arithmetic(void **state)
{
    volatile double kept = 1.25;
    unsigned there = 0;
    (void)state;
    for (size_t i = 0; i < flops_kernel_count; i++) {
        const flops_kernel *k = &flops_kernels[i];
        assert_true(strncmp(k->name, PKI_LIMIT_DOUBLE, 7) == 0 ||
                    strncmp(k->name, PKI_LIMIT_SINGLE, 7) == 0);
        assert_true(strlen(k->name) < sizeof((pki_limit *)0)->name && k->operations > 0);
        if (!k->has())
            continue;
        double x = kept * 3;
        k->run(1);
        k->run(1000);
        assert_true(x == 3.75);
        there++;
    }
    assert_true(there >= 2);
    if (chain_of_additions)
        chain_of_additions(1000);
}

typedef struct tally {
    uint64_t turns, done[8];
} tally;

static void spin(void *user, unsigned member)
{
    tally *t = user;
    for (uint64_t i = 0; i < t->turns; i++)
        (*(volatile uint64_t *)&t->done[member])++;
}

static void a_team(void **state)
{
    int processors[8];
    team t;
    complaint why = {""};
    tally work = {0};
    pki_limit limit;
    (void)state;
    unsigned count = team_processors(processors, 4);
    assert_true(count >= 1 && count <= 4);
    assert_true(team_make(&t, processors, count, &why));
    const rates_work rates = {spin, &work, &work.turns, 2};
    rates_measure(&t, &rates, 3, &limit);
    assert_int_equal(limit.rounds, 3);
    assert_true(limit.worst <= limit.median && limit.median <= limit.best);
    for (unsigned i = 0; i < count; i++)
        assert_true(work.done[i] >= 3 * work.turns && work.done[i] == work.done[0]);
    assert_true(t.wanted > 0);
    team_finish(&t);
}

static void rounds_in_figures(void **state)
{
    double odd[] = {3, 9, 1}, even[] = {4e9, 1e9, 2e9, 3e9}, tiny[] = {0.25};
    pki_limit l;
    (void)state;
    rates_summarise(odd, 3, &l);
    assert_true(l.best == 9 && l.median == 3 && l.worst == 1 && l.rounds == 3);
    rates_summarise(even, 4, &l);
    assert_true(l.best == 4000000000 && l.median == 2500000000 && l.worst == 1000000000);
    rates_summarise(tiny, 1, &l); /* a file has no zeros */
    assert_true(l.best == 1 && l.worst == 1);
}

static void how_large(void **state)
{
    machine_found f = {.processors = 6, .environment = {.cgroup_memory_bytes = 0}};
    (void)state;
    /* Two caches of 8 MiB, and one of instructions that does not count. */
    f.environment.cache_count = 3;
    f.environment.caches[0] = (pki_bench_cache){"Data", 1, 1, 32 << 10};
    f.environment.caches[1] = (pki_bench_cache){"Unified", 3, 3, 8 << 20};
    f.environment.caches[2] = (pki_bench_cache){"Instruction", 4, 1, 64 << 20};
    arrays_choose(&f, 1024);
    assert_true(f.cache_known);
    assert_int_equal(f.cache_bytes, 16 << 20);
    assert_true(f.array_bytes <= 64u << 20 && f.array_bytes > 63u << 20);
    arrays_choose(&f, 3);
    assert_true(f.array_bytes <= 1u << 20 && f.array_bytes > 1020u << 10);
    f.environment.cgroup_memory_bytes = 12 << 20; /* a quarter of it, three arrays */
    arrays_choose(&f, 0);
    assert_true(f.array_bytes <= 1u << 20);
    f.environment.cache_count = 0;
    arrays_choose(&f, 1);
    assert_false(f.cache_known);
    assert_true(f.array_bytes > 0);
}

static void arrays_of_threads(void **state)
{
    arrays a;
    complaint why = {""};
    (void)state;
    assert_true(arrays_make(&a, 3, 3 * 4096, &why));
    assert_int_equal(arrays_count(&a), 3 * 512);
    for (unsigned i = 0; i < 3; i++) {
        arrays_touch(&a, i);
        kernel_triad(a.sets[i].a, a.sets[i].b, a.sets[i].c, a.sets[i].count);
    }
    for (unsigned i = 0; i < 3; i++) /* nobody wrote into another's */
        assert_true(a.sets[i].a[511] == 3.5 && a.sets[i].b[0] == 2 && a.sets[i].c[511] == 0.5);
    arrays_free(&a);
}

static void a_folder(void **state)
{
    storage_figures f;
    complaint why = {""};
    (void)state;
    assert_false(storage_measure("/nowhere", 1, &f, &why));
    assert_non_null(strstr(why.text, "/nowhere"));
    why.text[0] = '\0';
    if (!storage_measure(".", 1, &f, &why)) {
        print_message("not measured: %s\n", why.text); /* a full disk, say */
        return;
    }
    assert_int_equal(f.bytes, 1 << 20);
    assert_int_equal(f.write.rounds, 5);
    assert_true(f.read.rounds == (f.direct ? 5 : 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_over_memory),
        cmocka_unit_test(loops_of_arithmetic),
        cmocka_unit_test(a_team),
        cmocka_unit_test(rounds_in_figures),
        cmocka_unit_test(how_large),
        cmocka_unit_test(arrays_of_threads),
        cmocka_unit_test(a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
