#include "job/figures/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"

/* ---- spread ---- */

/* Values of ranks, in order; those below 0 are not there. */
typedef struct spreading {
    const pki_job *of;
    pki_job_spread s;
    double sum;
} spreading;

static spreading begin_spread(const pki_job *j)
{
    return (spreading){.of = j, .s = {.max_rank = PKI_JOB_NO_RANK}};
}

static void add_value(spreading *to, size_t rank, double v)
{
    pki_job_spread *s = &to->s;
    if (v < 0)
        return;
    s->min = s->have && s->min < v ? s->min : v;
    if (!s->have || v > s->max) {
        s->max = v;
        s->max_rank = to->of->ranks[rank].rank;
    }
    s->have++;
    to->sum += v;
}

static pki_job_spread end_spread(const spreading *of)
{
    pki_job_spread s = of->s;
    s.mean = s.have ? of->sum / (double)s.have : 0;
    s.mean_all = of->of->rank_count ? of->sum / (double)of->of->rank_count : 0;
    s.imbalance = s.mean_all > 0 ? s.max / s.mean_all - 1 : 0;
    return s;
}

pki_job_spread pki_job_spread_of(const pki_job *j, const double *values)
{
    spreading s = begin_spread(j);
    for (size_t r = 0; r < j->rank_count; r++)
        add_value(&s, r, values[r]);
    return end_spread(&s);
}

static double per_step(const pki_job_loop *loop, const double *row, size_t rank)
{
    double time = 0;
    for (size_t b = 0; b < loop->block_count; b++)
        time += row[b];
    return time > 0 ? time / loop->made[rank] : -1;
}

double pki_job_stage_of_rank(const pki_job_loop *loop, size_t stage, size_t rank)
{
    const double *row = pki_job_selves_row(loop, stage, rank);
    return row ? per_step(loop, row, rank) : -1;
}

pki_job_spread pki_job_spread_of_stage(const pki_job *j, const pki_job_loop *loop, size_t stage)
{
    const pki_job_selves *of = &loop->selves[stage];
    spreading s = begin_spread(j);
    for (size_t i = 0; i < of->count; i++)
        add_value(&s, of->ranks[i], per_step(loop, of->rows + i * loop->block_count, of->ranks[i]));
    return end_spread(&s);
}

/* ---- efficiency as the POP centre defines it (co-design.pop-coe.eu/metrics) ---- */

/* What the rank that waits least waits, in a block. */
static double least_wait(const pki_job *j, const pki_job_loop *loop, size_t block)
{
    double least = -1;
    for (size_t r = 0; r < j->rank_count; r++) {
        size_t cell = pki_job_cell(j, block, r);
        double wait = loop->time[cell] - loop->own[cell];
        if (loop->steps[cell] > 0 && (least < 0 || wait < least))
            least = wait;
    }
    return least > 0 ? least : 0;
}

static double sum_over_blocks(const pki_job *j, const pki_job_loop *loop, const double *cells,
                              size_t rank)
{
    double sum = 0;
    for (size_t b = 0; b < loop->block_count; b++)
        sum += cells[pki_job_cell(j, b, rank)];
    return sum;
}

static void find_transfer(const pki_job *j, const pki_job_loop *loop, pki_job_pop *p)
{
    for (size_t b = 0; b < loop->block_count; b++)
        p->transfer += least_wait(j, loop, b);
    double ideal = p->runtime - p->transfer;
    p->why_no_transfer = j->rank_count < 2  ? "there is one rank only"
                         : j->outside_waits ? "no stage of the steps is of the kind comm or wait"
                         : ideal <= 0       ? "the steps are nothing but waiting"
                                            : NULL;
    if (p->why_no_transfer)
        return;
    p->serialisation = p->useful_max / ideal;
    p->transfer_efficiency = ideal / p->runtime;
}

pki_job_pop pki_job_find_pop(const pki_job *j, const pki_job_loop *loop)
{
    pki_job_pop p = {0};
    if (!loop)
        return p;
    spreading useful = begin_spread(j);
    for (size_t r = 0; r < j->rank_count; r++) {
        double time = sum_over_blocks(j, loop, loop->time, r);
        add_value(&useful, r, time > 0 ? sum_over_blocks(j, loop, loop->own, r) : -1);
        p.runtime = time > p.runtime ? time : p.runtime;
    }
    pki_job_spread s = end_spread(&useful);
    p.known = s.have && s.max > 0 && p.runtime > 0;
    if (!p.known)
        return p;
    p.useful_mean = s.mean;
    p.useful_max = s.max;
    p.useful_max_rank = s.max_rank;
    p.load_balance = s.mean / s.max;
    p.communication = s.max / p.runtime;
    p.parallel = p.load_balance * p.communication;
    find_transfer(j, loop, &p);
    return p;
}

/* ---- which stage of which rank the job's steps wait for (arXiv 2606.06751) ---- */

#define AT_ONCE 8 /* blocks: a line of the processor's cache */

typedef struct walk {
    const pki_job *of;
    const pki_job_loop *loop;
    double (*upto)[AT_ONCE]; /* by rank: time of its stages so far */
    double before[AT_ONCE];  /* the largest of them */
    double **led;            /* by stage, then by row of its selves: increments that it has made */
} walk;

/* Only who has the stage goes on in it, so the largest is who was it before, or one of these; of
 * equal ones the lowest rank, which comes first. */
static void add_stage(walk *w, size_t stage, size_t block, size_t blocks, pki_job_frontier *f)
{
    const pki_job_selves *of = &w->loop->selves[stage];
    double now[AT_ONCE];
    size_t leader[AT_ONCE] = {0};
    memcpy(now, w->before, sizeof now);
    for (size_t i = 0; i < of->count; i++) {
        const double *row = of->rows + i * w->loop->block_count + block;
        double *upto = w->upto[of->ranks[i]];
        for (size_t b = 0; b < blocks; b++) {
            upto[b] += row[b];
            leader[b] = upto[b] > now[b] ? i : leader[b];
            now[b] = PKI_MAX(upto[b], now[b]);
        }
    }
    for (size_t b = 0; b < blocks; b++) {
        f->stages[stage].time += now[b] - w->before[b];
        if (now[b] > w->before[b])
            w->led[stage][leader[b]] += now[b] - w->before[b];
    }
    memcpy(w->before, now, sizeof now);
}

static void add_blocks(walk *w, size_t block, size_t blocks, pki_job_frontier *f)
{
    memset(w->upto, 0, w->of->rank_count * sizeof *w->upto);
    memset(w->before, 0, sizeof w->before);
    for (size_t k = 0; k < w->of->stage_count; k++)
        add_stage(w, k, block, blocks, f);
    for (size_t b = 0; b < blocks; b++) {
        double steps = 0;
        for (size_t r = 0; r < w->of->rank_count; r++)
            steps = PKI_MAX(steps, w->loop->steps[pki_job_cell(w->of, block + b, r)]);
        f->exposed += w->before[b];
        f->steps += steps;
    }
}

/* Who has made most of the stage's, the lowest of equal ones. */
static void find_rank(const walk *w, size_t stage, pki_job_increment *of)
{
    const pki_job_selves *selves = &w->loop->selves[stage];
    for (size_t i = 0; i < selves->count; i++)
        if (w->led[stage][i] > of->of_rank) {
            of->of_rank = w->led[stage][i];
            of->rank = selves->ranks[i];
        }
}

static bool begin_walk(walk *w, pki_job_frontier *f)
{
    size_t stages = w->of->stage_count;
    w->upto = pki_array_zeroed(w->of->rank_count, sizeof *w->upto);
    w->led = pki_array_zeroed(stages, sizeof *w->led);
    f->stages = pki_array_zeroed(stages, sizeof *f->stages);
    bool done = w->upto && w->led && f->stages;
    for (size_t k = 0; done && k < stages; k++) {
        w->led[k] = pki_array_zeroed(w->loop->selves[k].count, sizeof **w->led);
        done = w->led[k] != NULL;
    }
    return done;
}

static void end_walk(walk *w)
{
    for (size_t k = 0; w->led && k < w->of->stage_count; k++)
        free(w->led[k]);
    free(w->led);
    free(w->upto);
}

bool pki_job_find_frontier(pki_job_frontier *f, const pki_job *j, const pki_job_loop *loop)
{
    walk w = {.of = j, .loop = loop};
    *f = (pki_job_frontier){0};
    if (!loop)
        return true;
    bool done = begin_walk(&w, f);
    for (size_t b = 0; done && b < loop->block_count; b += AT_ONCE)
        add_blocks(&w, b, PKI_MIN(loop->block_count - b, AT_ONCE), f);
    for (size_t k = 0; done && k < j->stage_count; k++)
        find_rank(&w, k, &f->stages[k]);
    end_walk(&w);
    return done;
}

void pki_job_frontier_finish(pki_job_frontier *f)
{
    free(f->stages);
    *f = (pki_job_frontier){0};
}

/* ---- what the devices of all ranks did in a step: where its time went ---- */

const char *const pki_job_device_parts[PKI_JOB_DEVICE_PARTS] = {
    "compute", "communication", "memory", "idle", "sync_gaps", "launch_gaps"};

double pki_job_devices_share(const pki_job_rank *r, unsigned part)
{
    double sum = 0, steps = 0;
    for (size_t i = 0; i < r->device_count; i++) {
        const pki_job_device *d = &r->devices[i];
        if (d->parts[part] < 0 || d->step <= 0)
            continue;
        sum += d->parts[part] * (double)d->steps;
        steps += d->step * (double)d->steps;
    }
    return steps > 0 ? sum / steps : -1;
}

double pki_job_devices_overlap(const pki_job_device *all, size_t count)
{
    double hidden = 0, communicated = 0;
    for (size_t i = 0; i < count; i++) {
        hidden += all[i].hidden * (double)all[i].steps;
        communicated += all[i].communicated * (double)all[i].steps;
    }
    return communicated > 0 ? hidden / communicated : -1;
}

/* ---- what the ranks cost beside time, and the job: MFU, I/O, energy, memory ---- */

typedef struct of_hosts {
    pki_texts counters; /* "host number, name" */
    size_t room;
    double *most;
} of_hosts;

static bool see(of_hosts *all, uint32_t host, const pki_job_joules *counter)
{
    char key[80];
    snprintf(key, sizeof key, "%u %s", host, counter->name);
    if (!pki_array_fit(&all->most, &all->room, all->counters.count + (size_t)1, sizeof *all->most))
        return false;
    uint32_t at = pki_texts_add(&all->counters, key);
    if (at == PKI_TEXTS_NONE)
        return false;
    if (counter->joules > all->most[at])
        all->most[at] = counter->joules;
    return true;
}

/* GPUs of all ranks, and of each host what one of its ranks has seen of each counter. */
static bool joules_of(const pki_job *j, double *sum)
{
    of_hosts hosts = {.room = 0};
    bool done = true;
    *sum = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        const pki_job_spent *s = &j->ranks[r].spent;
        *sum += s->gpu_joules;
        for (size_t i = 0; done && i < s->counter_count; i++)
            done = see(&hosts, j->ranks[r].host, &s->counters[i]);
    }
    for (uint32_t i = 0; i < hosts.counters.count; i++)
        *sum += hosts.most[i];
    pki_texts_finish(&hosts.counters);
    free(hosts.most);
    return done;
}

static double sum_of(const pki_job *j, int cost)
{
    double sum = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        if (j->ranks[r].spent.of[cost] > 0)
            sum += j->ranks[r].spent.of[cost];
    return sum;
}

static double utilisation_of(const pki_job *j, bool model)
{
    double done = 0, possible = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        const pki_job_spent *s = &j->ranks[r].spent;
        done += model ? s->model : s->hardware;
        possible += s->possible;
    }
    return possible > 0 ? done / possible : 0;
}

bool pki_job_costs_of(pki_job_costs *c, const pki_job *j)
{
    double joules;
    if (!joules_of(j, &joules))
        return false;
    for (int i = 0; i < PKI_JOB_COSTS; i++) {
        spreading s = begin_spread(j);
        for (size_t r = 0; r < j->rank_count; r++)
            add_value(&s, r, j->ranks[r].spent.of[i]);
        c->by[i] = end_spread(&s);
        c->sum[i] = !c->by[i].have                         ? -1
                    : i == PKI_JOB_MFU || i == PKI_JOB_HFU ? utilisation_of(j, i == PKI_JOB_MFU)
                    : i == PKI_JOB_JOULES                  ? joules
                                                           : sum_of(j, i);
    }
    return true;
}

/* ---- events of calls (costs=hardware,software) over the ranks ---- */

/* Of all ranks: rows[region * ranks + rank], NULL of a rank that does not have it. */
typedef struct counted {
    const pki_job *of;
    pki_texts regions;
    const pki_events_row **rows;
} counted;

static const pki_events_row *row_of(const counted *all, size_t region, size_t rank)
{
    return all->rows[region * all->of->rank_count + rank];
}

static bool begin_counted(counted *all)
{
    const pki_job *j = all->of;
    for (size_t r = 0; r < j->rank_count; r++)
        for (size_t i = 0; i < j->ranks[r].counted_count; i++)
            if (pki_texts_add(&all->regions, j->ranks[r].counted[i].region) == PKI_TEXTS_NONE)
                return false;
    all->rows = pki_array_zeroed(all->regions.count * j->rank_count, sizeof *all->rows);
    for (size_t r = 0; all->rows && r < j->rank_count; r++)
        for (size_t i = 0; i < j->ranks[r].counted_count; i++) {
            const pki_events_row *row = &j->ranks[r].counted[i];
            all->rows[pki_texts_find(&all->regions, row->region) * j->rank_count + r] = row;
        }
    return all->rows != NULL;
}

/* What a rank's figure weighs by: what it is divided by. */
static double weight_of(const pki_events_row *row, pki_event_figure figure)
{
    double calls = (double)row->calls;
    if (pki_event_figure_is_share(figure))
        return calls * row->value[PKI_EVENT_SLOTS];
    switch (figure) {
    case PKI_FIGURE_IPC:
        return calls * row->value[PKI_EVENT_CYCLES];
    case PKI_FIGURE_CACHE:
    case PKI_FIGURE_BRANCH:
        return calls * row->value[PKI_EVENT_INSTRUCTIONS];
    default:
        return calls;
    }
}

typedef struct sum {
    double weight, value, squares;
    bool unknown; /* a rank's error */
} sum;

static void add(sum *to, const pki_events_row *row, pki_event_figure figure)
{
    double weight = weight_of(row, figure), error = pki_event_error_of(row, figure);
    to->weight += weight;
    to->value += weight * pki_event_figure_of(row, figure);
    to->squares += weight * error * weight * error;
    to->unknown |= error < 0;
}

static void fill_figure(const counted *all, size_t region, pki_event_figure figure,
                        pki_job_counted *c)
{
    sum of = {.weight = 0};
    spreading s = begin_spread(all->of);
    for (size_t r = 0; r < all->of->rank_count; r++) {
        const pki_events_row *row = row_of(all, region, r);
        double value = row ? pki_event_figure_of(row, figure) : -1;
        add_value(&s, r, value);
        if (value >= 0)
            add(&of, row, figure);
    }
    bool known = of.weight > 0;
    c->by[figure] = end_spread(&s);
    c->value[figure] = known ? of.value / of.weight : -1;
    c->error[figure] = known && !of.unknown ? sqrt(of.squares) / of.weight : -1;
}

static pki_job_counted counted_of(const counted *all, size_t region)
{
    pki_job_counted c = {.region = ""};
    for (size_t r = 0; r < all->of->rank_count; r++) {
        const pki_events_row *row = row_of(all, region, r);
        if (!row)
            continue;
        c.region = row->region;
        c.calls += row->calls;
        c.sampled += row->sampled;
        c.time += (double)row->time;
    }
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++)
        fill_figure(all, region, f, &c);
    return c;
}

static int by_time(const void *x, const void *y)
{
    const pki_job_counted *a = x, *b = y;
    if (a->time != b->time)
        return a->time < b->time ? 1 : -1;
    return strcmp(a->region, b->region);
}

pki_job_counted *pki_job_counted_of(const pki_job *j, size_t *count)
{
    counted all = {.of = j};
    pki_job_counted *out = NULL;
    if (begin_counted(&all))
        out = pki_array_zeroed(all.regions.count, sizeof *out);
    *count = out ? all.regions.count : 0;
    for (size_t i = 0; i < *count; i++)
        out[i] = counted_of(&all, i);
    if (*count)
        qsort(out, *count, sizeof *out, by_time);
    pki_texts_finish(&all.regions);
    free(all.rows);
    return out;
}
