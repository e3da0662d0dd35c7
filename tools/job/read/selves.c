/* tools/job/read/selves.c - self times of stages, of the ranks that have them. */
#include "job/job.h"

#include <stdlib.h>

#include "memory.h"

/* One after the other, so the last one says whether it is new. */
void job_selves_note(job_selves *of, size_t rank)
{
    if (of->count && of->ranks[of->count - 1] == rank)
        return;
    if ((of->count & (of->count - 1)) == 0)
        of->ranks = memory_resized(of->ranks, 2 * (of->count + 1) * sizeof *of->ranks);
    of->ranks[of->count++] = (uint32_t)rank;
}

void job_selves_make(job_selves *of, size_t blocks)
{
    of->rows = memory_zeroed(of->count * blocks, sizeof *of->rows);
}

void job_selves_finish(job_selves *of)
{
    free(of->ranks);
    free(of->rows);
}

double *job_selves_row(const job_loop *loop, size_t stage, size_t rank)
{
    const job_selves *of = &loop->selves[stage];
    size_t low = 0, high = of->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (of->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    bool there = low < of->count && of->ranks[low] == rank;
    return there ? of->rows + low * loop->block_count : NULL;
}
