/* Memory of devices by pools, and in parts of a run: what windows have adds up to the run's. */
#include "folder.h"

#include "measure/memory/gpu.h"
#include "measure/window/costs.h"
#include "out/report/report.h"

static const char *name_of(uint32_t id)
{
    return id == 1 ? "a" : NULL;
}

static void take(pki_gpu_account *a, uint64_t ns, uint64_t at, uint64_t bytes)
{
    pki_gpu_account_do(
        a, &(pki_gpu_operation){
               .ns = ns, .address = at, .bytes = bytes, .region = 1, .known_region = true});
}

static void give(pki_gpu_account *a, uint64_t ns, uint64_t at)
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

static pki_summary summary_of(const pki_gpu_account *a)
{
    pki_summary s;
    pki_summary_init(&s);
    s.gpu_memory.asked = 1;
    assert_true(pki_gpu_account_fill(a, name_of, 0, &s.gpu_memory));
    return s;
}

/* ---- pools ---- */

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
    pki_summary s = summary_of(a);
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
    pki_summary s = summary_of(a);
    const pki_gpu_memory_place *p = &s.gpu_memory.places[0];
    assert_int_equal(p->pool_count, PKI_GPU_POOLS);
    assert_true(p->pools[0].pool == 0 && p->pools[PKI_GPU_POOLS - 1].pool == 998);
    assert_true(p->pool_reserved == 10 && p->most_reserved == 15 && !a->pools_beyond);
    pki_summary_finish(&s);
    free_account(a);
}

/* ---- parts ---- */

typedef struct parts {
    pki_window_costs before, sum;
    uint64_t peaks[3];
    size_t count;
} parts;

/* As session/windows/window_costs.c does. */
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
    take(a, 1, 0x100, 1000);
    take(a, 2, 0x200, 5000);
    give(a, 3, 0x200);
    cut(&p, a);
    take(a, 4, 0x300, 200); /* the peak of this part is its own */
    pki_gpu_account_pool(a, 0, 0x10, 64, 32, false);
    pki_gpu_account_pool(a, 2, 0x10, 9, 9, false); /* a device that only comes now */
    cut(&p, a);
    give(a, 5, 0x100);
    cut(&p, a);
    assert_true(p.peaks[0] == 6000 && p.peaks[1] == 1200 && p.peaks[2] == 1200);
    pki_summary whole = summary_of(a), sum;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pool_has_its_own),
        cmocka_unit_test(rows_of_pools_come_again),
        cmocka_unit_test(parts_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
