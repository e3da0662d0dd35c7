#include "job/roles.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* In at least half of the rank's blocks. */
static bool has_stage(const job *j, const job_loop *loop, size_t stage, size_t rank)
{
    size_t there = 0, has = 0;
    for (size_t b = 0; b < loop->block_count; b++) {
        size_t cell = job_cell(j, b, rank);
        there += loop->steps[cell] > 0;
        has += loop->selves[stage][cell] > 0;
    }
    return there && 2 * has >= there;
}

static void signature(const job *j, const job_loop *loop, size_t rank, char *text)
{
    size_t last = j->stage_count - 1; /* outside all regions: of no role */
    for (size_t k = 0; k < last; k++)
        text[k] = !j->stages[k].waits && has_stage(j, loop, k, rank) ? '1' : '0';
    text[last] = '\0';
}

static uint32_t most(const size_t *sizes, size_t count)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < count; i++)
        found = sizes[i] > sizes[found] ? i : found;
    return found;
}

/* Those with one member only go, and the others are numbered anew. */
static size_t join_single(uint32_t *roles, size_t ranks, size_t count)
{
    size_t *sizes = memory_zeroed(count, sizeof *sizes), kept = 0;
    uint32_t *number = memory_zeroed(count, sizeof *number);
    for (size_t r = 0; r < ranks; r++)
        sizes[roles[r]]++;
    uint32_t largest = most(sizes, count);
    for (uint32_t i = 0; i < count; i++)
        if (sizes[i] > 1 || i == largest)
            number[i] = (uint32_t)kept++;
    for (uint32_t i = 0; i < count; i++)
        if (sizes[i] <= 1 && i != largest)
            number[i] = number[largest];
    for (size_t r = 0; r < ranks; r++)
        roles[r] = number[roles[r]];
    free(sizes);
    free(number);
    return kept;
}

uint32_t *job_roles(const job *j, size_t *count)
{
    const job_loop *loop = job_usual(j);
    uint32_t *roles = memory_zeroed(j->rank_count, sizeof *roles);
    char *text = memory_zeroed(j->stage_count + 1, 1);
    table known = {0};
    for (size_t r = 0; loop && r < j->rank_count; r++) {
        signature(j, loop, r, text);
        roles[r] = table_add(&known, text);
    }
    *count = known.count ? join_single(roles, j->rank_count, known.count) : 0;
    table_finish(&known);
    free(text);
    return roles;
}
