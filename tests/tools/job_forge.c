/* Jobs whose truth is known, and what pk job's verdicts about them are worth. */
#include "job_forge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/verdicts/verdicts.h"
#include "job/window.h"
#include "stats/buckets.h"

/* ---- jobs ---- */

#define STEP 10e6 /* ns of own time */
#define REDUCE 0.5e6
#define ITEMS 1024

const char *const forge_stages[FORGE_STAGES] = {"load", "forward", "backward", "all_reduce",
                                                "update"};
static const uint32_t kinds[FORGE_STAGES] = {PK_DATA, PK_COMPUTE, PK_COMPUTE, PK_COMM, PK_COMPUTE};
static const double parts[FORGE_STAGES] = {0.15, 0.30, 0.45, 0, 0.10};

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state)
{
    return ((double)(draw(state) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(2 * 3.14159265358979323846 * uniform(state));
}

/* -- who is slow -- */

static void choose(const forge *f, uint64_t *state, bool *culprit)
{
    memset(culprit, 0, f->ranks);
    for (size_t left = f->culprits; left;) {
        size_t r = draw(state) % f->ranks;
        left -= !culprit[r];
        culprit[r] = true;
    }
    for (size_t r = 0; f->host && r < f->ranks; r++)
        culprit[r] = r / f->per_host == (f->ranks - 1) / f->per_host;
}

/* -- a rank -- */

static char *text_of(const char *format, size_t n)
{
    char text[64];
    snprintf(text, sizeof text, format, n);
    return strdup(text);
}

static void add_regions(const forge *f, uint64_t *state, pki_summary *s)
{
    s->region_count = f->regions;
    s->regions = calloc(f->regions + 1, sizeof *s->regions);
    for (size_t i = 0; i < f->regions; i++) {
        pki_region_row *row = &s->regions[i];
        row->name = text_of("region %zu", i);
        row->kind = PK_COMPUTE;
        row->exact.min = UINT64_MAX;
        for (size_t k = 0; k < f->calls; k++) {
            uint64_t ns = (uint64_t)(1e6 * (double)(i + 1) * exp(0.3 * normal(state)));
            row->exact.count++;
            row->exact.sum += ns;
            row->exact.min = ns < row->exact.min ? ns : row->exact.min;
            row->exact.max = ns > row->exact.max ? ns : row->exact.max;
            pki_tally_count(&row->exact.buckets, pki_bucket(ns), 1);
        }
        row->self = row->exact.sum;
    }
}

static void begin_rank(const forge *f, size_t rank, pki_summary *s)
{
    pki_summary_init(s);
    s->run = (pki_run){.program = strdup("train"),
                       .host = text_of("node%zu", f->per_host ? rank / f->per_host : 0),
                       .version = strdup("0"),
                       .clock = strdup("tsc"),
                       .trace_path = strdup(""),
                       .source = strdup("session"),
                       .pid = (uint32_t)(1000 + rank),
                       .rank = (int32_t)rank,
                       .world_size = (int32_t)f->ranks,
                       .start_unix = 1,
                       .complete = true};
    pki_stage_summary *t = &s->stages;
    bool writes = f->noise == FORGE_CHECKPOINTS && rank == 0;
    t->stage_count = FORGE_STAGES + writes;
    t->width = PKI_BLOCK_HEAD + t->stage_count;
    t->stages = calloc(t->stage_count, sizeof *t->stages);
    for (size_t k = 0; k < FORGE_STAGES; k++)
        t->stages[k] = (pki_stage_row){strdup(forge_stages[k]), kinds[k]};
    if (writes)
        t->stages[FORGE_STAGES] = (pki_stage_row){strdup("checkpoint"), PK_IO};
    t->loop_count = 1;
    t->loops = calloc(1, sizeof *t->loops);
    t->loops->name = strdup("");
    t->loops->number_count = f->steps * t->width;
    t->loops->numbers = calloc(t->loops->number_count + 1, sizeof *t->loops->numbers);
}

static uint64_t *block_of(pki_summary *s, size_t step)
{
    return s->stages.loops->numbers + step * s->stages.width;
}

/* ---- when a rank is slow, and what healthy ones differ by ---- */

static uint64_t second_state(const forge *f, uint64_t of)
{
    return (f->seed + 77) * UINT64_C(0x9E3779B97F4A7C15) + of;
}

size_t forge_first(const forge *f)
{
    uint64_t state = second_state(f, 1);
    return (size_t)((double)f->steps * (0.1 + 0.7 * uniform(&state)));
}

/* By how much, in that step. */
static double slow_now(const forge *f, size_t rank, size_t step)
{
    size_t first = forge_first(f), every = f->share > 0 ? (size_t)(1 / f->share) : 1;
    uint64_t state = second_state(f, 1000003 * rank + step + 2);
    switch (f->when) {
    case FORGE_FOR_GOOD:
        return step >= first ? f->slow : 0;
    case FORGE_STRETCH:
        return step >= first && step < first + f->length ? f->slow : 0;
    case FORGE_SPORADIC:
        return uniform(&state) < f->share ? f->slow : 0;
    case FORGE_PERIODIC:
        return step % every == rank % every ? f->slow : 0;
    case FORGE_RAMP:
        return f->slow * (double)step / (double)f->steps;
    case FORGE_STOP:
        return step == first ? f->slow : 0;
    case FORGE_ALWAYS:
        break;
    }
    return f->slow;
}

/* What of a rank lasts from step to step. */
typedef struct habit {
    double lasting, share;
    size_t warm;
} habit;

static habit habit_of(const forge *f, size_t rank)
{
    uint64_t state = second_state(f, 7919 * rank + 5);
    return (habit){.lasting = 0.03 * normal(&state),
                   .share = f->noise == FORGE_UNEVEN ? 0.85 + 0.3 * uniform(&state) : 1,
                   .warm = f->noise == FORGE_WARM ? 3 + draw(&state) % 6 : 0};
}

/* Of all ranks alike. */
static double common_now(const forge *f, size_t step)
{
    double part = (double)step / (double)f->steps;
    switch (f->noise) {
    case FORGE_DRIFT:
        return 1 + 0.2 * part;
    case FORGE_CHANGING:
        return part > 0.3 && part < 0.63 ? 1.3 : 1;
    case FORGE_TWO_KINDS:
        return step % 4 == 3 ? 2 : 1;
    case FORGE_ALIKE:
        return part > 0.5 ? 1.1 : 1;
    default:
        return 1;
    }
}

static double noise_now(const forge *f, uint64_t *state, habit *of, size_t step)
{
    double noise = f->quiet ? 1 : 1 + 0.02 * normal(state);
    noise *= !f->quiet && uniform(state) < 0.002 ? 1.3 : 1;
    if (f->noise == FORGE_LASTING) {
        of->lasting = 0.95 * of->lasting + 0.03 * sqrt(1 - 0.95 * 0.95) * normal(state);
        noise = 1 + of->lasting;
    } else if (f->noise == FORGE_TAILS) {
        noise = 1 + 0.02 * fabs(normal(state)) / sqrt(-log(uniform(state)));
    }
    return noise * common_now(f, step) * (step < of->warm ? 1.5 + 0.5 * uniform(state) : 1);
}

/* The rank's own time of a step, stage by stage. */
static void own_step(const forge *f, uint64_t *state, double machine, double slow, size_t step,
                     habit *of, uint64_t *block)
{
    double work = f->varying ? 0.85 + 0.3 * uniform(state) : of->share;
    double noise = noise_now(f, state, of, step);
    block[PKI_BLOCK_STEPS] = 1;
    block[PKI_BLOCK_ITEMS] = (uint64_t)(work * ITEMS);
    for (size_t k = 0; k < FORGE_STAGES; k++) {
        double part = parts[k] + (k == f->stage ? slow : 0);
        block[PKI_BLOCK_HEAD + k] = (uint64_t)(STEP * work * machine * noise * part);
    }
}

typedef struct cell {
    double slower;
    uint32_t processor, share;
} cell;

/* Half of the ranks sit on each of two processors, and now and then two change places. */
static void change_places(const forge *f, uint64_t *state, bool *second)
{
    size_t a = draw(state) % f->ranks, b = draw(state) % f->ranks;
    bool kept = second[a];
    if (uniform(state) < 0.05) {
        second[a] = second[b];
        second[b] = kept;
    }
}

/* What a rank's files tell of a step, and what its processor does to that. */
static void sit(const forge *f, uint64_t *state, bool second, double slower, cell *out)
{
    bool both = f->told && uniform(state) < 0.2, wrong = f->told && uniform(state) < 0.02;
    double there = both ? uniform(state) : 1; /* a part of the step */
    out->slower = slower * (second ? there : 1 - there);
    out->processor = second != wrong;
    out->share = both ? 500 : 1000;
}

/* Processors of a rank in a step: [rank * steps + step]. Something else has a part of the second
 * one for twenty steps on end of seventy, or always. */
static cell *processors(const forge *f, uint64_t *state)
{
    cell *cells = calloc(f->ranks * f->steps, sizeof *cells);
    bool *second = calloc(f->ranks, sizeof *second), shared = f->seated;
    for (size_t r = 0; r < f->ranks; r++)
        second[r] = r % 2;
    for (size_t step = 0; step < f->steps; step++) {
        if (!f->seated) {
            change_places(f, state, second);
            shared = uniform(state) < (shared ? 0.95 : 0.02);
        }
        for (size_t r = 0; r < f->ranks; r++)
            sit(f, state, second[r], shared ? f->uneven : 0, &cells[r * f->steps + step]);
        for (size_t r = 0; f->pairs && r < f->ranks; r++)
            cells[r * f->steps + step] =
                (cell){shared && r / 2 % 2 ? f->uneven : 0, (uint32_t)(r / 2), 1000};
        for (size_t r = 0; f->pinned && r < f->ranks; r++)
            cells[r * f->steps + step] = (cell){r ? 0 : f->uneven, (uint32_t)r, 1000};
    }
    free(second);
    return cells;
}

static void tell_seats(const forge *f, const cell *cells, pki_loop_row *loop)
{
    loop->seats = calloc(2 * f->steps, sizeof *loop->seats);
    loop->seat_count = 2 * f->steps;
    for (size_t step = 0; step < f->steps; step++) {
        loop->seats[2 * step] = cells[step].processor;
        loop->seats[2 * step + 1] = cells[step].share;
    }
}

/* It loses its processor for some thirty steps, then has it for some seventy. */
static void crowd(const forge *f, uint64_t *state, pki_summary *s)
{
    bool without = false;
    pki_loop_row *loop = s->stages.loops;
    if (f->crowd == FORGE_CROWD_TOLD) {
        loop->no_processor = calloc(f->steps, sizeof *loop->no_processor);
        loop->no_processor_count = f->steps;
    }
    for (size_t step = 0; step < f->steps; step++) {
        without = without ? uniform(state) > 0.03 : uniform(state) < 0.015;
        uint64_t ns = (uint64_t)(STEP * uniform(state) * (without ? 3 : 0.02));
        block_of(s, step)[PKI_BLOCK_HEAD + FORGE_BACKWARD] += ns;
        s->steps.processor.ready += f->crowd == FORGE_CROWD_UNTOLD ? 0 : ns;
        if (loop->no_processor)
            loop->no_processor[step] = ns;
    }
}

/* All are through the all-reduce at once: before it comes what stands before it. */
static void reduce(const forge *f, pki_summary *ranks, size_t step)
{
    double last = 0, transfer = REDUCE * (f->link > 0 ? f->link : 1);
    for (size_t r = 0; r < f->ranks; r++) {
        const uint64_t *b = block_of(&ranks[r], step) + PKI_BLOCK_HEAD;
        double before = (double)(b[FORGE_LOAD] + b[FORGE_FORWARD] + b[FORGE_BACKWARD]);
        last = before > last ? before : last;
    }
    for (size_t r = 0; r < f->ranks; r++) {
        uint64_t *block = block_of(&ranks[r], step), *b = block + PKI_BLOCK_HEAD;
        uint64_t before = b[FORGE_LOAD] + b[FORGE_FORWARD] + b[FORGE_BACKWARD];
        b[FORGE_REDUCE] = (uint64_t)(last + transfer) - before;
        block[PKI_BLOCK_INDEX] = step;
        block[PKI_BLOCK_TIME] = before + b[FORGE_REDUCE] + b[FORGE_UPDATE];
        if (ranks[r].stages.stage_count > FORGE_STAGES && step % 50 == 49)
            block[PKI_BLOCK_TIME] += b[FORGE_STAGES] = (uint64_t)(3 * STEP);
        if (f->crowd)
            ranks[r].steps.processor.observed += block[PKI_BLOCK_TIME];
    }
}

/* The slowest step of all, as a rank's file has it. */
static void tell_slowest(pki_summary *s, size_t steps)
{
    const uint64_t *most = block_of(s, 0);
    for (size_t step = 1; step < steps; step++)
        if (block_of(s, step)[PKI_BLOCK_TIME] > most[PKI_BLOCK_TIME])
            most = block_of(s, step);
    s->steps.slowest_count = 1;
    s->steps.slowest = calloc(1, sizeof *s->steps.slowest);
    s->steps.slowest->index = most[PKI_BLOCK_INDEX];
    s->steps.slowest->duration = most[PKI_BLOCK_TIME];
    for (size_t k = 0; k < s->stages.stage_count; k++)
        s->steps.slowest->kinds[s->stages.stages[k].kind] += most[PKI_BLOCK_HEAD + k];
}

/* As lib/measure/steps/stages.h has it; not of seats. */
static void join(const forge *f, pki_summary *s)
{
    size_t width = s->stages.width, into = 1;
    while ((f->steps + into - 1) / into > 128)
        into *= 2;
    for (size_t step = 0; step < f->steps; step++) {
        uint64_t *from = block_of(s, step), *to = block_of(s, step / into);
        for (size_t i = 0; i < width && step % into; i++)
            to[i] += i == PKI_BLOCK_INDEX ? 0 : from[i];
        if (step % into == 0)
            memmove(to, from, width * sizeof *to);
    }
    pki_loop_row *loop = s->stages.loops;
    loop->number_count = (f->steps + into - 1) / into * width;
    for (size_t step = 0; step < f->steps && loop->no_processor; step++) {
        uint64_t ns = loop->no_processor[step];
        loop->no_processor[step / into] = ns + (step % into ? loop->no_processor[step / into] : 0);
    }
    loop->no_processor_count = loop->no_processor ? (f->steps + into - 1) / into : 0;
}

static int by_number(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static void tell_machines(const forge *f)
{
    double *sorted = malloc(f->ranks * sizeof *sorted);
    memcpy(sorted, f->machines, f->ranks * sizeof *sorted);
    qsort(sorted, f->ranks, sizeof *sorted, by_number);
    double middle = (sorted[(f->ranks - 1) / 2] + sorted[f->ranks / 2]) / 2;
    for (size_t r = 0; r < f->ranks; r++)
        f->machines[r] = f->machines[r] / middle - 1;
    free(sorted);
}

static void make_rank(const forge *f, uint64_t *state, size_t r, const cell *cells, bool slow,
                      pki_summary *rank)
{
    habit of = habit_of(f, r);
    double machine = f->quiet ? 1 : 1 + 0.007 * normal(state);
    if (f->machines)
        f->machines[r] = machine;
    begin_rank(f, r, rank);
    for (size_t step = 0; step < f->steps; step++) {
        double processor = cells ? 1 + cells[r * f->steps + step].slower : 1;
        own_step(f, state, machine * processor, slow ? slow_now(f, r, step) : 0, step, &of,
                 block_of(rank, step));
    }
    if (f->told || f->pinned)
        tell_seats(f, cells + r * f->steps, rank->stages.loops);
    if (f->crowd)
        crowd(f, state, rank);
    add_regions(f, state, rank);
}

void forge_make(const forge *f, pki_summary *ranks, bool *culprit)
{
    uint64_t state = f->seed * UINT64_C(0x2545F4914F6CDD1D) + 1;
    choose(f, &state, culprit);
    bool sits = f->uneven > 0 || f->told || f->pinned;
    cell *cells = sits ? processors(f, &state) : NULL;
    for (size_t r = 0; r < f->ranks; r++)
        make_rank(f, &state, r, cells, culprit[r], &ranks[r]);
    if (f->machines)
        tell_machines(f);
    for (size_t step = 0; step < f->steps; step++)
        reduce(f, ranks, step);
    for (size_t r = 0; r < f->ranks; r++)
        tell_slowest(&ranks[r], f->steps);
    for (size_t r = 0; f->joined && r < f->ranks; r++)
        join(f, &ranks[r]);
    free(cells);
}

/* ---- scores ---- */

/* A machine that really is slower by more than the limit is called so rightly. */
static bool is_drawn_late(const forge *f, const pki_job_late *late, size_t rank)
{
    return late->when == PKI_JOB_ALL_ALONG && f->machines[rank] > PKI_JOB_LATE_LEAST;
}

static void score_verdict(const pki_job *j, const pki_job_late *late, const forge *f,
                          const bool *culprit, job_score *s, size_t *wrong)
{
    size_t right = 0;
    for (size_t r = 0; r < f->ranks; r++)
        if (late->host ? j->ranks[r].host == late->host_at : r == late->rank) {
            if (!culprit[r] && is_drawn_late(f, late, r)) {
                s->drawn++;
                continue;
            }
            right += culprit[r];
            *wrong += !culprit[r];
            s->accused++;
        }
    s->rightly += right;
    s->found += right;
    s->stages += strcmp(j->stages[late->stage].name, forge_stages[f->stage]) == 0 ? right : 0;
    bool begins = f->when == FORGE_FOR_GOOD || f->when == FORGE_STRETCH || f->when == FORGE_STOP;
    if (!right || !begins)
        return;
    const pki_job_loop *loop = pki_job_usual(j);
    uint64_t first = forge_first(f), width = loop->first[1] - loop->first[0];
    uint64_t off = late->first > first ? late->first - first : first - late->first;
    s->since++;
    s->since_off += off;
    s->since_near += off <= 5 || off <= width;
}

/* A rank is found, or accused, once. */
static bool is_first(const pki_job_lateness *l, size_t stop)
{
    for (size_t i = 0; i < l->count; i++)
        if (!l->late[i].host && l->late[i].rank == l->stops[stop].rank)
            return false;
    for (size_t i = 0; i < stop; i++)
        if (l->stops[i].rank == l->stops[stop].rank)
            return false;
    return true;
}

static void score_job(const forge *of, job_score *s)
{
    pki_summary *ranks = calloc(of->ranks, sizeof *ranks);
    bool *culprit = calloc(of->ranks, sizeof *culprit);
    forge told = *of, *f = &told;
    pki_job j;
    size_t wrong = 0;
    told.machines = calloc(of->ranks, sizeof *told.machines);
    forge_make(f, ranks, culprit);
    if (pki_job_of(&j, ranks, f->ranks, &(pki_job_steps){0}) == PKI_JOB_MADE) {
        pki_job_findings found;
        if (!pki_job_find(&found, &j))
            abort();
        for (size_t i = 0; i < found.lateness.count; i++)
            score_verdict(&j, &found.lateness.late[i], f, culprit, s, &wrong);
        for (size_t i = 0; i < found.lateness.stop_count; i++)
            if (is_first(&found.lateness, i))
                score_verdict(&j, &found.lateness.stops[i], f, culprit, s, &wrong);
        s->processors += found.lateness.processors.slow_count;
        s->communication += pki_job_communication_share(&found) > PKI_JOB_COMMUNICATION_MOST;
        pki_job_findings_finish(&found);
    }
    for (size_t r = 0; r < f->ranks; r++)
        s->culprits += culprit[r];
    s->with_false += wrong > 0;
    s->jobs++;
    pki_job_finish(&j);
    free(told.machines);
    free(culprit);
    free(ranks);
}

job_score score_jobs(const forge *f, size_t jobs)
{
    job_score s = {0};
    for (size_t i = 0; i < jobs; i++) {
        forge next = *f;
        next.seed += i;
        score_job(&next, &s);
    }
    return s;
}

/* ---- windows as they come ---- */

static pk_job_steps_ portion(const pki_summary *s, size_t first, size_t steps)
{
    pk_job_steps_ to = {.first = first, .steps = steps};
    for (size_t k = 0; k < s->stages.stage_count; k++) {
        to.stages[k].kind = (uint8_t)s->stages.stages[k].kind;
        snprintf(to.stages[k].name, sizeof to.stages[k].name, "%s", s->stages.stages[k].name);
    }
    for (size_t step = first; step < first + steps; step++) {
        const uint64_t *block = s->stages.loops->numbers + step * s->stages.width;
        to.time += block[PKI_BLOCK_TIME];
        to.items += block[PKI_BLOCK_ITEMS];
        for (size_t k = 0; k < s->stages.stage_count; k++)
            to.stages[k].self += block[PKI_BLOCK_HEAD + k];
    }
    return to;
}

/* Of a verdict: is a culprit named? *wrong: somebody else. */
static bool is_named(const pk_job_word_ *word, const bool *culprit, bool *wrong)
{
    bool rightly = false;
    for (uint32_t i = 0; i < word->count && i < PK_JOB_LATE_; i++) {
        bool right = word->late[i].rank >= 0 && culprit[word->late[i].rank];
        rightly |= right;
        *wrong |= !right;
    }
    return rightly;
}

static pki_job_window *window_of(const forge *f, const pki_summary *ranks)
{
    char *hosts = calloc(f->ranks, PKI_WINDOW_HOST);
    for (size_t r = 0; r < f->ranks; r++)
        snprintf(hosts + r * PKI_WINDOW_HOST, PKI_WINDOW_HOST, "%s", ranks[r].run.host);
    pki_job_window *w = pki_job_window_create((int32_t)f->ranks, hosts);
    free(hosts);
    return w;
}

static void note_named(const forge *f, size_t steps, size_t end, live_score *s)
{
    size_t first = forge_first(f);
    s->near += end <= (first / steps + 1) * steps + FORGE_NEAR;
    if (s->named < FORGE_LIVE)
        s->after[s->named] = (double)(end - first);
    s->named++;
}

static void play_live(const forge *f, size_t steps, live_score *s)
{
    pki_summary *ranks = calloc(f->ranks, sizeof *ranks);
    pk_job_steps_ *given = calloc(f->ranks, sizeof *given);
    bool *culprit = calloc(f->ranks, sizeof *culprit), named = false;
    pk_job_word_ word = {.count = 0};
    forge_make(f, ranks, culprit);
    pki_job_window *w = window_of(f, ranks);
    for (size_t end = steps; end <= f->steps; end += steps) {
        bool wrong = false;
        for (size_t r = 0; r < f->ranks; r++)
            given[r] = portion(&ranks[r], end - steps, steps);
        pki_job_window_add(w, given);
        if (!pki_job_window_judge(w, &word))
            abort();
        if (is_named(&word, culprit, &wrong) && !named && end > forge_first(f)) {
            note_named(f, steps, end, s);
            named = true;
        }
        s->verdicts++;
        s->with_false += wrong;
    }
    for (size_t r = 0; r < f->ranks; r++)
        pki_summary_finish(&ranks[r]);
    pki_job_window_destroy(w);
    free(culprit);
    free(given);
    free(ranks);
}

void score_live(const forge *f, size_t steps, size_t jobs, live_score *s)
{
    for (size_t i = 0; i < jobs; i++) {
        forge next = *f;
        next.seed += i;
        play_live(&next, steps, s);
    }
}
