/* tools/job/loops.c - the steps of all ranks, block beside block.
 *
 * Each rank has its steps in blocks, as long as it has made many of them (measure/steps/stages.h).
 * Where a block begins in all ranks that have these steps, one begins here: so a rank that has
 * joined its blocks once more makes all others join theirs.
 */
#include "job/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "job/crowd.h"
#include "memory.h"

/* The blocks of one rank's steps of one kind. */
typedef struct blocks {
    const uint64_t *numbers, *no_processor; /* NULL: not known */
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

static bool is_sane(const pki_stage_summary *s)
{
    return s->width == PKI_BLOCK_HEAD + s->stage_count;
}

/* Without those that begin before `from`, and those outside the steps that are wanted. */
static blocks blocks_of(const job_rank *r, const char *name, uint64_t from, const job_steps *steps)
{
    const pki_loop_row *row = is_sane(&r->stages) ? loop_named(&r->stages, name) : NULL;
    if (!row)
        return (blocks){0};
    blocks b = {row->numbers, NULL, row->number_count / r->stages.width, r->stages.width};
    if (b.count && row->no_processor_count == b.count)
        b.no_processor = row->no_processor;
    while ((b.count > 1 && first_of(&b, 0) < from) ||
           (b.count && steps->given && first_of(&b, 0) < steps->first)) {
        b.numbers += b.width;
        b.no_processor += b.no_processor != NULL;
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

/* ---- stages of all ranks ---- */

static size_t find_stage(const job *j, const pki_stage_row *row)
{
    size_t i = 0;
    while (i < j->stage_count &&
           (j->stages[i].kind != row->kind || strcmp(j->stages[i].name, row->name) != 0))
        i++;
    return i;
}

/* A stage that no rank before had comes behind the one that it comes behind here. */
static void add_stages(job *j, const pki_stage_summary *s, size_t *room)
{
    size_t behind = 0;
    for (size_t i = 0; i < s->stage_count; i++) {
        size_t at = find_stage(j, &s->stages[i]);
        uint32_t kind = s->stages[i].kind;
        if (at == j->stage_count) {
            memory_fit(&j->stages, room, j->stage_count + 1, sizeof *j->stages);
            memmove(&j->stages[behind + 1], &j->stages[behind],
                    (j->stage_count++ - behind) * sizeof *j->stages);
            at = behind;
            j->stages[at] = (job_stage){memory_copy(s->stages[i].name), kind,
                                        kind == PK_COMM || kind == PK_WAIT};
        }
        behind = at + 1;
    }
}

/* Where nobody says what is waiting, ranks wait where they are in no region, if anywhere. */
static void gather_stages(job *j)
{
    size_t room = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        if (is_sane(&j->ranks[r].stages))
            add_stages(j, &j->ranks[r].stages, &room);
    j->outside_waits = j->stage_count > 0;
    for (size_t k = 0; k < j->stage_count; k++)
        j->outside_waits = j->outside_waits && !j->stages[k].waits;
    memory_fit(&j->stages, &room, j->stage_count + 1, sizeof *j->stages);
    j->stages[j->stage_count++] =
        (job_stage){memory_copy(JOB_OUTSIDE), PKI_UNTRACKED, j->outside_waits};
}

/* ---- cells ---- */

static void make_cells(const job *j, job_loop *loop, const bounds *all)
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
    loop->selves = memory_zeroed(j->stage_count, sizeof *loop->selves);
    for (size_t k = 0; k < j->stage_count; k++)
        loop->selves[k] = memory_zeroed(cells, sizeof(double));
}

static void add_block(const job *j, job_loop *loop, size_t cell, const uint64_t *block,
                      const size_t *places, size_t count)
{
    double inside = 0, waited = 0, time = (double)block[PKI_BLOCK_TIME];
    for (size_t i = 0; i < count; i++) {
        double self = (double)block[PKI_BLOCK_HEAD + i];
        loop->selves[places[i]][cell] += self;
        inside += self;
        waited += j->stages[places[i]].waits ? self : 0;
    }
    /* A step without a breakdown, or one whose stages overlap: never less than what is known. */
    time = PKI_MAX(time, inside);
    loop->selves[j->stage_count - 1][cell] += time - inside;
    waited += j->outside_waits ? time - inside : 0;
    loop->steps[cell] += (double)block[PKI_BLOCK_STEPS];
    loop->items[cell] += (double)block[PKI_BLOCK_ITEMS];
    loop->time[cell] += time;
    loop->own[cell] += time - waited;
}

/* Of a rank whose borders nobody told it is known of the run as a whole, and all of that may be its
 * own time. Who was told has no more than there is (core/ready.h rounds up). */
static void bound_ready(const job *j, job_loop *loop, size_t rank, bool told)
{
    double share = told ? 0 : job_crowd_share(&j->ranks[rank].processor);
    for (size_t b = 0; b < loop->block_count; b++) {
        size_t cell = job_cell(j, b, rank);
        double most = loop->ready[cell] + share * loop->time[cell];
        loop->ready[cell] = PKI_MIN(loop->ready[cell], loop->own[cell]);
        loop->maybe[cell] = PKI_MIN(most, loop->own[cell]);
    }
}

static void add_rank(const job *j, job_loop *loop, size_t rank, const blocks *b)
{
    const pki_stage_summary *s = &j->ranks[rank].stages;
    size_t *places = memory_zeroed(s->stage_count, sizeof *places), at = 0;
    for (size_t i = 0; i < s->stage_count; i++)
        places[i] = find_stage(j, &s->stages[i]);
    for (size_t i = 0; i < b->count; i++) {
        while (at + 1 < loop->block_count && loop->first[at + 1] <= first_of(b, i))
            at++;
        add_block(j, loop, job_cell(j, at, rank), block_at(b, i), places, s->stage_count);
        if (b->no_processor)
            loop->ready[job_cell(j, at, rank)] += (double)b->no_processor[i];
    }
    bound_ready(j, loop, rank, b->no_processor != NULL);
    free(places);
}

static void make_loop(job *j, const char *name, const job_steps *steps, job_loop *loop)
{
    bounds all = {0};
    uint64_t from = *name ? 0 : (uint64_t)j->warmup;
    for (size_t r = 0; r < j->rank_count; r++) {
        blocks b = blocks_of(&j->ranks[r], name, from, steps);
        add_bounds(&all, &b);
    }
    loop->name = memory_copy(name);
    make_cells(j, loop, &all);
    for (size_t r = 0; r < j->rank_count && all.count; r++) {
        blocks b = blocks_of(&j->ranks[r], name, from, steps);
        add_rank(j, loop, r, &b);
    }
}

void job_loop_finish(job_loop *loop, size_t stages)
{
    for (size_t k = 0; loop->selves && k < stages; k++)
        free(loop->selves[k]);
    free(loop->selves);
    free(loop->first);
    free(loop->steps);
    free(loop->time);
    free(loop->own);
    free(loop->items);
    free(loop->ready);
    free(loop->maybe);
    free(loop->name);
}

/* ---- all kinds ---- */

static void gather_kinds(const job *j, table *kinds)
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
static void find_warmup(job *j)
{
    uint64_t *all = memory_zeroed(j->rank_count, sizeof *all);
    size_t count = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        blocks b = blocks_of(&j->ranks[r], "", 0, &(job_steps){0});
        if (b.count)
            all[count++] = first_of(&b, 0) + j->ranks[r].stages.warmup;
    }
    if (count)
        qsort(all, count, sizeof *all, by_size);
    j->warmup = count ? (double)all[count / 2] : 0;
    free(all);
}

bool job_make_loops(job *j, const job_steps *steps, complaint *why)
{
    table kinds = {0};
    find_warmup(j);
    gather_kinds(j, &kinds);
    gather_stages(j);
    j->loops = memory_zeroed(kinds.count, sizeof *j->loops);
    for (uint32_t i = 0; i < kinds.count; i++)
        make_loop(j, kinds.texts[i], steps, &j->loops[j->loop_count++]);
    table_finish(&kinds);
    return !steps->given || job_usual(j) ||
           complaint_set(why, "no rank has a block of steps within %llu-%llu",
                         (unsigned long long)steps->first, (unsigned long long)steps->last);
}
