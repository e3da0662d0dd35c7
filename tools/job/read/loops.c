/* tools/job/read/loops.c - the steps of all ranks, block beside block.
 *
 * Each rank has its steps in blocks, as long as it has made many of them (measure/steps/stages.h).
 * Where a block begins in all ranks that have these steps, one begins here: so a rank that has
 * joined its blocks once more makes all others join theirs.
 */
#include "job/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "job/verdicts/crowd.h"
#include "memory.h"

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
static blocks blocks_of(const job_rank *r, const char *name, uint64_t from, const job_steps *steps)
{
    const pki_loop_row *row = job_stages_are_sane(&r->stages) ? loop_named(&r->stages, name) : NULL;
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
    loop->seats = memory_zeroed(cells, sizeof *loop->seats);
    for (size_t k = 0; k < j->stage_count; k++)
        job_selves_make(&loop->selves[k], all->count);
}

/* Of a rank: the rows of its own stages, and of what is outside of them. */
typedef struct rows {
    size_t count;
    const uint32_t *places;
    double **own, *outside;
} rows;

static void add_block(const job *j, job_loop *loop, size_t rank, size_t at, const uint64_t *block,
                      const rows *to)
{
    size_t cell = job_cell(j, at, rank);
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

static void find_rows(const job *j, const job_loop *loop, size_t rank, rows *to)
{
    for (size_t i = 0; i < to->count; i++)
        to->own[i] = job_selves_row(loop, to->places[i], rank);
    to->outside = job_selves_row(loop, j->stage_count - 1, rank);
}

/* A file may say anything. */
static pki_seat seat_at(const blocks *b, size_t i)
{
    uint64_t number = b->seats[2 * i], share = b->seats[2 * i + 1];
    if (number > PKI_SEAT_MOST || share > PKI_SEAT_ALL || !share)
        return 0;
    return (pki_seat)(number + 1) | (pki_seat)share << 16;
}

static void add_seats(const job *j, job_loop *loop, size_t rank, const blocks *b)
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
        loop->seats[job_cell(j, at, rank)] = pki_seats_most(&here);
        here = (pki_seats){0};
    }
}

static void add_rank(const job *j, job_loop *loop, size_t rank, const blocks *b, rows *to)
{
    size_t at = 0;
    find_rows(j, loop, rank, to);
    add_seats(j, loop, rank, b);
    for (size_t i = 0; i < b->count; i++) {
        while (at + 1 < loop->block_count && loop->first[at + 1] <= first_of(b, i))
            at++;
        add_block(j, loop, rank, at, block_at(b, i), to);
        if (b->no_processor)
            loop->ready[job_cell(j, at, rank)] += (double)b->no_processor[i];
    }
    bound_ready(j, loop, rank, b->no_processor != NULL);
}

/* Who has blocks has a row in each of its stages. */
static void note_rows(const job *j, job_loop *loop, size_t rank, const uint32_t *places)
{
    for (size_t i = 0; i < j->ranks[rank].stages.stage_count; i++)
        job_selves_note(&loop->selves[places[i]], rank);
    job_selves_note(&loop->selves[j->stage_count - 1], rank);
}

static void add_up_steps(const job *j, job_loop *loop)
{
    loop->made = memory_zeroed(j->rank_count, sizeof *loop->made);
    for (size_t b = 0; b < loop->block_count; b++)
        for (size_t r = 0; r < j->rank_count; r++)
            loop->made[r] += loop->steps[job_cell(j, b, r)];
}

static void add_ranks(const job *j, const char *name, uint64_t from, const job_steps *steps,
                      uint32_t **places, job_loop *loop)
{
    size_t room = 0;
    rows to = {.own = NULL};
    for (size_t r = 0; r < j->rank_count && loop->block_count; r++) {
        blocks b = blocks_of(&j->ranks[r], name, from, steps);
        to.count = j->ranks[r].stages.stage_count;
        to.places = places[r];
        memory_fit(&to.own, &room, to.count, sizeof *to.own);
        if (b.count)
            add_rank(j, loop, r, &b, &to);
    }
    free(to.own);
}

static void make_loop(job *j, const char *name, const job_steps *steps, uint32_t **places,
                      job_loop *loop)
{
    bounds all = {0};
    uint64_t from = *name ? 0 : (uint64_t)j->warmup;
    loop->selves = memory_zeroed(j->stage_count, sizeof *loop->selves);
    for (size_t r = 0; r < j->rank_count; r++) {
        blocks b = blocks_of(&j->ranks[r], name, from, steps);
        add_bounds(&all, &b);
        if (b.count)
            note_rows(j, loop, r, places[r]);
    }
    loop->name = memory_copy(name);
    make_cells(j, loop, &all);
    add_ranks(j, name, from, steps, places, loop);
    add_up_steps(j, loop);
}

void job_loop_finish(job_loop *loop, size_t stages)
{
    for (size_t k = 0; loop->selves && k < stages; k++)
        job_selves_finish(&loop->selves[k]);
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

static void collect_kinds(const job *j, table *kinds)
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
    collect_kinds(j, &kinds);
    uint32_t **places = job_index_stages(j);
    j->loops = memory_zeroed(kinds.count, sizeof *j->loops);
    for (uint32_t i = 0; i < kinds.count; i++)
        make_loop(j, kinds.texts[i], steps, places, &j->loops[j->loop_count++]);
    job_stage_index_free(j, places);
    table_finish(&kinds);
    return !steps->given || job_usual(j) ||
           complaint_set(why, "no rank has a block of steps within %llu-%llu",
                         (unsigned long long)steps->first, (unsigned long long)steps->last);
}
