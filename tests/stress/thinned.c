/* Regions that are thinned, more and less and not at all, while threads call them: nested, one
 * after the other, left open, with bytes, in short-lived threads and small rings. In the end each
 * call has been counted once, and each region that was left open, too.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "core/registry.h"
#include "core/thin.h"
#include "kit.h"

enum { REGIONS = 5, THREADS = 8, LIVES = 6, TURNS = 10000 /* of each life */ };

/* The last two are one name in two files, so to say. */
static pk_region regions[REGIONS] = {PK_REGION("outer"), PK_REGION("work"), PK_REGION("leaf"),
                                     PK_REGION("shared"), PK_REGION("shared")};
static bool going;

typedef struct sums {
    uint64_t calls[REGIONS], unbalanced, bytes;
} sums;

static void begin(sums *s, unsigned which)
{
    s->calls[which]++;
    pk_region_begin(&regions[which]);
}

static void end(unsigned which)
{
    pk_region_end(&regions[which]);
}

static void leaves(sums *s, unsigned n)
{
    begin(s, 2);
    for (unsigned i = 0; i < n; i++) {
        pk_region_next(&regions[2], &regions[2]);
        s->calls[2]++;
    }
    end(2);
}

/* Now and then the end of the outer region closes what is open inside. */
static void turn(sums *s, uint64_t random)
{
    bool leave_open = random % 7 == 0;
    begin(s, 0);
    begin(s, 1);
    pk_region_add(&regions[1], 3, 0);
    s->bytes += 3;
    leaves(s, (unsigned)(random % 3));
    begin(s, 3 + random % 2);
    if (!leave_open) {
        end(4 - random % 2);
        end(1);
    }
    s->unbalanced += leave_open ? 2 : 0;
    end(0);
    if (random % 64 == 0)
        pk_step(1);
}

static void *live(void *argument)
{
    sums *s = argument;
    uint64_t random = (uint64_t)(uintptr_t)s;
    for (int i = 0; i < (int)kit_scaled(TURNS); i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        turn(s, random >> 33);
    }
    return NULL;
}

static void *succeed(void *argument)
{
    pthread_t one;
    for (int i = 0; i < LIVES; i++) {
        must(pthread_create(&one, NULL, live, argument) == 0);
        must(pthread_join(one, NULL) == 0);
    }
    return NULL;
}

/* What session/collector/thinning.c does, at random. */
static void *change(void *argument)
{
    static const uint32_t thins[] = {0, 2, 8, 64, PKI_THIN_UNTRACED, 512};
    uint64_t round = 0;
    (void)argument;
    while (__atomic_load_n(&going, __ATOMIC_RELAXED)) {
        pki_thin_set(pki_region_id(&regions[round % 4]), thins[round / 4 % 6]);
        pki_registry_lock();
        pki_thin_watch(pki_registry_now(), round % 3 == 0);
        pki_registry_unlock();
        if (round++ % 16 == 0)
            pk_flush();
        kit_sleep_us(300);
    }
    return NULL;
}

static uint64_t count_of(unsigned which)
{
    static pk_stats stats;
    uint64_t in_buckets = 0;
    assert_int_equal(pk_region_stats(&regions[which], &stats), PK_OK);
    for (unsigned b = 0; b < PK_STATS_BUCKETS; b++)
        in_buckets += stats.buckets[b];
    assert_int_equal(in_buckets, stats.count);
    assert_true(stats.untimed < stats.count);
    assert_int_equal(stats.untimed > 0, stats.sampling_error > 0);
    return stats.count;
}

static void check(const sums *all)
{
    pk_counts c = {.size = sizeof c};
    pk_stats stats;
    uint64_t calls = 0;
    for (unsigned i = 0; i < REGIONS; i++)
        calls += all->calls[i];
    assert_int_equal(pk_get_counts(&c), PK_OK);
    assert_int_equal(c.recorded + c.dropped, c.begun);
    assert_int_equal(c.begun, calls);
    assert_int_equal(c.unbalanced, all->unbalanced);
    assert_int_equal(c.stray_ends, 0);
    assert_true(c.untimed > 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(count_of(i), all->calls[i]);
    assert_int_equal(count_of(3), all->calls[3] + all->calls[4]);
    assert_int_equal(pk_region_stats(&regions[1], &stats), PK_OK);
    assert_int_equal(stats.bytes, all->bytes);
}

static void run(const pk_options *options)
{
    static sums each[THREADS];
    pthread_t threads[THREADS], changer;
    sums all = {{0}, 0, 0};
    memset(each, 0, sizeof each);
    assert_int_equal(pk_start(options), PK_OK);
    pki_thin_set(pki_region_id(&regions[2]), 8); /* though `change` may not get a processor */
    __atomic_store_n(&going, true, __ATOMIC_RELAXED);
    must(pthread_create(&changer, NULL, change, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, succeed, &each[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        must(pthread_join(threads[i], NULL) == 0);
        for (unsigned k = 0; k < REGIONS; k++)
            all.calls[k] += each[i].calls[k];
        all.unbalanced += each[i].unbalanced;
        all.bytes += each[i].bytes;
    }
    __atomic_store_n(&going, false, __ATOMIC_RELAXED);
    must(pthread_join(changer, NULL) == 0);
    assert_int_equal(pk_stop(), PK_OK);
    check(&all);
    pki_thin_reset();
}

static void counts_stay_exact(void **state)
{
    (void)state;
    run(pk_options(.backends = "none"));
}

static void in_small_rings_too(void **state)
{
    (void)state;
    run(pk_options(.backends = "none", .ring_records = 64, .report_threads = 1));
}

static void without_a_cycle_counter(void **state)
{
    (void)state;
    run(pk_options(.backends = "none", .clock = "monotonic"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_stay_exact),
        cmocka_unit_test(in_small_rings_too),
        cmocka_unit_test(without_a_cycle_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
