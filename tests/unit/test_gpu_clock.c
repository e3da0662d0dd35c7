/* The map of a device's clock, and the pool of events: without a driver. */
#include "gpu.h"

#include <math.h>
#include <pthread.h>

#include "backend/cuda/clock.h"
#include "backend/cuda/lane.h"

/* ---- the clock ---- */

typedef struct world {
    double ppm, offset; /* of the device's clock */
    double doubt;       /* of each anchor */
    uint64_t chance;
} world;

static double device_at(const world *w, double host)
{
    return (host - w->offset) * (1 + w->ppm * 1e-6);
}

static double some(world *w) /* -1 .. 1 */
{
    w->chance = w->chance * 6364136223846793005u + 1442695040888963407u;
    return (double)(w->chance >> 11) / (double)(1ull << 52) - 1;
}

static void anchor(pki_cuda_clock *c, world *w, double host)
{
    double error = some(w) * w->doubt;
    pki_cuda_clock_anchor(c, (pki_cuda_point){device_at(w, host), host + error, w->doubt});
}

/* The worst error of what is read within so many seconds, with an anchor every 2 s. */
static double worst(pki_cuda_clock *c, world *w, double from, double until)
{
    double most = 0, last = -1;
    for (double host = from; host < until; host += 10e6) {
        if (fmod(host, 2e9) < 10e6)
            anchor(c, w, host);
        double said = pki_cuda_clock_ns(c, device_at(w, host - 1e6));
        assert_true(said >= last); /* it never runs backwards */
        last = said;
        most = fmax(most, fabs(said - (host - 1e6)));
    }
    return most;
}

static void a_clock_that_drifts(void **state)
{
    static const double rates[] = {0, 5, -5, 40, -40, 150};
    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        pki_cuda_clock c = {0};
        world w = {rates[i], 12345, 8000, 7};
        for (int k = 0; k < 4; k++)
            anchor(&c, &w, (double[]){0, 40e6, 200e6, 1e9}[k]);
        assert_true(worst(&c, &w, 2e9, 20e9) < 330000 * fabs(rates[i]) / 150 + 60000);
        assert_true(worst(&c, &w, 20e9, 200e9) < 3 * w.doubt);
    }
}

/* The temperature changes, and the rate with it: what is said follows. */
static void a_rate_that_changes(void **state)
{
    (void)state;
    pki_cuda_clock c = {0};
    world w = {10, 0, 4000, 3};
    anchor(&c, &w, 0);
    assert_true(worst(&c, &w, 2e9, 100e9) < 60000);
    double device = device_at(&w, 100e9);
    w.ppm = 14;
    w.offset = 100e9 - device / (1 + w.ppm * 1e-6);
    assert_true(worst(&c, &w, 100e9, 300e9) < 30000);
}

/* The machine slept, and the device's clock did not count it: a jump, not a bend of hours. */
static void a_clock_that_stood_still(void **state)
{
    (void)state;
    pki_cuda_clock c = {0};
    world w = {0, 0, 4000, 5};
    anchor(&c, &w, 0);
    worst(&c, &w, 2e9, 10e9);
    w.offset += 3600e9;
    anchor(&c, &w, 3612e9);
    double error = pki_cuda_clock_ns(&c, device_at(&w, 3612.5e9)) - 3612.5e9;
    assert_true(fabs(error) < 3 * w.doubt + 2e5);
}

static void steps_of_a_float(void **state)
{
    (void)state;
    assert_true(pki_cuda_quantum_ns(1000) < 62);
    assert_true(pki_cuda_quantum_ns(-4000) > 240 && pki_cuda_quantum_ns(4000) < 250);
    assert_true(pki_cuda_quantum_ns(60000) > 3900);
}

/* ---- the pool ---- */

static void grown_in_batches(void **state)
{
    (void)state;
    static pki_cuda_pool pool;
    bool seen[129] = {false};
    assert_int_equal(pki_cuda_pool_acquire(&pool), 0);
    for (int batch = 0; batch < 2; batch++)
        assert_int_equal(pki_cuda_pool_grow(&pool, the_context), CUDA_SUCCESS);
    for (unsigned i = 0; i < 128; i++) {
        uint32_t pair = pki_cuda_pool_acquire(&pool);
        assert_in_range(pair, 1, 128);
        assert_false(seen[pair]);
        assert_non_null(pki_cuda_pair_at(&pool, pair)->begin);
        seen[pair] = true;
    }
    assert_int_equal(pki_cuda_pool_acquire(&pool), 0);
    pki_cuda_pool_release(&pool, 77);
    assert_int_equal(pki_cuda_pool_acquire(&pool), 77);
}

static void a_batch_that_fails(void **state)
{
    (void)state;
    static pki_cuda_pool pool;
    unsigned before = gpu->events();
    gpu->let_fail(FAKE_EVENT_CREATE, 11, 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pki_cuda_pool_grow(&pool, the_context), CUDA_SUCCESS);
    assert_int_equal(pool.pairs, 5); /* the sixth has no end */
    assert_int_equal(gpu->events(), before + 10);
    gpu->let_fail(FAKE_EVENT_CREATE, 0, 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pki_cuda_pool_grow(&pool, the_context), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pki_cuda_pool_grow(&pool, the_context), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(pool.batches, 2); /* not tried again until somebody says so */
}

enum { THREADS = 4, ROUNDS = 20000 };
static pki_cuda_pool shared;
static uint32_t holders[65];

/* Nobody has a pair that somebody else has. */
static void *take_and_give(void *arg)
{
    uintptr_t wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t mine[3];
        for (int k = 0; k < 3; k++) {
            mine[k] = pki_cuda_pool_acquire(&shared);
            if (mine[k])
                wrong += __atomic_exchange_n(&holders[mine[k]], 1u, __ATOMIC_RELAXED) != 0;
        }
        for (int k = 0; k < 3; k++)
            if (mine[k]) {
                __atomic_store_n(&holders[mine[k]], 0u, __ATOMIC_RELAXED);
                pki_cuda_pool_release(&shared, mine[k]);
            }
    }
    (void)arg;
    return (void *)wrong;
}

static void by_many_threads(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    assert_int_equal(pki_cuda_pool_grow(&shared, the_context), CUDA_SUCCESS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    unsigned left = 0;
    while (pki_cuda_pool_acquire(&shared))
        left++;
    assert_int_equal(left, 64);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_that_drifts),
        cmocka_unit_test(a_rate_that_changes),
        cmocka_unit_test(a_clock_that_stood_still),
        cmocka_unit_test(steps_of_a_float),
        with_gpu(grown_in_batches),
        with_gpu(a_batch_that_fails),
        with_gpu(by_many_threads),
    };
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
