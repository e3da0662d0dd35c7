/* tests/unit/spares.h - a session with small rings and spare segments, taken at a test's word.
 *
 * The lock under which the collector takes records is held, as in test_ring.c; a ring of 64 records
 * holds 63, and so does a segment.
 */
#ifndef TESTS_SPARES_H
#define TESTS_SPARES_H

#include "session.h"

#include <pthread.h>

#include "core/ring.h"
#include "session/session.h"

enum { RING = 64, HOLDS = RING - 1 };

static inline pki_spares *the_spares(void)
{
    return &pki_the_session.registry->spares;
}

static inline bool make_one(void)
{
    return pki_spare_make(the_spares(), pki_the_session.arena, RING * sizeof(pki_record),
                          PKI_SPARES_MOST);
}

static inline uint32_t count_free(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < the_spares()->count; i++)
        n += pki_spare_state_of(pki_load(&the_spares()->all[i].word)) == PKI_SPARE_FREE;
    return n;
}

/* Without the lock: what is there has been taken. */
static inline int start_with_spares(const char *trace, unsigned count)
{
    static pk_region joins = PK_REGION("joins");
    if (pk_start(pk_options(.backends = "none", .trace_path = trace,
                            .tuning = kit_tuning(
                                "clock=%s,ring_records=%u,report_threads=1,flush_ms=3600000",
                                the_clock, RING))))
        return -1;
    pk_region_mark(&joins);
    pk_flush();
    pthread_mutex_lock(&pki_drain_lock);
    for (unsigned i = 0; i < count; i++)
        assert_true(make_one());
    return 0;
}

static inline void let_go(void)
{
    pthread_mutex_unlock(&pki_drain_lock);
    assert_int_equal(pk_flush(), PK_OK);
    pthread_mutex_lock(&pki_drain_lock);
}

static inline pk_counts stop_now(void)
{
    pthread_mutex_unlock(&pki_drain_lock);
    pk_counts counts = stop_and_count();
    pthread_mutex_lock(&pki_drain_lock);
    return counts;
}

static inline pk_counts count_now(void)
{
    pthread_mutex_unlock(&pki_drain_lock);
    pk_counts counts = counts_now();
    pthread_mutex_lock(&pki_drain_lock);
    return counts;
}

static inline int stop_held(void **state)
{
    pthread_mutex_unlock(&pki_drain_lock);
    return stop_session(state);
}

#endif
