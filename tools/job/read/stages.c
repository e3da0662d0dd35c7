/* tools/job/read/stages.c - the stages of all ranks in one order. */
#include "job/job.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

typedef struct gathering {
    job *of;
    size_t room;
    table names;  /* kind and name, by number... */
    uint32_t *at; /* ...and where in the order that is */
    size_t at_room;
    char *key;
    size_t key_room;
} gathering;

bool job_stages_are_sane(const pki_stage_summary *s)
{
    return s->width == PKI_BLOCK_HEAD + s->stage_count;
}

static void insert(gathering *g, const pki_stage_row *row, uint32_t behind)
{
    job *j = g->of;
    bool waits = row->kind == PK_COMM || row->kind == PK_WAIT;
    memory_fit(&j->stages, &g->room, j->stage_count + 1, sizeof *j->stages);
    memmove(&j->stages[behind + 1], &j->stages[behind],
            (j->stage_count++ - behind) * sizeof *j->stages);
    j->stages[behind] = (job_stage){memory_copy(row->name), row->kind, waits};
    for (uint32_t i = 0; i + 1 < g->names.count; i++)
        g->at[i] += g->at[i] >= behind;
    g->at[g->names.count - 1] = behind;
}

static const char *key_of(gathering *g, const pki_stage_row *row)
{
    size_t length = strlen(row->name);
    memory_fit(&g->key, &g->key_room, length + 2, 1);
    g->key[0] = (char)('0' + row->kind % 64);
    memcpy(g->key + 1, row->name, length + 1);
    return g->key;
}

/* A stage that no rank before had comes behind the one that it comes behind here. Answers with
 * their numbers. */
static uint32_t *add_stages(gathering *g, const pki_stage_summary *s)
{
    uint32_t *numbers = memory_zeroed(s->stage_count, sizeof *numbers), behind = 0;
    for (size_t i = 0; i < s->stage_count; i++) {
        uint32_t known = g->names.count;
        numbers[i] = table_add(&g->names, key_of(g, &s->stages[i]));
        memory_fit(&g->at, &g->at_room, g->names.count, sizeof *g->at);
        if (numbers[i] == known)
            insert(g, &s->stages[i], behind);
        behind = g->at[numbers[i]] + 1;
    }
    return numbers;
}

/* Where nobody says what is waiting, ranks wait where they are in no region, if anywhere. */
static void add_outside(gathering *g)
{
    job *j = g->of;
    j->outside_waits = j->stage_count > 0;
    for (size_t k = 0; k < j->stage_count; k++)
        j->outside_waits = j->outside_waits && !j->stages[k].waits;
    memory_fit(&j->stages, &g->room, j->stage_count + 1, sizeof *j->stages);
    j->stages[j->stage_count++] =
        (job_stage){memory_copy(JOB_OUTSIDE), PKI_UNTRACKED, j->outside_waits};
}

uint32_t **job_index_stages(job *j)
{
    gathering g = {.of = j};
    uint32_t **places = memory_zeroed(j->rank_count, sizeof *places);
    for (size_t r = 0; r < j->rank_count; r++)
        if (job_stages_are_sane(&j->ranks[r].stages))
            places[r] = add_stages(&g, &j->ranks[r].stages);
    for (size_t r = 0; r < j->rank_count; r++)
        for (size_t i = 0; places[r] && i < j->ranks[r].stages.stage_count; i++)
            places[r][i] = g.at[places[r][i]];
    add_outside(&g);
    table_finish(&g.names);
    free(g.at);
    free(g.key);
    return places;
}

void job_stage_index_free(const job *j, uint32_t **places)
{
    for (size_t r = 0; r < j->rank_count; r++)
        free(places[r]);
    free(places);
}
