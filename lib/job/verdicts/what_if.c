/* lib/job/verdicts/what_if.c - how much shorter a step were without what is wrong: the ranks' steps
 * replayed with that taken away (figures.h) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "bench/stats/samples.h"
#include "job/verdicts/verdicts.h"

/* What is taken away, and what that takes. */
typedef struct absence {
    const pki_job_findings *f;
    const pki_job_loop *loop;
    const pki_job_what_if *what;
    double *usual; /* by block: own time for a piece of work in the middle of the ranks; or by rank:
                      what a stage takes then of what it does */
} absence;

static double own_for_work(const absence *a, size_t block, size_t rank)
{
    size_t cell = pki_job_cell(a->f->of, block, rank);
    double work = a->f->lateness.by_work ? a->loop->items[cell] : a->loop->steps[cell];
    return work > 0 ? (a->loop->own[cell] - a->loop->ready[cell]) / work : NAN;
}

static bool is_late(const pki_job *j, const pki_job_late *late, const pki_job_cell_at *at)
{
    return !j->stages[at->stage].waits && at->block >= late->begin && at->block < late->end &&
           (late->host ? j->ranks[at->rank].host == late->host_at : at->rank == late->rank);
}

/* All along, or in a stretch, by as much; else in each block to what the others take: in that to
 * which it is late now and then, by the half of that at least. */
static double without_late(const absence *a, const pki_job_cell_at *at)
{
    const pki_job_late *late = a->what->late;
    if (!is_late(a->f->of, late, at))
        return at->ns;
    if (late->when == PKI_JOB_ONCE)
        return at->stage == late->stage
                   ? fmax(at->ns - at->part * late->extra / (double)(late->end - late->begin), 0)
                   : at->ns;
    double by = late->by, now = own_for_work(a, at->block, at->rank);
    if (late->when == PKI_JOB_MORE_AND_MORE || late->when == PKI_JOB_NOW_AND_THEN) {
        double least = late->when == PKI_JOB_NOW_AND_THEN ? late->worst / 2 : 0;
        by = a->usual[at->block] > 0 ? now / a->usual[at->block] - 1 : 0;
        by = by > least ? by : 0;
    }
    return at->ns / (1 + by);
}

/* At its receiver what it takes longer; and at its sender, in calls that only start messages. */
static double without_link(const absence *a, const pki_job_cell_at *at)
{
    const pki_job *j = a->f->of;
    const pki_job_link *l = a->what->link;
    size_t cell = pki_job_cell(j, at->block, at->rank);
    double excess = pki_job_link_excess(j, l) * a->loop->steps[cell] * at->part;
    bool is = j->stages[at->stage].waits && (at->rank == l->to || at->rank == l->from);
    return is ? fmax(at->ns - excess, 0) : at->ns;
}

static double without(void *user, const pki_job_cell_at *at)
{
    const absence *a = user;
    if (at->loop)
        return at->ns;
    switch (a->what->sort) {
    case PKI_JOB_IF_LINK:
        return without_link(a, at);
    case PKI_JOB_IF_STAGE:
        return at->stage == a->what->stage ? at->ns * a->usual[at->rank] : at->ns;
    default:
        return without_late(a, at);
    }
}

static void find_usual(absence *a, double *room)
{
    for (size_t b = 0; b < a->loop->block_count; b++) {
        size_t count = 0;
        for (size_t r = 0; r < a->f->of->rank_count; r++) {
            double own = own_for_work(a, b, r);
            if (isfinite(own))
                room[count++] = own;
        }
        a->usual[b] = count ? pki_samples_select_median(room, count) : 0;
    }
}

/* Of the ranks that have it: by which factor it is their mean. What differs from step to step
 * stays.
 */
static void find_even(absence *a)
{
    size_t stage = a->what->stage;
    pki_job_spread s = pki_job_spread_of_stage(a->f->of, a->loop, stage);
    for (size_t r = 0; r < a->f->of->rank_count; r++) {
        double own = pki_job_stage_of_rank(a->loop, stage, r);
        a->usual[r] = own > 0 ? s.mean / own : 1;
    }
}

static bool replay(pki_job_findings *f, pki_job_what_if *what, double *room)
{
    absence a = {.f = f, .loop = pki_job_usual(f->of), .what = what};
    double saved;
    a.usual = pki_array_zeroed(PKI_MAX(a.loop->block_count, f->of->rank_count), sizeof *a.usual);
    if (!a.usual)
        return false;
    if (what->sort == PKI_JOB_IF_STAGE)
        find_even(&a);
    else if (what->sort != PKI_JOB_IF_LINK)
        find_usual(&a, room);
    bool done =
        pki_job_replay(&(pki_job_change){without, &a}, f->of, &f->exchange, &f->waits, &saved);
    what->share = fmax(saved / f->pop.runtime, 0);
    what->saved = fmax(saved / f->frontier.steps, 0);
    free(a.usual);
    return done;
}

/* ---- which are asked ---- */

#define STAGES 3
#define LINKS 4

static void add_late(pki_job_findings *f, const pki_job_late *late)
{
    if (f->what_if_count < PKI_JOB_WHAT_IFS - STAGES - LINKS)
        f->what_ifs[f->what_if_count++] =
            (pki_job_what_if){.sort = late->host ? PKI_JOB_IF_HOST : PKI_JOB_IF_RANK, .late = late};
}

/* The stage, not asked yet, that one rank makes longest beyond the mean, if that is worth while. */
static size_t next_stage(const pki_job_findings *f, size_t first)
{
    const pki_job *j = f->of;
    double most = PKI_JOB_IF_LEAST * f->frontier.exposed / f->frontier.steps;
    size_t found = j->stage_count;
    for (size_t k = 0; k < j->stage_count; k++) {
        pki_job_spread s = pki_job_spread_of_stage(j, pki_job_usual(j), k);
        bool asked = j->stages[k].waits || s.max - s.mean <= most;
        for (size_t i = first; i < f->what_if_count; i++)
            asked = asked || f->what_ifs[i].stage == k;
        if (!asked) {
            most = s.max - s.mean;
            found = k;
        }
    }
    return found;
}

bool pki_job_find_what_ifs(pki_job_findings *f)
{
    const pki_job *j = f->of;
    if (f->blames.why_not || !f->pop.known || f->crowd_count)
        return true;
    for (size_t i = 0; i < f->lateness.count; i++)
        add_late(f, &f->lateness.late[i]);
    for (size_t i = 0; i < f->lateness.stop_count; i++)
        add_late(f, &f->lateness.stops[i]);
    for (size_t i = 0; i < PKI_MIN(f->waits.link_count, (size_t)LINKS); i++)
        if (pki_job_link_excess(j, &f->waits.links[i]) > 0)
            f->what_ifs[f->what_if_count++] =
                (pki_job_what_if){.sort = PKI_JOB_IF_LINK, .link = &f->waits.links[i]};
    for (size_t i = 0, first = f->what_if_count; i < STAGES; i++) {
        size_t stage = next_stage(f, first);
        if (stage < j->stage_count)
            f->what_ifs[f->what_if_count++] =
                (pki_job_what_if){.sort = PKI_JOB_IF_STAGE, .stage = stage};
    }
    double *room = pki_array_zeroed(j->rank_count, sizeof *room);
    bool done = room != NULL;
    for (size_t i = 0; done && i < f->what_if_count; i++)
        done = replay(f, &f->what_ifs[i], room);
    free(room);
    return done;
}

const pki_job_what_if *pki_job_what_if_of(const pki_job_findings *f, const pki_job_late *late)
{
    for (size_t i = 0; i < f->what_if_count; i++)
        if (f->what_ifs[i].late == late)
            return &f->what_ifs[i];
    return NULL;
}

void pki_job_describe_what_if(const pki_job *j, const pki_job_what_if *w, char *text, size_t size)
{
    if (w->sort == PKI_JOB_IF_RANK)
        snprintf(text, size, "without rank %d's lateness", j->ranks[w->late->rank].rank);
    else if (w->sort == PKI_JOB_IF_HOST)
        snprintf(text, size, "without host %.64s's lateness", j->hosts.texts[w->late->host_at]);
    else if (w->sort == PKI_JOB_IF_LINK)
        snprintf(text, size, "with a usual link from rank %d to %d", j->ranks[w->link->from].rank,
                 j->ranks[w->link->to].rank);
    else
        snprintf(text, size, "with %.100s divided evenly", j->stages[w->stage].name);
}
