#include "job/read/roles.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/stats/samples.h"
#include "memory.h"

/* By rank: its blocks with steps. */
static uint32_t *blocks_of(const job *j, const job_loop *loop)
{
    uint32_t *there = memory_zeroed(j->rank_count, sizeof *there);
    for (size_t b = 0; b < loop->block_count; b++)
        for (size_t r = 0; r < j->rank_count; r++)
            there[r] += loop->steps[job_cell(j, b, r)] > 0;
    return there;
}

/* In at least half of the rank's blocks. */
static bool has_stage(const double *row, size_t blocks, size_t there)
{
    size_t has = 0;
    for (size_t b = 0; b < blocks; b++)
        has += row[b] > 0;
    return there && 2 * has >= there;
}

/* One that stands for those that had no room (measure/steps/stages.h). */
static bool is_several(const job_stage *stage)
{
    return strncmp(stage->name, "(other", 6) == 0;
}

/* ns per step in the middle of the blocks, as a rank may lack a processor in some; 0: it has none.
 */
static double usual_time(const job *j, const job_loop *loop, size_t stage, size_t rank)
{
    const double *row = job_selves_row(loop, stage, rank);
    double *times = memory_zeroed(loop->block_count, sizeof *times), usual;
    size_t count = 0;
    for (size_t b = 0; row && b < loop->block_count; b++)
        if (loop->steps[job_cell(j, b, rank)] > 0)
            times[count++] = row[b] / loop->steps[job_cell(j, b, rank)];
    usual = count ? pki_samples_select_median(times, count) : 0;
    free(times);
    return usual;
}

/* By rank, then by kind: such times of stages that had no room, as far as they may be of that kind.
 */
static double *find_several(const job *j, const job_loop *loop)
{
    double *several = memory_zeroed(j->rank_count * PKI_KINDS, sizeof *several);
    for (size_t k = 0; k + 1 < j->stage_count; k++)
        for (size_t r = 0; is_several(&j->stages[k]) && r < j->rank_count; r++)
            for (uint32_t kind = 0; kind < PKI_KINDS; kind++)
                if (kind == j->stages[k].kind || j->stages[k].kind == PK_OTHER)
                    several[r * PKI_KINDS + kind] += usual_time(j, loop, k, r);
    return several;
}

/* Each rank has room for the longest stages alone, and which these are may be chance. Is there one
 * that tells nothing of this stage, where it may be among those that had no room? */
static bool may_be_hidden(const job *j, const job_loop *loop, size_t stage, const char *texts,
                          const double *several)
{
    const job_selves *of = &loop->selves[stage];
    double *times = memory_zeroed(of->count + 1, sizeof *times), usual = 0;
    uint32_t kind = j->stages[stage].kind;
    bool hidden = false;
    for (size_t i = 0; i < of->count; i++)
        times[i] = usual_time(j, loop, stage, of->ranks[i]);
    if (of->count)
        usual = pki_samples_select_median(times, of->count);
    for (size_t r = 0; r < j->rank_count && kind < PKI_KINDS; r++) {
        double told = several[r * PKI_KINDS + kind];
        hidden |= texts[r * j->stage_count + stage] == '0' && told > 0 && told >= usual / 2;
    }
    free(times);
    return hidden;
}

static void forget_hidden(const job *j, const job_loop *loop, char *texts)
{
    double *several = find_several(j, loop);
    for (size_t k = 0; k + 1 < j->stage_count; k++)
        if (is_several(&j->stages[k]) || may_be_hidden(j, loop, k, texts, several))
            for (size_t r = 0; r < j->rank_count; r++)
                texts[r * j->stage_count + k] = '0';
    free(several);
}

/* A text of each rank: a digit for each stage but what is outside of all. */
static char *signatures(const job *j, const job_loop *loop)
{
    size_t last = j->stage_count - 1;
    char *texts = memory_zeroed(j->rank_count, j->stage_count);
    uint32_t *there = blocks_of(j, loop);
    for (size_t r = 0; r < j->rank_count; r++)
        memset(texts + r * j->stage_count, '0', last);
    for (size_t k = 0; k < last; k++) {
        const job_selves *of = &loop->selves[k];
        for (size_t i = 0; i < of->count && !j->stages[k].waits; i++)
            if (has_stage(of->rows + i * loop->block_count, loop->block_count, there[of->ranks[i]]))
                texts[of->ranks[i] * j->stage_count + k] = '1';
    }
    forget_hidden(j, loop, texts);
    free(there);
    return texts;
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
    char *texts = loop ? signatures(j, loop) : NULL;
    table known = {0};
    for (size_t r = 0; loop && r < j->rank_count; r++)
        roles[r] = table_add(&known, texts + r * j->stage_count);
    *count = known.count ? join_single(roles, j->rank_count, known.count) : 0;
    table_finish(&known);
    free(texts);
    return roles;
}

size_t *job_ranks_by_host(const job *j, size_t *begins)
{
    size_t *order = memory_zeroed(j->rank_count, sizeof *order), hosts = j->hosts.count;
    for (size_t r = 0; r < j->rank_count; r++)
        begins[j->ranks[r].host + 1]++;
    for (size_t h = 0; h < hosts; h++)
        begins[h + 1] += begins[h];
    for (size_t r = j->rank_count; r-- > 0;)
        order[--begins[j->ranks[r].host + 1]] = r;
    for (size_t h = 0; h < hosts; h++)
        begins[h] = begins[h + 1];
    begins[hosts] = j->rank_count;
    return order;
}
