/* lib/core/counter.c - pk/counter.h: a counter's sample, as a record. */
#include <pk/counter.h>

#include <math.h>
#include <string.h>

#include "core/counter.h"
#include "core/join.h"
#include "stats/tally.h"

static void count_dropped(pki_thread *t, uint32_t id, double value, uint64_t ticks)
{
    pki_slot *slot = pki_lost_slot(t, id);
    if (slot->id == id)
        pki_values_add(&t->registry->arena->spans, &t->lost.pool, (pki_values *)slot, value, ticks);
}

static void push(pki_thread *t, uint32_t id, double value, uint64_t ticks)
{
    pki_record r = {ticks, 0, PKI_WHAT(id, PKI_RECORD_COUNTER, 0), 0};
    memcpy(&r.value, &value, sizeof value);
    if (!pki_push_point(t, &r, 1))
        count_dropped(t, id, value, ticks);
}

void pki_counter_record(pki_thread *t, pk_counter *counter, double value, uint64_t ticks)
{
    uint32_t id = pki_counter_id(counter);
    if (id)
        push(t, id, value, ticks);
    else
        pki_bump(&t->points_dropped, 1);
}

bool pki_counters_record(pki_thread *t, const uint32_t *ids, const double *values, unsigned n,
                         uint64_t ticks, uint64_t extra)
{
    pki_record all[PKI_COUNTERS_MOST];
    for (unsigned i = 0; i < n; i++) {
        all[i] =
            (pki_record){ticks, 0, PKI_WHAT(ids[i], PKI_RECORD_COUNTER, 0), i == n - 1 ? extra : 0};
        memcpy(&all[i].value, &values[i], sizeof values[i]);
    }
    if (!pki_push(t, all, n, 0))
        return false;
    pki_bump(&t->others, n);
    pki_bump(&t->points_pushed, n);
    return true;
}

static void set(pk_counter *counter, double value)
{
    uint32_t id = pki_counter_id(counter);
    pki_thread *t = pki_thread_join();
    if (!t) {
        pki_registry_refuse_point();
        return;
    }
    if (id == 0 || !isfinite(value)) {
        pki_bump(isfinite(value) ? &t->points_dropped : &t->not_finite, 1);
        return;
    }
    push(t, id, value, pki_ticks(t->monotonic));
}

void pk_counter_set_on_(pk_counter *counter, double value)
{
    if (!pki_enter()) {
        pki_registry_refuse_point();
        return;
    }
    set(counter, value);
    pki_leave();
}
