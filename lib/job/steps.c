#include "job/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "bench/stats/samples.h"
#include "measure/overhead.h"

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
static bool note_selves(pki_job_selves *of, size_t rank)
{
    if (of->count && of->ranks[of->count - 1] == rank)
        return true;
    if ((of->count & (of->count - 1)) == 0) {
        uint32_t *more = realloc(of->ranks, 2 * (of->count + 1) * sizeof *more);
        if (!more)
            return false;
        of->ranks = more;
    }
    of->ranks[of->count++] = (uint32_t)rank;
    return true;
}

static bool make_selves(pki_job_selves *of, size_t blocks)
{
    of->rows = pki_array_zeroed(of->count * blocks, sizeof *of->rows);
    return of->rows != NULL;
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
    pki_texts names; /* kind and name, by number... */
    uint32_t *at;    /* ...and where in the order that is */
    size_t at_room;
    char *key;
    size_t key_room;
} gathering;

static bool are_sane(const pki_stage_summary *s)
{
    return s->width == PKI_BLOCK_HEAD + s->stage_count;
}

/* Behind so many; its name is taken over, NULL: no memory. */
static bool insert(gathering *g, uint32_t behind, pki_job_stage stage)
{
    pki_job *j = g->of;
    if (!stage.name ||
        !pki_array_fit(&j->stages, &g->room, j->stage_count + 1, sizeof *j->stages)) {
        free(stage.name);
        return false;
    }
    memmove(&j->stages[behind + 1], &j->stages[behind],
            (j->stage_count++ - behind) * sizeof *j->stages);
    j->stages[behind] = stage;
    return true;
}

static bool insert_new(gathering *g, const pki_stage_row *row, uint32_t behind)
{
    bool waits = row->kind == PK_COMM || row->kind == PK_WAIT;
    if (!insert(g, behind, (pki_job_stage){strdup(row->name), row->kind, waits}))
        return false;
    for (uint32_t i = 0; i + 1 < g->names.count; i++)
        g->at[i] += g->at[i] >= behind;
    g->at[g->names.count - 1] = behind;
    return true;
}

/* PKI_TEXTS_NONE: without memory, as in all that follows. */
static uint32_t number_of(gathering *g, const pki_stage_row *row)
{
    size_t length = strlen(row->name);
    if (!pki_array_fit(&g->key, &g->key_room, length + 2, 1))
        return PKI_TEXTS_NONE;
    g->key[0] = (char)('0' + row->kind % 64);
    memcpy(g->key + 1, row->name, length + 1);
    return pki_texts_add(&g->names, g->key);
}

/* A stage that no rank before had comes behind the one that it comes behind here. */
static bool add_stages(gathering *g, const pki_stage_summary *s, uint32_t *numbers)
{
    uint32_t behind = 0;
    for (size_t i = 0; i < s->stage_count; i++) {
        uint32_t known = g->names.count;
        numbers[i] = number_of(g, &s->stages[i]);
        if (numbers[i] == PKI_TEXTS_NONE ||
            !pki_array_fit(&g->at, &g->at_room, g->names.count, sizeof *g->at) ||
            (numbers[i] == known && !insert_new(g, &s->stages[i], behind)))
            return false;
        behind = g->at[numbers[i]] + 1;
    }
    return true;
}

/* Where nobody says what is waiting, ranks wait where they are in no region, if anywhere. */
static bool add_outside(gathering *g)
{
    pki_job *j = g->of;
    j->outside_waits = j->stage_count > 0;
    for (size_t k = 0; k < j->stage_count; k++)
        j->outside_waits = j->outside_waits && !j->stages[k].waits;
    return insert(g, (uint32_t)j->stage_count,
                  (pki_job_stage){strdup(PKI_JOB_OUTSIDE), PKI_UNTRACKED, j->outside_waits});
}

static void free_index(const pki_job *j, uint32_t **places)
{
    for (size_t r = 0; places && r < j->rank_count; r++)
        free(places[r]);
    free(places);
}

static bool number_stages(gathering *g, uint32_t **places)
{
    const pki_job *j = g->of;
    for (size_t r = 0; r < j->rank_count; r++) {
        const pki_stage_summary *s = &j->ranks[r].stages;
        if (!are_sane(s))
            continue;
        places[r] = pki_array_zeroed(s->stage_count, sizeof **places);
        if (!places[r] || !add_stages(g, s, places[r]))
            return false;
    }
    return true;
}

/* The stages of all ranks, in an order, and behind them what is outside of all. Where in it those
 * of each rank stand: by rank, then by its own stage; for free_index. NULL without memory. */
static uint32_t **index_stages(pki_job *j)
{
    gathering g = {.of = j};
    uint32_t **places = pki_array_zeroed(j->rank_count, sizeof *places);
    bool done = places && number_stages(&g, places) && add_outside(&g);
    for (size_t r = 0; done && r < j->rank_count; r++)
        for (size_t i = 0; places[r] && i < j->ranks[r].stages.stage_count; i++)
            places[r][i] = g.at[places[r][i]];
    pki_texts_finish(&g.names);
    free(g.at);
    free(g.key);
    if (done)
        return places;
    free_index(j, places);
    return NULL;
}

/* ---- which ranks do the same work ---- */

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

/* What finding roles takes. */
typedef struct casting {
    const pki_job *of;
    const pki_job_loop *loop;
    uint32_t *there; /* by rank: its blocks with steps */
    char *texts;     /* of each rank: a digit for each stage but what is outside of all */
    double *several; /* by rank, then by kind: usual times of stages that had no room, as far as
                        they may be of that kind */
    double *times;   /* of as many as there are blocks, or ranks */
    double *usual;   /* by rank */
} casting;

/* ns per step in the middle of the blocks, as a rank may lack a processor in some; 0: it has none.
 */
static double usual_time(const casting *c, size_t stage, size_t rank)
{
    const double *row = pki_job_selves_row(c->loop, stage, rank);
    size_t count = 0;
    for (size_t b = 0; row && b < c->loop->block_count; b++)
        if (c->loop->steps[pki_job_cell(c->of, b, rank)] > 0)
            c->times[count++] = row[b] / c->loop->steps[pki_job_cell(c->of, b, rank)];
    return count ? pki_samples_select_median(c->times, count) : 0;
}

static void find_several(casting *c)
{
    const pki_job *j = c->of;
    for (size_t k = 0; k + 1 < j->stage_count; k++)
        for (size_t r = 0; is_several(&j->stages[k]) && r < j->rank_count; r++)
            for (uint32_t kind = 0; kind < PKI_KINDS; kind++)
                if (kind == j->stages[k].kind || j->stages[k].kind == PK_OTHER)
                    c->several[r * PKI_KINDS + kind] += usual_time(c, k, r);
}

/* Each rank has room for the longest stages alone, and which these are may be chance. Is there one
 * that tells nothing of this stage, where it may be among those that had no room? */
static bool may_be_hidden(const casting *c, size_t stage)
{
    const pki_job *j = c->of;
    const pki_job_selves *of = &c->loop->selves[stage];
    uint32_t kind = j->stages[stage].kind;
    bool hidden = false;
    for (size_t i = 0; i < of->count; i++)
        c->usual[i] = usual_time(c, stage, of->ranks[i]);
    double usual = of->count ? pki_samples_select_median(c->usual, of->count) : 0;
    for (size_t r = 0; r < j->rank_count && kind < PKI_KINDS; r++) {
        double told = c->several[r * PKI_KINDS + kind];
        hidden |= c->texts[r * j->stage_count + stage] == '0' && told > 0 && told >= usual / 2;
    }
    return hidden;
}

static void forget_hidden(casting *c)
{
    const pki_job *j = c->of;
    for (size_t k = 0; k + 1 < j->stage_count; k++)
        if (is_several(&j->stages[k]) || may_be_hidden(c, k))
            for (size_t r = 0; r < j->rank_count; r++)
                c->texts[r * j->stage_count + k] = '0';
}

static void sign(casting *c)
{
    const pki_job *j = c->of;
    size_t last = j->stage_count - 1, blocks = c->loop->block_count;
    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 0; r < j->rank_count; r++)
            c->there[r] += c->loop->steps[pki_job_cell(j, b, r)] > 0;
    for (size_t r = 0; r < j->rank_count; r++)
        memset(c->texts + r * j->stage_count, '0', last);
    for (size_t k = 0; k < last; k++) {
        const pki_job_selves *of = &c->loop->selves[k];
        for (size_t i = 0; i < of->count && !j->stages[k].waits; i++)
            if (has_stage(of->rows + i * blocks, blocks, c->there[of->ranks[i]]))
                c->texts[of->ranks[i] * j->stage_count + k] = '1';
    }
    find_several(c);
    forget_hidden(c);
}

static bool begin_casting(casting *c)
{
    size_t ranks = c->of->rank_count;
    c->there = pki_array_zeroed(ranks, sizeof *c->there);
    c->texts = pki_array_zeroed(ranks, c->of->stage_count);
    c->several = pki_array_zeroed(ranks * PKI_KINDS, sizeof *c->several);
    c->times = pki_array_zeroed(c->loop->block_count, sizeof *c->times);
    c->usual = pki_array_zeroed(ranks, sizeof *c->usual);
    return c->there && c->texts && c->several && c->times && c->usual;
}

static void end_casting(casting *c)
{
    free(c->there);
    free(c->texts);
    free(c->several);
    free(c->times);
    free(c->usual);
}

static uint32_t most(const size_t *sizes, size_t count)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < count; i++)
        found = sizes[i] > sizes[found] ? i : found;
    return found;
}

/* Those with one member only go, and the others are numbered anew. */
static size_t renumber(uint32_t *roles, size_t ranks, size_t count, size_t *sizes, uint32_t *number)
{
    size_t kept = 0;
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
    return kept;
}

static bool join_single(uint32_t *roles, size_t ranks, size_t *count)
{
    size_t *sizes = pki_array_zeroed(*count, sizeof *sizes);
    uint32_t *number = pki_array_zeroed(*count, sizeof *number);
    bool done = sizes && number;
    if (done && *count)
        *count = renumber(roles, ranks, *count, sizes, number);
    free(sizes);
    free(number);
    return done;
}

static bool cast(casting *c, uint32_t *roles, size_t *count)
{
    const pki_job *j = c->of;
    pki_texts known = {0};
    bool done = begin_casting(c);
    if (done)
        sign(c);
    for (size_t r = 0; done && r < j->rank_count; r++) {
        roles[r] = pki_texts_add(&known, c->texts + r * j->stage_count);
        done = roles[r] != PKI_TEXTS_NONE;
    }
    *count = known.count;
    pki_texts_finish(&known);
    end_casting(c);
    return done && join_single(roles, j->rank_count, count);
}

uint32_t *pki_job_roles(const pki_job *j, size_t *count)
{
    casting c = {.of = j, .loop = pki_job_usual(j)};
    uint32_t *roles = pki_array_zeroed(j->rank_count, sizeof *roles);
    *count = 0;
    if (!roles || !c.loop || cast(&c, roles, count))
        return roles;
    free(roles);
    return NULL;
}

bool pki_job_by_host(pki_job_hosts *h, const pki_job *j)
{
    size_t hosts = j->hosts.count;
    *h = (pki_job_hosts){pki_array_zeroed(j->rank_count, sizeof *h->ranks),
                         pki_array_zeroed(hosts + 1, sizeof *h->begins)};
    if (!h->ranks || !h->begins)
        return false;
    for (size_t r = 0; r < j->rank_count; r++)
        h->begins[j->ranks[r].host + 1]++;
    for (size_t i = 0; i < hosts; i++)
        h->begins[i + 1] += h->begins[i];
    for (size_t r = j->rank_count; r-- > 0;)
        h->ranks[--h->begins[j->ranks[r].host + 1]] = r;
    for (size_t i = 0; i < hosts; i++)
        h->begins[i] = h->begins[i + 1];
    h->begins[hosts] = j->rank_count;
    return true;
}

void pki_job_hosts_finish(pki_job_hosts *h)
{
    free(h->ranks);
    free(h->begins);
}

/* ---- the steps of all ranks, block beside block ---- */

/* Each rank has its steps in blocks, as long as it has made many of them (measure/steps/stages.h).
 * Where a block begins in all ranks that have these steps, one begins here: so a rank that has
 * joined its blocks once more makes all others join theirs. */

/* The blocks of one rank's steps of one kind. */
typedef struct blocks {
    const uint64_t *numbers, *no_processor, *seats, *starts; /* NULL: not known */
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
static blocks blocks_of(const pki_job_rank *r, const char *name, uint64_t from,
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
    if (b.count && row->start_count == b.count)
        b.starts = row->starts;
    while ((b.count > 1 && first_of(&b, 0) < from) ||
           (b.count && steps->given && first_of(&b, 0) < steps->first)) {
        b.numbers += b.width;
        b.no_processor += b.no_processor != NULL;
        b.seats += b.seats ? 2 : 0;
        b.starts += b.starts != NULL;
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
    size_t count;
    uint64_t end;
} bounds;

/* What both have, and what only one of them can have. */
static bool meet(bounds *all, const blocks *b)
{
    bounds met = {.at = pki_array_zeroed(all->count + b->count, sizeof *met.at),
                  .end = PKI_MAX(all->end, end_of(b))};
    uint64_t begin = first_of(b, 0), end = end_of(b), all_begin = all->at[0];
    size_t i = 0, k = 0;
    while (met.at && (i < all->count || k < b->count)) {
        uint64_t x = i < all->count ? all->at[i] : UINT64_MAX;
        uint64_t y = k < b->count ? first_of(b, k) : UINT64_MAX;
        uint64_t least = PKI_MIN(x, y);
        bool both = x == y,
             outside = x < y ? x < begin || x >= end : y < all_begin || y >= all->end;
        if (both || outside)
            met.at[met.count++] = least;
        i += x == least;
        k += y == least;
    }
    if (!met.at)
        return false;
    free(all->at);
    *all = met;
    return true;
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

static bool add_bounds(bounds *all, const blocks *b)
{
    if (!b->count || is_alike(all, b))
        return true;
    if (all->count)
        return meet(all, b);
    free(all->at); /* there may have been some, and none that all have */
    *all = (bounds){.at = pki_array_zeroed(b->count, sizeof *all->at), .end = end_of(b)};
    for (size_t i = 0; all->at && i < b->count; i++)
        all->at[all->count++] = first_of(b, i);
    return all->at != NULL;
}

/* ---- cells ---- */

/* The bounds are the loop's then. */
static bool make_cells(const pki_job *j, pki_job_loop *loop, const bounds *all)
{
    size_t cells = all->count * j->rank_count;
    double **const of_cells[] = {&loop->steps, &loop->time,  &loop->own,   &loop->items,
                                 &loop->ready, &loop->maybe, &loop->begins};
    bool done = true;
    loop->block_count = all->count;
    loop->first = all->at;
    loop->seats = pki_array_zeroed(cells, sizeof *loop->seats);
    loop->made = pki_array_zeroed(j->rank_count, sizeof *loop->made);
    for (size_t i = 0; i < PKI_COUNT_OF(of_cells); i++) {
        *of_cells[i] = pki_array_zeroed(cells, sizeof(double));
        done = done && *of_cells[i];
    }
    for (size_t k = 0; k < j->stage_count; k++)
        done = done && make_selves(&loop->selves[k], all->count);
    return done && loop->seats && loop->made;
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
        if (loop->steps[pki_job_cell(j, at, rank)] <= 0)
            loop->begins[pki_job_cell(j, at, rank)] = b->starts ? (double)b->starts[i] : -1;
        add_block(j, loop, rank, at, block_at(b, i), to);
        if (b->no_processor)
            loop->ready[pki_job_cell(j, at, rank)] += (double)b->no_processor[i];
    }
    bound_ready(j, loop, rank, b->no_processor != NULL);
}

/* Who has blocks has a row in each of its stages. */
static bool note_rows(const pki_job *j, pki_job_loop *loop, size_t rank, const uint32_t *places)
{
    for (size_t i = 0; i < j->ranks[rank].stages.stage_count; i++)
        if (!note_selves(&loop->selves[places[i]], rank))
            return false;
    return note_selves(&loop->selves[j->stage_count - 1], rank);
}

static void add_up_steps(const pki_job *j, pki_job_loop *loop)
{
    for (size_t b = 0; b < loop->block_count; b++)
        for (size_t r = 0; r < j->rank_count; r++)
            loop->made[r] += loop->steps[pki_job_cell(j, b, r)];
}

/* Of all kinds of steps, and of one. */
typedef struct making {
    pki_job *of;
    const pki_job_steps *steps;
    uint32_t **places;
    const char *name;
    uint64_t from;
} making;

static blocks blocks_here(const making *m, size_t rank)
{
    return blocks_of(&m->of->ranks[rank], m->name, m->from, m->steps);
}

static bool add_ranks(const making *m, pki_job_loop *loop)
{
    const pki_job *j = m->of;
    rows to = {.own = pki_array_zeroed(j->stage_count, sizeof *to.own)};
    for (size_t r = 0; to.own && r < j->rank_count && loop->block_count; r++) {
        blocks b = blocks_here(m, r);
        to.count = j->ranks[r].stages.stage_count;
        to.places = m->places[r];
        if (b.count)
            add_rank(j, loop, r, &b, &to);
    }
    bool done = to.own != NULL;
    free(to.own);
    return done;
}

static bool find_bounds(const making *m, pki_job_loop *loop, bounds *all)
{
    for (size_t r = 0; r < m->of->rank_count; r++) {
        blocks b = blocks_here(m, r);
        if (!add_bounds(all, &b) || (b.count && !note_rows(m->of, loop, r, m->places[r])))
            return false;
    }
    return true;
}

static bool make_loop(making *m, const char *name, pki_job_loop *loop)
{
    bounds all = {0};
    m->name = name;
    m->from = *name ? 0 : (uint64_t)m->of->warmup;
    loop->name = strdup(name);
    loop->selves = pki_array_zeroed(m->of->stage_count, sizeof *loop->selves);
    if (!loop->name || !loop->selves || !find_bounds(m, loop, &all)) {
        free(all.at);
        return false;
    }
    if (!make_cells(m->of, loop, &all) || !add_ranks(m, loop))
        return false;
    add_up_steps(m->of, loop);
    return true;
}

static void finish_loop(pki_job_loop *loop, size_t stages)
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
    free(loop->begins);
    free(loop->name);
}

/* ---- all kinds ---- */

static bool collect_kinds(const pki_job *j, pki_texts *kinds)
{
    bool done = pki_texts_add(kinds, "") != PKI_TEXTS_NONE;
    for (size_t r = 0; r < j->rank_count; r++)
        for (size_t i = 0; done && i < j->ranks[r].stages.loop_count; i++)
            done = pki_texts_add(kinds, j->ranks[r].stages.loops[i].name) != PKI_TEXTS_NONE;
    return done;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Warm-up is what most of the ranks call so: a rank that is slow for some steps at first must not
 * take these of all others. */
static bool find_warmup(pki_job *j)
{
    uint64_t *all = pki_array_zeroed(j->rank_count, sizeof *all);
    size_t count = 0;
    for (size_t r = 0; all && r < j->rank_count; r++) {
        blocks b = blocks_of(&j->ranks[r], "", 0, &(pki_job_steps){0});
        if (b.count)
            all[count++] = first_of(&b, 0) + j->ranks[r].stages.warmup;
    }
    if (count)
        qsort(all, count, sizeof *all, by_size);
    j->warmup = count ? (double)all[count / 2] : 0;
    bool done = all != NULL;
    free(all);
    return done;
}

static bool make_kinds(making *m, const pki_texts *kinds)
{
    pki_job *j = m->of;
    j->loops = pki_array_zeroed(kinds->count, sizeof *j->loops);
    bool done = j->loops != NULL;
    for (uint32_t i = 0; done && i < kinds->count; i++)
        done = make_loop(m, kinds->texts[i], &j->loops[j->loop_count++]);
    return done;
}

pki_job_made pki_job_make_loops(pki_job *j, const pki_job_steps *steps)
{
    pki_texts kinds = {0};
    making m = {.of = j, .steps = steps};
    bool done = find_warmup(j) && collect_kinds(j, &kinds);
    m.places = done ? index_stages(j) : NULL;
    done = m.places && make_kinds(&m, &kinds);
    free_index(j, m.places);
    pki_texts_finish(&kinds);
    if (!done)
        return PKI_JOB_NO_MEMORY;
    return !steps->given || pki_job_usual(j) ? PKI_JOB_MADE : PKI_JOB_NO_STEPS;
}

void pki_job_free_loops(pki_job *j)
{
    for (size_t i = 0; i < j->loop_count; i++)
        finish_loop(&j->loops[i], j->stage_count);
    for (size_t i = 0; i < j->stage_count; i++)
        free(j->stages[i].name);
    free(j->loops);
    free(j->stages);
    j->loop_count = j->stage_count = 0;
    j->loops = NULL;
    j->stages = NULL;
}
