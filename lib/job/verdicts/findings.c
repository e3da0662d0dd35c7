#include "job/verdicts/verdicts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "measure/figure.h"

/* ---- all that is found in a job, and said of it ---- */

#define SHARE(x) (pki_figure_percent(x).text)
#define TIME(ns) (pki_figure_time(ns).text)

static void add_gap(pki_job_findings *f, int64_t first, int64_t last)
{
    if (last < first)
        return;
    f->gaps[f->gap_count++] = (pki_job_gap){(int32_t)first, (int32_t)last};
    f->missing_count += (size_t)(last - first + 1);
}

static bool find_absent(pki_job_findings *f)
{
    const pki_job *j = f->of;
    int64_t next = 0;
    f->gaps = pki_array_zeroed(j->rank_count + 1, sizeof *f->gaps);
    f->cut = pki_array_zeroed(j->rank_count, sizeof *f->cut);
    if (!f->gaps || !f->cut)
        return false;
    for (size_t r = 0; r < j->rank_count; r++) {
        add_gap(f, next, (int64_t)j->ranks[r].rank - 1);
        next = PKI_MAX(next, (int64_t)j->ranks[r].rank + 1);
        if (!j->ranks[r].run.complete)
            f->cut[f->cut_count++] = j->ranks[r].rank;
    }
    add_gap(f, next, (int64_t)j->world - 1);
    return true;
}

bool pki_job_find(pki_job_findings *f, const pki_job *j)
{
    const pki_job_loop *usual = pki_job_usual(j);
    *f = (pki_job_findings){.of = j, .pop = pki_job_find_pop(j, usual)};
    if (!pki_job_find_frontier(&f->frontier, j, usual) || !pki_job_find_links(&f->links, j) ||
        !pki_job_find_exchange(&f->exchange, j) || !pki_job_find_waits(&f->waits, j) ||
        !pki_job_find_late(&f->lateness, j, &f->waits) ||
        !pki_job_find_blames(&f->blames, j, &f->exchange, &f->waits))
        return false;
    f->crowds = pki_job_find_crowds(j, &f->crowd_count);
    return f->crowds && pki_job_find_what_ifs(f) && find_absent(f);
}

void pki_job_findings_finish(pki_job_findings *f)
{
    pki_job_lateness_finish(&f->lateness);
    pki_job_frontier_finish(&f->frontier);
    pki_job_links_finish(&f->links);
    pki_job_exchange_finish(&f->exchange);
    pki_job_waits_finish(&f->waits);
    pki_job_blames_finish(&f->blames);
    free(f->crowds);
    free(f->gaps);
    free(f->cut);
}

/* "0-3, 7, 9-12"; to be freed. NULL without memory. */
static char *text_of(const pki_job_gap *gaps, size_t count)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        fprintf(memory, i ? ", %d" : "%d", gaps[i].first);
        if (gaps[i].last > gaps[i].first)
            fprintf(memory, "-%d", gaps[i].last);
    }
    bool ok = !ferror(memory);
    if (fclose(memory) == 0 && ok)
        return text;
    free(text);
    return NULL;
}

/* The same of numbers in order. */
static char *ranges_of(const int32_t *numbers, size_t count)
{
    size_t n = 0;
    pki_job_gap *all = pki_array_zeroed(count, sizeof *all);
    for (size_t i = 0; all && i < count; i++)
        if (n && all[n - 1].last == numbers[i] - 1)
            all[n - 1].last = numbers[i];
        else
            all[n++] = (pki_job_gap){numbers[i], numbers[i]};
    char *text = all ? text_of(all, n) : NULL;
    free(all);
    return text;
}

double pki_job_communication_share(const pki_job_findings *f)
{
    bool known = f->pop.known && !f->pop.why_no_transfer;
    return known ? f->pop.transfer / f->pop.runtime : 0;
}

/* ---- sentences ---- */

/* Without memory no more is said, and what is said is not all. */
typedef struct saying {
    pki_job_verdicts *to;
    size_t room;
    bool failed;
} saying;

static void add_verdict(saying *v, const char *name, pki_severity severity,
                        const pki_job_late *late, const char *format, ...)
    __attribute__((__format__(__printf__, 5, 6)));

static void add_verdict(saying *v, const char *name, pki_severity severity,
                        const pki_job_late *late, const char *format, ...)
{
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pki_job_verdicts *to = v->to;
    char *kept = v->failed ? NULL : strdup(text);
    v->failed = !kept || !pki_array_fit(&to->all, &v->room, to->count + 1, sizeof *to->all);
    if (v->failed)
        free(kept);
    else
        to->all[to->count++] = (pki_job_verdict){name, severity, kept, late, NULL, NULL};
}

/* " Without it a step takes 6.1 % less." */
static const char *what_if(const pki_job_findings *f, const pki_job_late *late, char text[80])
{
    const pki_job_what_if *w = pki_job_what_if_of(f, late);
    text[0] = '\0';
    if (w && w->share >= PKI_JOB_IF_LEAST)
        snprintf(text, 80, " Without it a step takes %s less.", SHARE(w->share));
    return text;
}

static void add_each_late(saying *v, const pki_job_findings *f, const pki_job_late *late)
{
    char text[1000], then[80];
    pki_job_describe_late(f->of, late, text, sizeof text);
    add_verdict(v, late->host ? "late-host" : "late-rank", PKI_WARN, late, "%s%s", text,
                what_if(f, late, then));
}

/* ---- verdicts for people: of many that are late a few sentences, by stage ---- */

#define STAGES_SAID 4
#define FIRST_SAID 4
#define RANGES_SAID 120 /* characters */

/* Those that are late mostly in one stage, or all hosts that are. */
typedef struct group {
    bool hosts;
    size_t stage; /* stage_count: it is not known, or there are several */
    size_t stages, count, host_count, room;
    const pki_job_late **all; /* the latest first */
} group;

static bool add(group *to, const pki_job_late *late)
{
    if (!pki_array_fit(&to->all, &to->room, to->count + 1, sizeof(const pki_job_late *)))
        return false;
    to->all[to->count++] = late;
    return true;
}

/* Most members first, the latest first among equal ones. */
static int larger_first(const void *x, const void *y)
{
    const group *a = x, *b = y;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    if (!a->count || a->all[0]->by == b->all[0]->by)
        return (a->stage > b->stage) - (a->stage < b->stage);
    return a->all[0]->by < b->all[0]->by ? 1 : -1;
}

static bool count_hosts(const pki_job *j, group *g)
{
    bool *seen = pki_array_zeroed(j->hosts.count, sizeof *seen);
    for (size_t i = 0; seen && i < g->count; i++) {
        bool *of = &seen[g->all[i]->host_at];
        g->host_count += !*of;
        *of = true;
    }
    free(seen);
    return seen != NULL;
}

static int by_number(const void *x, const void *y)
{
    const int32_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* "3, 7-9 ... (--json has all)"; to be freed. NULL without memory. */
static char *members_of(const pki_job *j, const group *g)
{
    static const char more[] = " ... (--json has all)";
    int32_t *numbers = pki_array_zeroed(g->count, sizeof *numbers);
    for (size_t i = 0; numbers && i < g->count; i++)
        numbers[i] = j->ranks[g->all[i]->rank].rank;
    if (numbers)
        qsort(numbers, g->count, sizeof *numbers, by_number);
    char *text = numbers ? ranges_of(numbers, g->count) : NULL;
    free(numbers);
    if (!text || strlen(text) <= RANGES_SAID)
        return text;
    size_t end = RANGES_SAID;
    while (end && text[end] != ',')
        end--;
    char *cut = realloc(text, end + sizeof more);
    if (cut)
        memcpy(cut + end, more, sizeof more);
    else
        free(text);
    return cut;
}

static void describe_stage(const pki_job *j, const group *g, char *text, size_t size)
{
    if (g->stages > 1)
        snprintf(text, size, "most of it in %zu other stages", g->stages);
    else if (g->stage < j->stage_count)
        snprintf(text, size, "most of it in %.100s", j->stages[g->stage].name);
    else
        snprintf(text, size, "where is not known");
}

static void describe_ranks(const pki_job *j, const group *g, char *text, size_t size)
{
    const char *host = j->hosts.texts[g->all[0]->host_at];
    if (g->hosts)
        snprintf(text, size, "%zu hosts, all ranks of each,", g->count);
    else if (g->host_count == 1)
        snprintf(text, size, "%zu ranks of host %.64s", g->count, host);
    else
        snprintf(text, size, "%zu ranks of %zu hosts", g->count, g->host_count);
}

static void describe_group(saying *v, const pki_job_findings *f, const group *g)
{
    const pki_job *j = f->of;
    if (g->count == 1) {
        add_each_late(v, f, g->all[0]);
        return;
    }
    const pki_job_late *most = g->all[0], *least = g->all[g->count - 1];
    char who[120], where[140], worst[120];
    describe_ranks(j, g, who, sizeof who);
    describe_stage(j, g, where, sizeof where);
    snprintf(worst, sizeof worst, g->hosts ? "host %.64s" : "host %.64s, rank %d",
             j->hosts.texts[most->host_at], g->hosts ? 0 : j->ranks[most->rank].rank);
    char *members = g->hosts ? strdup("") : members_of(j, g);
    if (members)
        add_verdict(v, g->hosts ? "late-hosts" : "late-ranks", PKI_WARN, NULL,
                    "%s take %s to %s longer than the others for the same work, %s. Most of all %s:"
                    " %s per step.%s%s%s",
                    who, SHARE(least->by), SHARE(most->by), where, worst, TIME(most->excess),
                    *members ? " Ranks " : "", members, *members ? "." : "");
    v->failed = v->failed || !members;
    free(members);
}

/* Beyond the first ones all are one: a few late ranks of each of many stages. */
static bool join_small(const pki_job *j, group *groups, size_t *count)
{
    if (*count <= STAGES_SAID)
        return true;
    group *rest = &groups[STAGES_SAID - 1];
    rest->stages = *count - (STAGES_SAID - 1);
    rest->stage = j->stage_count;
    for (size_t i = STAGES_SAID; i < *count; i++)
        for (size_t k = 0; k < groups[i].count; k++)
            if (!add(rest, groups[i].all[k]))
                return false;
    *count = STAGES_SAID;
    return true;
}

static int latest_first(const void *x, const void *y)
{
    const pki_job_late *const *a = x, *const *b = y;
    if ((*a)->by != (*b)->by)
        return (*a)->by < (*b)->by ? 1 : -1;
    return ((*a)->rank > (*b)->rank) - ((*a)->rank < (*b)->rank);
}

/* groups: by stage, and behind these the hosts. */
static bool fill(const pki_job_findings *f, group *groups)
{
    size_t stages = f->of->stage_count;
    for (size_t k = 0; k <= stages; k++)
        groups[k] = (group){.stage = k, .stages = 1};
    groups[stages + 1] = (group){.hosts = true, .stage = stages, .stages = 1};
    for (size_t i = 0; i < f->lateness.count; i++) {
        const pki_job_late *late = &f->lateness.late[i];
        size_t stage = late->stage_share > 0 ? late->stage : stages;
        if (!add(&groups[late->host ? stages + 1 : stage], late))
            return false;
    }
    return true;
}

static bool describe_groups(saying *v, const pki_job_findings *f, group *groups)
{
    size_t stages = f->of->stage_count, count = 0;
    if (!fill(f, groups))
        return false;
    if (groups[stages + 1].count)
        describe_group(v, f, &groups[stages + 1]);
    qsort(groups, stages + 1, sizeof *groups, larger_first);
    while (count <= stages && groups[count].count)
        count++;
    if (!join_small(f->of, groups, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        qsort(groups[i].all, groups[i].count, sizeof(const pki_job_late *), latest_first);
        if (!count_hosts(f->of, &groups[i]))
            return false;
        describe_group(v, f, &groups[i]);
    }
    return true;
}

static void add_late_groups(saying *v, const pki_job_findings *f)
{
    size_t stages = f->of->stage_count;
    group *groups = pki_array_zeroed(stages + 2, sizeof *groups);
    if (!groups || !describe_groups(v, f, groups))
        v->failed = true;
    for (size_t i = 0; groups && i < stages + 2; i++)
        free(groups[i].all);
    free(groups);
}

static void add_late(saying *v, const pki_job_findings *f, bool all)
{
    if (all || f->lateness.count <= PKI_JOB_LATE_SAID) {
        for (size_t i = 0; i < f->lateness.count; i++)
            add_each_late(v, f, &f->lateness.late[i]);
        return;
    }
    add_late_groups(v, f);
    add_verdict(v, "late-ranks", PKI_WARN, NULL,
                "All %zu that are late together make the job's steps %s longer.", f->lateness.count,
                TIME(f->lateness.cost));
}

static void add_stops(saying *v, const pki_job_findings *f, bool all)
{
    char text[1000];
    size_t count = f->lateness.stop_count, said = all ? count : PKI_MIN(count, FIRST_SAID);
    for (size_t i = 0; i < said; i++) {
        pki_job_describe_late(f->of, &f->lateness.stops[i], text, sizeof text);
        add_verdict(v, "long-step", PKI_WARN, &f->lateness.stops[i], "%s", text);
    }
    if (said < count)
        add_verdict(v, "long-step", PKI_WARN, NULL, "%zu more steps of single ranks took as long.",
                    count - said);
}

/* ---- of links, processors and hosts, which may be many, the first ones ---- */

/* Behind the last one that is said: how many are not. */
static const char *and_more(char more[60], size_t i, size_t count, const char *are)
{
    more[0] = '\0';
    if (i + 1 == FIRST_SAID && count > FIRST_SAID)
        snprintf(more, 60, " (%zu more %s)", count - FIRST_SAID, are);
    return more;
}

static size_t slow_links(const pki_job_findings *f)
{
    size_t n = 0;
    while (n < f->waits.link_count && f->waits.links[n].slow)
        n++;
    return n;
}

static void add_links(saying *v, const pki_job_findings *f)
{
    size_t slow = slow_links(f);
    char more[60];
    for (size_t i = 0; i < slow && i < FIRST_SAID; i++) {
        const pki_job_link *l = &f->waits.links[i];
        const pki_job_rank *from = &f->of->ranks[l->from], *to = &f->of->ranks[l->to];
        add_verdict(
            v, "slow-link", PKI_WARN, NULL,
            "Messages from rank %d (host %.64s) to rank %d (host %.64s) take %s when both are there"
            " (median of %zu), and %s between other ranks: the link, or what moves them, is slow%s.",
            from->rank, f->of->hosts.texts[from->host], to->rank, f->of->hosts.texts[to->host],
            TIME(l->transfer), l->looked_at, TIME(l->usual),
            and_more(more, i, slow, "links are slow"));
    }
}

static void add_slow_processors(saying *v, const pki_job_findings *f)
{
    const pki_job_processors *p = &f->lateness.processors;
    char more[60];
    for (size_t i = 0; i < p->slow_count && i < FIRST_SAID; i++) {
        const pki_job_slow_processor *s = &p->slow[i];
        add_verdict(
            v, "slow-processor", PKI_WARN, NULL,
            "Processor %u of host %.64s takes %s longer for the same work than its others, in steps"
            " %llu to %llu, with up to %zu ranks on it: something else has a part of it, or it is"
            " held down. That is no rank's lateness and not counted as such%s.",
            s->number, f->of->hosts.texts[s->host], SHARE(s->by), (unsigned long long)s->first,
            (unsigned long long)s->last, s->ranks,
            and_more(more, i, p->slow_count, "processors are slow"));
        if (!v->failed)
            v->to->all[v->to->count - 1].slow = s;
    }
}

static void add_crowds(saying *v, const pki_job_findings *f)
{
    char more[60];
    for (size_t i = 0; i < f->crowd_count && i < FIRST_SAID; i++) {
        const pki_job_crowd *c = &f->crowds[i];
        add_verdict(
            v, "no-processor", PKI_WARN, NULL,
            "Host %.64s: its %zu ranks were ready to run and had no processor for %s to %s of their"
            " time (rank %d most; threshold %s): more wants to run there than there are processors."
            " That is no rank's lateness and not counted as such%s.",
            f->of->hosts.texts[c->host], c->ranks, SHARE(c->least), SHARE(c->most),
            f->of->ranks[c->most_rank].rank, SHARE(PKI_JOB_CROWDED_FROM),
            and_more(more, i, f->crowd_count, "hosts are like that"));
    }
}

/* "Ranks 3 and 4 more take" */
static const char *who_may_be(const pki_job_findings *f, const pki_job_undecided *of, char who[80])
{
    char more[40] = "";
    if (of->ranks > 1)
        snprintf(more, sizeof more, " and %zu more take", of->ranks - 1);
    snprintf(who, 80, "Rank%s %d%s", of->ranks > 1 ? "s" : "", f->of->ranks[of->rank].rank,
             of->ranks > 1 ? more : " takes");
    return who;
}

static void add_maybe_late(saying *v, const pki_job_findings *f)
{
    const pki_job_undecided *known = &f->lateness.not_known, *alone = &f->lateness.not_alone;
    const pki_job_undecided *at_link = &f->lateness.at_link;
    char who[80];
    if (known->ranks)
        add_verdict(
            v, "maybe-late", PKI_NOTE, NULL,
            "%s longer than the others for the same work (%s), which may be time without a"
            " processor: nobody tells when in the run that was, as libpk_mpi does. With it, or a"
            " processor for each rank, one would know.",
            who_may_be(f, known, who), SHARE(known->by));
    if (alone->ranks)
        add_verdict(
            v, "maybe-late", PKI_NOTE, NULL,
            "%s longer than the others for the same work (%s at most), and %s out among the ranks"
            " of the host, which share processors: it may be the processor that is slow, or that is"
            " shared with something else, and who sits there. With a processor for each rank one"
            " would know.",
            who_may_be(f, alone, who), SHARE(alone->by),
            alone->ranks > 1 ? "none of them stands" : "does not stand");
    if (at_link->ranks)
        add_verdict(
            v, "maybe-late", PKI_NOTE, NULL,
            "%s longer than the others for the same work (%s), which is less than a tenth of what"
            " the slow link takes there: others have the processor and its caches while it waits.",
            who_may_be(f, at_link, who), SHARE(at_link->by));
}

static void note_unsure(saying *v, const pki_job_undecided *of)
{
    if (!v->failed)
        v->to->all[v->to->count - 1].unsure = of;
}

/* Of a rank that stands beyond the limit in tables and pictures it has to be said why it is not
 * called late. */
static void add_not_called(saying *v, const pki_job_findings *f)
{
    const pki_job_undecided *unsure = &f->lateness.unsure, *small = &f->lateness.not_worth;
    bool crowded = small->ranks && pki_job_is_crowded(f->of, small->rank);
    char who[80], interval[90] = ": its steps are too few or too unlike to tell by how much";
    if (unsure->low > -1 && isfinite(unsure->high))
        snprintf(interval, sizeof interval, ": %s to %s", SHARE(unsure->low), SHARE(unsure->high));
    if (unsure->ranks) {
        add_verdict(
            v, "not-sure", PKI_NOTE, NULL,
            "%s longer than the others for the same work (%s%s), and may be late, which is"
            " from %s on, or not. More steps, or a machine with less else to do, would tell.",
            who_may_be(f, unsure, who), SHARE(unsure->by), interval, SHARE(f->lateness.least));
        note_unsure(v, unsure);
    }
    if (small->ranks) {
        add_verdict(v, "not-sure", PKI_NOTE, NULL,
                    "%s longer than the others for the same work (%s, late from %s on), which costs"
                    " less than %s of a step: it is not worth while.",
                    who_may_be(f, small, who), SHARE(small->by), SHARE(f->lateness.least),
                    SHARE(crowded ? PKI_JOB_LATE_COST : PKI_JOB_LATE_WORTH));
        note_unsure(v, small);
    }
}

static void add_communication(saying *v, const pki_job_findings *f)
{
    double share = pki_job_communication_share(f);
    if (share <= PKI_JOB_COMMUNICATION_MOST)
        return;
    add_verdict(
        v, "communication", PKI_WARN, NULL,
        "Communication takes %s of the steps (threshold %s): so much even of the rank that waits"
        " least, so it is the network or its use%s.",
        SHARE(share), SHARE(PKI_JOB_COMMUNICATION_MOST),
        f->lateness.count || f->crowd_count ? "" : ", not a rank: none is late");
}

/* Own time over the ranks; on crowded hosts without that in which they had no processor, or may
 * have had none. */
typedef struct balance {
    double mean, most, ranks;
    size_t most_rank;
} balance;

static balance find_balance(const pki_job *j, const pki_job_loop *loop)
{
    balance all = {0};
    for (size_t r = 0; loop && r < j->rank_count; r++) {
        double own = 0;
        for (size_t b = 0; b < loop->block_count; b++)
            own += loop->own[pki_job_cell(j, b, r)] - loop->maybe[pki_job_cell(j, b, r)];
        if (!(loop->made[r] > 0))
            continue;
        all.most_rank = own > all.most ? r : all.most_rank;
        all.most = PKI_MAX(all.most, own);
        all.mean += own;
        all.ranks++;
    }
    all.mean /= PKI_MAX(all.ranks, 1);
    return all;
}

static void add_imbalance(saying *v, const pki_job_findings *f)
{
    balance all = find_balance(f->of, pki_job_usual(f->of));
    double share = all.most > 0 ? all.mean / all.most : 1;
    if (!f->pop.known || f->lateness.count || f->lateness.stop_count || share >= PKI_JOB_ACCEPTABLE)
        return;
    add_verdict(
        v, "imbalance", PKI_WARN, NULL,
        "The load balance is %s (acceptable from %s on): rank %d has %s of time of its own, the"
        " mean is %s%s. For the same work no rank is late, so the work is divided unevenly.",
        SHARE(share), SHARE(PKI_JOB_ACCEPTABLE), f->of->ranks[all.most_rank].rank, TIME(all.most),
        TIME(all.mean), f->crowd_count ? ", without what they lacked a processor for" : "");
}

/* The stage in which one rank makes the steps wait for the most part, beyond the limit: its place,
 * or that of none. */
static size_t find_waited_for(const pki_job_findings *f)
{
    size_t found = f->of->stage_count;
    for (size_t k = 0; f->frontier.stages && k < f->of->stage_count; k++) {
        const pki_job_increment *i = &f->frontier.stages[k];
        bool beyond = i->time > f->lateness.least * f->frontier.exposed;
        if (!f->of->stages[k].waits && beyond && 2 * i->of_rank > i->time &&
            (found == f->of->stage_count || i->of_rank > f->frontier.stages[found].of_rank))
            found = k;
    }
    return found;
}

/* Where the tables have one rank that stands out, "no rank is late" would be read as if they had
 * not. False: they have none. */
static bool add_uneven(saying *v, const pki_job_findings *f)
{
    const pki_job *j = f->of;
    balance all = find_balance(j, pki_job_usual(j));
    size_t stage = j->rank_count > 3 ? find_waited_for(f) : j->stage_count;
    double beyond = all.mean > 0 ? all.most / all.mean - 1 : 0;
    if (stage < j->stage_count)
        add_verdict(v, "uneven", PKI_NOTE, NULL,
                    "No rank is late for the same work, and yet the steps wait for rank %d in most"
                    " of %.100s (%s of a step): it may have more work there.",
                    j->ranks[f->frontier.stages[stage].rank].rank, j->stages[stage].name,
                    SHARE(f->frontier.stages[stage].of_rank / f->frontier.exposed));
    else if (beyond > f->lateness.least)
        add_verdict(v, "uneven", PKI_NOTE, NULL,
                    "No rank is late for the same work, and yet rank %d has %s more of time of its"
                    " own than the mean: it may have more work.",
                    j->ranks[all.most_rank].rank, SHARE(beyond));
    return stage < j->stage_count || beyond > f->lateness.least;
}

static void add_absent(saying *v, const pki_job_findings *f)
{
    char *missing = text_of(f->gaps, f->gap_count), *cut = ranges_of(f->cut, f->cut_count);
    v->failed = v->failed || !missing || !cut;
    if (!v->failed && f->missing_count)
        add_verdict(v, "missing-ranks", PKI_WARN, NULL,
                    "There is no file of %zu of %d ranks: %.400s.", f->missing_count, f->of->world,
                    missing);
    if (!v->failed && f->cut_count)
        add_verdict(v, "cut-off", PKI_WARN, NULL,
                    "%zu ranks did not end, or their files are cut off: %.400s.", f->cut_count,
                    cut);
    free(missing);
    free(cut);
}

static void add_not_judged(saying *v, const pki_job_findings *f)
{
    if (f->of->outside_waits)
        add_verdict(
            v, "waits-unknown", PKI_NOTE, NULL,
            "No stage of the steps is of the kind comm or wait: what is outside all regions counts"
            " as waiting for others.");
    if (f->lateness.why_not)
        add_verdict(v, "not-judged", PKI_NOTE, NULL, "Nobody can be called late: %s.",
                    f->lateness.why_not);
    else if (v->to->count == (size_t)f->of->outside_waits && !add_uneven(v, f))
        add_verdict(v, "no-finding", PKI_GOOD, NULL, "No rank is late, and no host.");
}

static bool find_verdicts(pki_job_verdicts *to, const pki_job_findings *f, bool all)
{
    *to = (pki_job_verdicts){.count = 0};
    saying v = {.to = to};
    add_late(&v, f, all);
    add_stops(&v, f, all);
    add_links(&v, f);
    add_slow_processors(&v, f);
    add_maybe_late(&v, f);
    add_not_called(&v, f);
    add_crowds(&v, f);
    add_communication(&v, f);
    add_imbalance(&v, f);
    add_absent(&v, f);
    add_not_judged(&v, f);
    return !v.failed;
}

bool pki_job_find_verdicts(pki_job_verdicts *v, const pki_job_findings *f)
{
    return find_verdicts(v, f, true);
}

bool pki_job_group_verdicts(pki_job_verdicts *v, const pki_job_findings *f)
{
    return find_verdicts(v, f, false);
}

void pki_job_verdicts_finish(pki_job_verdicts *v)
{
    for (size_t i = 0; i < v->count; i++)
        free(v->all[i].text);
    free(v->all);
    *v = (pki_job_verdicts){.count = 0};
}
