#include "bench/rounds.h"

#include "base/compiler.h"
#include "bench/fail.h"
#include "bench/counted.h"
#include "bench/plan.h"
#include "bench/stats/sample_stats.h"

#include <stdlib.h>

typedef struct set {
    pki_bench_case **order; /* those that are not done come first */
    size_t left, done, count;
    pki_random random;
    pki_bench_progress *progress;
    void *user;
} set;

static void show(const set *s, const pki_bench_case *c)
{
    if (s->progress)
        s->progress(s->user, c, s->done, s->count);
}

/* True when it needs no more. */
static bool turn(const set *s, pki_bench_case *c)
{
    uint64_t start = pki_bench_now(c);
    pki_bench_sample dropped;
    double each = pki_bench_sample_time(c);
    if (s->count > 1 && each < PKI_BENCH_SETTLE && c->iterations > 1 &&
        !pki_bench_case_run_sample(c, c->iterations, &dropped))
        return true;
    do {
        if (!pki_bench_sample_case(c))
            return true;
    } while (pki_bench_now(c) - start < PKI_BENCH_TURN);
    return false;
}

static void shuffle(set *s)
{
    for (size_t i = s->left; i > 1; i--) {
        size_t j = pki_random_below(&s->random, i);
        pki_bench_case *kept = s->order[i - 1];
        s->order[i - 1] = s->order[j];
        s->order[j] = kept;
    }
}

/* Takes it out; its place is the last one's. */
static void retire(set *s, size_t i)
{
    s->order[i] = s->order[--s->left];
    s->done++;
}

static void measure_in_rounds(set *s)
{
    while (s->left) {
        shuffle(s);
        for (size_t i = 0; i < s->left;) {
            show(s, s->order[i]);
            if (turn(s, s->order[i]))
                retire(s, i);
            else
                i++;
        }
    }
}

static pk_status prepare(set *s, pki_bench_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pk_status status = pki_bench_case_open(&cases[i]);
        if (status != PK_OK)
            return status;
        show(s, &cases[i]);
        if (pki_bench_case_is_fine(&cases[i]) && pki_bench_warm(&cases[i]))
            s->order[s->left++] = &cases[i];
        else
            s->done++;
    }
    return PK_OK;
}

static pk_status run_group(set *s, pki_bench_case *cases, size_t count)
{
    pk_status status = prepare(s, cases, count);
    if (status == PK_OK) {
        measure_in_rounds(s);
        for (size_t i = 0; i < count; i++)
            pki_bench_count_events(&cases[i]);
    }
    for (size_t i = 0; i < count; i++)
        pki_bench_case_close(&cases[i]);
    s->left = 0;
    return status;
}

pk_status pki_bench_run_rounds(pki_bench_case *cases, size_t count, bool together, uint64_t seed,
                               pki_bench_progress *progress, void *user)
{
    pki_bench_case **order = calloc(count + 1, sizeof *order);
    set s = {order, 0, 0, together ? count : 1, {seed}, progress, user};
    pk_status status = PK_OK;
    if (!order)
        return pki_bench_fail(PK_ENOMEM, "no memory to list %zu benchmarks", count);
    if (together)
        status = run_group(&s, cases, count);
    for (size_t i = 0; !together && i < count && status == PK_OK; i++)
        status = run_group(&s, &cases[i], 1);
    show(&s, NULL);
    free(order);
    return status;
}
