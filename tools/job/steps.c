#include "job/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/stats/samples.h"
#include "measure/overhead.h"
#include "memory.h"

/* ---- in which share of its time a rank was ready to run and had no processor ---- */

double pki_job_crowd_share(const pki_processor *p)
{
    return p->observed >= PKI_PROCESSOR_LEAST_NS ? (double)p->ready / (double)p->observed : 0;
}

bool pki_job_has_run_delay(const pki_job_rank *rank)
{
    const pki_stage_summary *s = &rank->stages;
    for (size_t i = 0; i < s->loop_count; i++)
        if (!*s->loops[i].name)
            return s->loops[i].no_processor_count > 0;
    return false;
}

bool pki_job_is_crowded(const pki_job *j, size_t rank)
{
    return pki_job_crowd_share(&j->ranks[rank].processor) >= PKI_JOB_CROWDED_FROM;
}

/* ---- self times of stages, of the ranks that have them ---- */

/* One after the other, so the last one says whether it is new. */
static void note_selves(pki_job_selves *of, size_t rank)
{
    if (of->count && of->ranks[of->count - 1] == rank)
        return;
    if ((of->count & (of->count - 1)) == 0)
        of->ranks = memory_resized(of->ranks, 2 * (of->count + 1) * sizeof *of->ranks);
    of->ranks[of->count++] = (uint32_t)rank;
}

static void make_selves(pki_job_selves *of, size_t blocks)
{
    of->rows = memory_zeroed(of->count * blocks, sizeof *of->rows);
}

static void finish_selves(pki_job_selves *of)
{
    free(of->ranks);
    free(of->rows);
}

double *pki_job_selves_row(const pki_job_loop *loop, size_t stage, size_t rank)
{
    const pki_job_selves *of = &loop->selves[stage];
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

/* ---- the stages of all ranks in one order ---- */

typedef struct gathering {
    pki_job *of;
    size_t room;
    table names;  /* kind and name, by number... */
    uint32_t *at; /* ...and where in the order that is */
    size_t at_room;
    char *key;
    size_t key_room;
} gathering;

static bool are_sane(const pki_stage_summary *s)
{
    return s->width == PKI_BLOCK_HEAD + s->stage_count;
}

static void insert(gathering *g, const pki_stage_row *row, uint32_t behind)
{
    pki_job *j = g->of;
    bool waits = row->kind == PK_COMM || row->kind == PK_WAIT;
    memory_fit(&j->stages, &g->room, j->stage_count + 1, sizeof *j->stages);
    memmove(&j->stages[behind + 1], &j->stages[behind],
            (j->stage_count++ - behind) * sizeof *j->stages);
    j->stages[behind] = (pki_job_stage){memory_copy(row->name), row->kind, waits};
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
    pki_job *j = g->of;
    j->outside_waits = j->stage_count > 0;
    for (size_t k = 0; k < j->stage_count; k++)
        j->outside_waits = j->outside_waits && !j->stages[k].waits;
    memory_fit(&j->stages, &g->room, j->stage_count + 1, sizeof *j->stages);
    j->stages[j->stage_count++] =
        (pki_job_stage){memory_copy(PKI_JOB_OUTSIDE), PKI_UNTRACKED, j->outside_waits};
}

/* stages.c: the stages of all ranks, in an order, and behind them what is outside of all. Where in
 * it those of each rank stand: by rank, then by its own stage; to be freed with the next one. */
static uint32_t **index_stages(pki_job *j)
{
    gathering g = {.of = j};
    uint32_t **places = memory_zeroed(j->rank_count, sizeof *places);
    for (size_t r = 0; r < j->rank_count; r++)
        if (are_sane(&j->ranks[r].stages))
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

static void free_index(const pki_job *j, uint32_t **places)
{
    for (size_t r = 0; r < j->rank_count; r++)
        free(places[r]);
    free(places);
}

/* ---- which ranks do the same work ---- */

/* By rank: its blocks with steps. */
static uint32_t *blocks_of(const pki_job *j, const pki_job_loop *loop)
{
    uint32_t *there = memory_zeroed(j->rank_count, sizeof *there);
    for (size_t b = 0; b < loop->block_count; b++)
        for (size_t r = 0; r < j->rank_count; r++)
            there[r] += loop->steps[pki_job_cell(j, b, r)] > 0;
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
static bool is_several(const pki_job_stage *stage)
{
    return strncmp(stage->name, "(other", 6) == 0;
}

/* ns per step in the middle of the blocks, as a rank may lack a processor in some; 0: it has none.
 */
static double usual_time(const pki_job *j, const pki_job_loop *loop, size_t stage, size_t rank)
{
    const double *row = pki_job_selves_row(loop, stage, rank);
    double *times = memory_zeroed(loop->block_count, sizeof *times), usual;
    size_t count = 0;
    for (size_t b = 0; row && b < loop->block_count; b++)
        if (loop->steps[pki_job_cell(j, b, rank)] > 0)
            times[count++] = row[b] / loop->steps[pki_job_cell(j, b, rank)];
    usual = count ? pki_samples_select_median(times, count) : 0;
    free(times);
    return usual;
}

/* By rank, then by kind: such times of stages that had no room, as far as they may be of that kind.
 */
static double *find_several(const pki_job *j, const pki_job_loop *loop)
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
static bool may_be_hidden(const pki_job *j, const pki_job_loop *loop, size_t stage,
                          const char *texts, const double *several)
{
    const pki_job_selves *of = &loop->selves[stage];
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

static void forget_hidden(const pki_job *j, const pki_job_loop *loop, char *texts)
{
    double *several = find_several(j, loop);
    for (size_t k = 0; k + 1 < j->stage_count; k++)
        if (is_several(&j->stages[k]) || may_be_hidden(j, loop, k, texts, several))
            for (size_t r = 0; r < j->rank_count; r++)
                texts[r * j->stage_count + k] = '0';
    free(several);
}

/* A text of each rank: a digit for each stage but what is outside of all. */
static char *signatures(const pki_job *j, const pki_job_loop *loop)
{
    size_t last = j->stage_count - 1;
    char *texts = memory_zeroed(j->rank_count, j->stage_count);
    uint32_t *there = blocks_of(j, loop);
    for (size_t r = 0; r < j->rank_count; r++)
        memset(texts + r * j->stage_count, '0', last);
    for (size_t k = 0; k < last; k++) {
        const pki_job_selves *of = &loop->selves[k];
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

uint32_t *pki_job_roles(const pki_job *j, size_t *count)
{
    const pki_job_loop *loop = pki_job_usual(j);
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

size_t *pki_job_ranks_by_host(const pki_job *j, size_t *begins)
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

/* ---- the steps of all ranks, block beside block ---- */

/* Each rank has its steps in blocks, as long as it has made many of them (measure/steps/stages.h).
 * Where a block begins in all ranks that have these steps, one begins here: so a rank that has
 * joined its blocks once more makes all others join theirs. */

/* The blocks of one rank's steps of one kind. */
typedef struct blocks {
    const uint64_t *numbers, *no_processor, *seats; /* NULL: not known */
    size_t count, width;
} blocks;

static const uint64_t *block_at(const blocks *b, size_t i)
{
    return b->numbers + i * b->width;
}

static uint64_t first_of(const blocks *b, size_t i)
{
    return block_at(b, i)[PKI_BLOCK_INDEX];
}

/* The number behind its last step, as far as one knows: steps of other kinds may lie between. */
static uint64_t end_of(const blocks *b)
{
    const uint64_t *last = b->count ? block_at(b, b->count - 1) : NULL;
    return last ? last[PKI_BLOCK_INDEX] + PKI_MAX(last[PKI_BLOCK_STEPS], 1) : 0;
}

static const pki_loop_row *loop_named(const pki_stage_summary *s, const char *name)
{
    for (size_t i = 0; i < s->loop_count; i++)
        if (strcmp(s->loops[i].name, name) == 0)
            return &s->loops[i];
    return NULL;
}

/* Without those that begin before `from`, and those outside the steps that are wanted. */
static blocks loops_blocks_of(const pki_job_rank *r, const char *name, uint64_t from,
                              const pki_job_steps *steps)
{
    const pki_loop_row *row = are_sane(&r->stages) ? loop_named(&r->stages, name) : NULL;
    if (!row)
        return (blocks){0};
    blocks b = {.numbers = row->numbers,
                .count = row->number_count / r->stages.width,
                .width = r->stages.width};
    if (b.count && row->no_processor_count == b.count)
        b.no_processor = row->no_processor;
    if (b.count && row->seat_count == 2 * b.count)
        b.seats = row->seats;
    while ((b.count > 1 && first_of(&b, 0) < from) ||
           (b.count && steps->given && first_of(&b, 0) < steps->first)) {
        b.numbers += b.width;
        b.no_processor += b.no_processor != NULL;
        b.seats += b.seats ? 2 : 0;
        b.count--;
    }
    while (b.count && steps->given &&
           first_of(&b, b.count - 1) + block_at(&b, b.count - 1)[PKI_BLOCK_STEPS] > steps->last + 1)
        b.count--;
    return b;
}

/* ---- where blocks begin ---- */

typedef struct bounds {
    uint64_t *at; /* ascending */
    size_t count, room;
    uint64_t end;
} bounds;

static void put_bound(bounds *to, uint64_t at)
{
    memory_fit(&to->at, &to->room, to->count + 1, sizeof *to->at);
    to->at[to->count++] = at;
}

/* What both have, and what only one of them can have. */
static void meet(bounds *all, const blocks *b)
{
    bounds met = {.end = PKI_MAX(all->end, end_of(b))};
    uint64_t begin = first_of(b, 0), end = end_of(b), all_begin = all->at[0];
    size_t i = 0, k = 0;
    while (i < all->count || k < b->count) {
        uint64_t x = i < all->count ? all->at[i] : UINT64_MAX;
        uint64_t y = k < b->count ? first_of(b, k) : UINT64_MAX;
        uint64_t least = PKI_MIN(x, y);
        bool both = x == y,
             outside = x < y ? x < begin || x >= end : y < all_begin || y >= all->end;
        if (both || outside)
            put_bound(&met, least);
        i += x == least;
        k += y == least;
    }
    free(all->at);
    *all = met;
}

static bool is_alike(const bounds *all, const blocks *b)
{
    if (all->count != b->count || all->end != end_of(b))
        return false;
    for (size_t i = 0; i < b->count; i++)
        if (all->at[i] != first_of(b, i))
            return false;
    return true;
}

static void add_bounds(bounds *all, const blocks *b)
{
    if (!b->count || is_alike(all, b))
        return;
    if (all->count) {
        meet(all, b);
        return;
    }
    for (size_t i = 0; i < b->count; i++)
        put_bound(all, first_of(b, i));
    all->end = end_of(b);
}

/* ---- cells ---- */

static void make_cells(const pki_job *j, pki_job_loop *loop, const bounds *all)
{
    size_t cells = all->count * j->rank_count;
    loop->block_count = all->count;
    loop->first = all->at;
    loop->steps = memory_zeroed(cells, sizeof(double));
    loop->time = memory_zeroed(cells, sizeof(double));
    loop->own = memory_zeroed(cells, sizeof(double));
    loop->items = memory_zeroed(cells, sizeof(double));
    loop->ready = memory_zeroed(cells, sizeof(double));
    loop->maybe = memory_zeroed(cells, sizeof(double));
    loop->seats = memory_zeroed(cells, sizeof *loop->seats);
    for (size_t k = 0; k < j->stage_count; k++)
        make_selves(&loop->selves[k], all->count);
}

/* Of a rank: the rows of its own stages, and of what is outside of them. */
typedef struct rows {
    size_t count;
    const uint32_t *places;
    double **own, *outside;
} rows;

static void add_block(const pki_job *j, pki_job_loop *loop, size_t rank, size_t at,
                      const uint64_t *block, const rows *to)
{
    size_t cell = pki_job_cell(j, at, rank);
    double inside = 0, waited = 0, time = (double)block[PKI_BLOCK_TIME];
    for (size_t i = 0; i < to->count; i++) {
        double self = (double)block[PKI_BLOCK_HEAD + i];
        to->own[i][at] += self;
        inside += self;
        waited += j->stages[to->places[i]].waits ? self : 0;
    }
    /* A step without a breakdown, or one whose stages overlap: never less than what is known. */
    time = PKI_MAX(time, inside);
    to->outside[at] += time - inside;
    waited += j->outside_waits ? time - inside : 0;
    loop->steps[cell] += (double)block[PKI_BLOCK_STEPS];
    loop->items[cell] += (double)block[PKI_BLOCK_ITEMS];
    loop->time[cell] += time;
    loop->own[cell] += time - waited;
}

/* Of a rank whose borders nobody told it is known of the run as a whole, and all of that may be its
 * own time. Who was told has no more than there is (core/ready.h rounds up). */
static void bound_ready(const pki_job *j, pki_job_loop *loop, size_t rank, bool told)
{
    double share = told ? 0 : pki_job_crowd_share(&j->ranks[rank].processor);
    for (size_t b = 0; b < loop->block_count; b++) {
        size_t cell = pki_job_cell(j, b, rank);
        double most = loop->ready[cell] + share * loop->time[cell];
        loop->ready[cell] = PKI_MIN(loop->ready[cell], loop->own[cell]);
        loop->maybe[cell] = PKI_MIN(most, loop->own[cell]);
    }
}

static void find_rows(const pki_job *j, const pki_job_loop *loop, size_t rank, rows *to)
{
    for (size_t i = 0; i < to->count; i++)
        to->own[i] = pki_job_selves_row(loop, to->places[i], rank);
    to->outside = pki_job_selves_row(loop, j->stage_count - 1, rank);
}

/* A file may say anything. */
static pki_seat seat_at(const blocks *b, size_t i)
{
    uint64_t number = b->seats[2 * i], share = b->seats[2 * i + 1];
    if (number > PKI_SEAT_MOST || share > PKI_SEAT_ALL || !share)
        return 0;
    return (pki_seat)(number + 1) | (pki_seat)share << 16;
}

static void add_seats(const pki_job *j, pki_job_loop *loop, size_t rank, const blocks *b)
{
    size_t at = 0;
    pki_seats here = {0};
    for (size_t i = 0; b->seats && i < b->count; i++) {
        pki_seats_add_seat(&here, seat_at(b, i));
        while (at + 1 < loop->block_count && loop->first[at + 1] <= first_of(b, i))
            at++;
        bool more = i + 1 < b->count &&
                    (at + 1 == loop->block_count || first_of(b, i + 1) < loop->first[at + 1]);
        if (more)
            continue;
        loop->seats[pki_job_cell(j, at, rank)] = pki_seats_most(&here);
        here = (pki_seats){0};
    }
}

static void add_rank(const pki_job *j, pki_job_loop *loop, size_t rank, const blocks *b, rows *to)
{
    size_t at = 0;
    find_rows(j, loop, rank, to);
    add_seats(j, loop, rank, b);
    for (size_t i = 0; i < b->count; i++) {
        while (at + 1 < loop->block_count && loop->first[at + 1] <= first_of(b, i))
            at++;
        add_block(j, loop, rank, at, block_at(b, i), to);
        if (b->no_processor)
            loop->ready[pki_job_cell(j, at, rank)] += (double)b->no_processor[i];
    }
    bound_ready(j, loop, rank, b->no_processor != NULL);
}

/* Who has blocks has a row in each of its stages. */
static void note_rows(const pki_job *j, pki_job_loop *loop, size_t rank, const uint32_t *places)
{
    for (size_t i = 0; i < j->ranks[rank].stages.stage_count; i++)
        note_selves(&loop->selves[places[i]], rank);
    note_selves(&loop->selves[j->stage_count - 1], rank);
}

static void add_up_steps(const pki_job *j, pki_job_loop *loop)
{
    loop->made = memory_zeroed(j->rank_count, sizeof *loop->made);
    for (size_t b = 0; b < loop->block_count; b++)
        for (size_t r = 0; r < j->rank_count; r++)
            loop->made[r] += loop->steps[pki_job_cell(j, b, r)];
}

static void add_ranks(const pki_job *j, const char *name, uint64_t from, const pki_job_steps *steps,
                      uint32_t **places, pki_job_loop *loop)
{
    size_t room = 0;
    rows to = {.own = NULL};
    for (size_t r = 0; r < j->rank_count && loop->block_count; r++) {
        blocks b = loops_blocks_of(&j->ranks[r], name, from, steps);
        to.count = j->ranks[r].stages.stage_count;
        to.places = places[r];
        memory_fit(&to.own, &room, to.count, sizeof *to.own);
        if (b.count)
            add_rank(j, loop, r, &b, &to);
    }
    free(to.own);
}

static void make_loop(pki_job *j, const char *name, const pki_job_steps *steps, uint32_t **places,
                      pki_job_loop *loop)
{
    bounds all = {0};
    uint64_t from = *name ? 0 : (uint64_t)j->warmup;
    loop->selves = memory_zeroed(j->stage_count, sizeof *loop->selves);
    for (size_t r = 0; r < j->rank_count; r++) {
        blocks b = loops_blocks_of(&j->ranks[r], name, from, steps);
        add_bounds(&all, &b);
        if (b.count)
            note_rows(j, loop, r, places[r]);
    }
    loop->name = memory_copy(name);
    make_cells(j, loop, &all);
    add_ranks(j, name, from, steps, places, loop);
    add_up_steps(j, loop);
}

void pki_job_loop_finish(pki_job_loop *loop, size_t stages)
{
    for (size_t k = 0; loop->selves && k < stages; k++)
        finish_selves(&loop->selves[k]);
    free(loop->selves);
    free(loop->first);
    free(loop->steps);
    free(loop->made);
    free(loop->time);
    free(loop->own);
    free(loop->items);
    free(loop->ready);
    free(loop->maybe);
    free(loop->seats);
    free(loop->name);
}

/* ---- all kinds ---- */

static void collect_kinds(const pki_job *j, table *kinds)
{
    table_add(kinds, "");
    for (size_t r = 0; r < j->rank_count; r++)
        for (size_t i = 0; i < j->ranks[r].stages.loop_count; i++)
            table_add(kinds, j->ranks[r].stages.loops[i].name);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Warm-up is what most of the ranks call so: a rank that is slow for some steps at first must not
 * take these of all others. */
static void find_warmup(pki_job *j)
{
    uint64_t *all = memory_zeroed(j->rank_count, sizeof *all);
    size_t count = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        blocks b = loops_blocks_of(&j->ranks[r], "", 0, &(pki_job_steps){0});
        if (b.count)
            all[count++] = first_of(&b, 0) + j->ranks[r].stages.warmup;
    }
    if (count)
        qsort(all, count, sizeof *all, by_size);
    j->warmup = count ? (double)all[count / 2] : 0;
    free(all);
}

bool pki_job_make_loops(pki_job *j, const pki_job_steps *steps, complaint *why)
{
    table kinds = {0};
    find_warmup(j);
    collect_kinds(j, &kinds);
    uint32_t **places = index_stages(j);
    j->loops = memory_zeroed(kinds.count, sizeof *j->loops);
    for (uint32_t i = 0; i < kinds.count; i++)
        make_loop(j, kinds.texts[i], steps, places, &j->loops[j->loop_count++]);
    free_index(j, places);
    table_finish(&kinds);
    return !steps->given || pki_job_usual(j) ||
           complaint_set(why, "no rank has a block of steps within %llu-%llu",
                         (unsigned long long)steps->first, (unsigned long long)steps->last);
}
