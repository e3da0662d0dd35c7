/* The account of what is allocated on devices: against a list that is looked through, with
 * operations that come late, and how it looks in reports. */
#include "folder.h"

#include <stdlib.h>

#include "measure/memory/gpu.h"
#include "measure/verdict/verdict.h"
#include "out/report/report.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint64_t seed = 1;

static uint64_t chance(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

static const char *name_of(uint32_t id)
{
    static const char *const names[] = {"", "a", "b", "c", "d", "e", "f", "g", "h", "i"};
    return id < COUNT(names) ? names[id] : NULL;
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

/* ---- exact ---- */

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

/* ---- late ---- */

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

/* ---- pools ---- */

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

/* ---- verdicts ---- */

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
static pki_summary loop(uint64_t steps, uint64_t leak, bool from_pool)
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
    pki_summary s = loop(2000, 1024, false);
    const pki_verdict *v = verdict(&s, "gpu-leak");
    assert_true(v && strstr(v->text, "in \"b\"") && strstr(v->text, "1.02 KB a step"));
    v = verdict(&s, "gpu-allocates");
    assert_true(v && v->value > 1);
    pki_summary_finish(&s);
    for (int i = 0; i < 20; i++) {
        s = loop(500, 0, true);
        assert_null(verdict(&s, "gpu-leak"));
        assert_null(verdict(&s, "gpu-allocates"));
        pki_summary_finish(&s);
    }
}

/* ---- reports ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_a_list),
        cmocka_unit_test(in_any_order),
        cmocka_unit_test(many_pools),
        cmocka_unit_test(near_the_limit),
        cmocka_unit_test(leaks_and_steady_loops),
        cmocka_unit_test(operations_that_are_told_late),
        cmocka_unit_test(in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
