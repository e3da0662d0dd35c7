#include "job/verdicts/processors.h"

#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "bench/stats/samples.h"
#include "memory.h"

static int by_number(const void *x, const void *y)
{
    const job_processor_look *a = x, *b = y;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

/* Those on end of which the sum beyond JOB_SLOW_FROM is the most (Kadane's). */
static size_t find_stretch(const job_processor_look *looks, size_t count, size_t *begin)
{
    double sum = 0, most = 0;
    size_t from = 0, length = 0;
    for (size_t i = 0; i < count; i++) {
        if (sum <= 0) {
            sum = 0;
            from = i;
        }
        sum += looks[i].by - log1p(JOB_SLOW_FROM);
        if (sum > most) {
            most = sum;
            *begin = from;
            length = i + 1 - from;
        }
    }
    return length;
}

/* The number of the last step of a block, of the rank that has most. */
static uint64_t last_step(const job *j, size_t block)
{
    const job_loop *loop = job_usual(j);
    double steps = 1;
    for (size_t r = 0; r < j->rank_count; r++)
        steps = PKI_MAX(steps, loop->steps[job_cell(j, block, r)]);
    return loop->first[block] + (uint64_t)steps - 1;
}

static void judge(const job *j, uint32_t host, const job_processor_look *looks, size_t count,
                  job_processors *p)
{
    size_t begin = 0, length = find_stretch(looks, count, &begin);
    if (length < JOB_SLOW_BLOCKS)
        return;
    job_slow_processor slow = {.host = host, .number = looks->number};
    double *by = memory_zeroed(length, sizeof *by);
    for (size_t i = 0; i < length; i++) {
        by[i] = looks[begin + i].by;
        slow.ranks = PKI_MAX(slow.ranks, looks[begin + i].ranks);
    }
    pki_samples_sort(by, length);
    bool surely = pki_samples_quantile(by, length, 0.25) >= log1p(JOB_SLOW_SURELY);
    slow.by = expm1(pki_samples_median(by, length));
    free(by);
    if (!surely)
        return;
    slow.first = job_usual(j)->first[looks[begin].block];
    slow.last = last_step(j, looks[begin + length - 1].block);
    p->slow = memory_resized(p->slow, (p->slow_count + 1) * sizeof *p->slow);
    p->slow[p->slow_count++] = slow;
}

void job_find_slow(const job *j, uint32_t host, job_processor_look *looks, size_t count,
                   job_processors *p)
{
    if (count)
        qsort(looks, count, sizeof *looks, by_number);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && looks[i + n].number == looks[i].number;)
            n++;
        judge(j, host, looks + i, n, p);
    }
}
