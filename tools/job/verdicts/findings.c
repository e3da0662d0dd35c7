#include "job/verdicts/findings.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "job/verdicts/crowd.h"
#include "job/verdicts/worth.h"
#include "measure/figure.h"
#include "memory.h"

#define SHARE(x) (pki_figure_percent(x).text)
#define TIME(ns) (pki_figure_time(ns).text)

static void add_gap(job_findings *f, int64_t first, int64_t last)
{
    if (last < first)
        return;
    f->gaps[f->gap_count++] = (job_gap){(int32_t)first, (int32_t)last};
    f->missing_count += (size_t)(last - first + 1);
}

static void find_absent(job_findings *f)
{
    const job *j = f->of;
    int64_t next = 0;
    f->gaps = memory_zeroed(j->rank_count + 1, sizeof *f->gaps);
    f->cut = memory_zeroed(j->rank_count, sizeof *f->cut);
    for (size_t r = 0; r < j->rank_count; r++) {
        add_gap(f, next, (int64_t)j->ranks[r].rank - 1);
        next = PKI_MAX(next, (int64_t)j->ranks[r].rank + 1);
        if (!j->ranks[r].run.complete)
            f->cut[f->cut_count++] = j->ranks[r].rank;
    }
    add_gap(f, next, (int64_t)j->world - 1);
}

job_findings job_find(const job *j)
{
    const job_loop *usual = job_usual(j);
    job_findings f = {.of = j,
                      .pop = job_find_pop(j, usual),
                      .frontier = job_find_frontier(j, usual),
                      .links = job_find_links(j),
                      .exchange = job_find_exchange(j),
                      .waits = job_find_waits(j)};
    f.lateness = job_find_late(j, &f.waits);
    f.crowds = job_find_crowds(j, &f.crowd_count);
    find_absent(&f);
    return f;
}

void job_findings_finish(job_findings *f)
{
    job_lateness_finish(&f->lateness);
    job_frontier_finish(&f->frontier);
    job_links_finish(&f->links);
    job_exchange_finish(&f->exchange);
    job_waits_finish(&f->waits);
    free(f->crowds);
    free(f->gaps);
    free(f->cut);
}

char *job_gaps(const job_gap *gaps, size_t count)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    memory_needed(memory);
    for (size_t i = 0; i < count; i++) {
        fprintf(memory, i ? ", %d" : "%d", gaps[i].first);
        if (gaps[i].last > gaps[i].first)
            fprintf(memory, "-%d", gaps[i].last);
    }
    memory_needed(fclose(memory) == 0 && text);
    return text;
}

char *job_ranges(const int32_t *numbers, size_t count)
{
    size_t n = 0;
    job_gap *all = memory_zeroed(count + 1, sizeof *all);
    for (size_t i = 0; i < count; i++)
        if (n && all[n - 1].last == numbers[i] - 1)
            all[n - 1].last = numbers[i];
        else
            all[n++] = (job_gap){numbers[i], numbers[i]};
    char *text = job_gaps(all, n);
    free(all);
    return text;
}

double job_communication_share(const job_findings *f)
{
    bool known = f->pop.known && !f->pop.why_no_transfer;
    return known ? f->pop.transfer / f->pop.runtime : 0;
}

/* ---- verdicts ---- */

typedef struct verdicts {
    job_verdict *all;
    size_t count;
} verdicts;

static void add_verdict(verdicts *v, const char *name, pki_severity severity, const job_late *late,
                        const char *format, ...) __attribute__((__format__(__printf__, 5, 6)));

static void add_verdict(verdicts *v, const char *name, pki_severity severity, const job_late *late,
                        const char *format, ...)
{
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    v->all = memory_resized(v->all, (v->count + 1) * sizeof *v->all);
    v->all[v->count++] = (job_verdict){name, severity, memory_copy(text), late, NULL};
}

void job_describe_late(const job *j, const job_late *late, char *text, size_t size)
{
    char who[300], where[300], or_it[60] = "";
    if (!late->host && late->processor != PKI_SEAT_UNKNOWN)
        snprintf(or_it, sizeof or_it, ", or processor %u that it alone has", late->processor);
    if (late->host)
        snprintf(who, sizeof who, "Host %.64s (all %zu ranks of it)", j->hosts.texts[late->host_at],
                 late->ranks);
    else
        snprintf(who, sizeof who, "Rank %d%s (host %.64s)%s", j->ranks[late->rank].rank, or_it,
                 j->hosts.texts[late->host_at], *or_it ? "," : "");
    snprintf(where, sizeof where, "where is not known");
    if (late->stage_share > 0) /* else all stages are hidden by time without a processor */
        snprintf(where, sizeof where, "%s of it in %.100s", SHARE(late->stage_share),
                 j->stages[late->stage].name);
    snprintf(text, size,
             "%s takes %s longer than the others for the same work (%s to %s), %s: %s per step,"
             " which makes the job's steps %s longer.",
             who, SHARE(late->by), SHARE(late->low), SHARE(late->high), where, TIME(late->excess),
             TIME(late->cost));
}

static void add_each_late(verdicts *v, const job_findings *f, const job_late *late)
{
    char text[1000];
    job_describe_late(f->of, late, text, sizeof text);
    add_verdict(v, late->host ? "late-host" : "late-rank", PKI_WARN, late, "%s", text);
}

static void add_late(verdicts *v, const job_findings *f, bool all)
{
    if (all || f->lateness.count <= JOB_LATE_SAID) {
        for (size_t i = 0; i < f->lateness.count; i++)
            add_each_late(v, f, &f->lateness.late[i]);
        return;
    }
    v->all = memory_resized(v->all, JOB_GROUPS_MOST * sizeof *v->all);
    v->count = job_add_late_groups(f, v->all);
    add_verdict(v, "late-ranks", PKI_WARN, NULL,
                "All %zu that are late together make the job's steps %s longer.", f->lateness.count,
                TIME(f->lateness.cost));
}

/* ---- of links, processors and hosts, which may be many, the first ones ---- */

#define FIRST_SAID 4

/* Behind the last one that is said: how many are not. */
static const char *and_more(char more[60], size_t i, size_t count, const char *are)
{
    more[0] = '\0';
    if (i + 1 == FIRST_SAID && count > FIRST_SAID)
        snprintf(more, 60, " (%zu more %s)", count - FIRST_SAID, are);
    return more;
}

static size_t slow_links(const job_findings *f)
{
    size_t n = 0;
    while (n < f->waits.link_count && f->waits.links[n].slow)
        n++;
    return n;
}

static void add_links(verdicts *v, const job_findings *f)
{
    size_t slow = slow_links(f);
    char more[60];
    for (size_t i = 0; i < slow && i < FIRST_SAID; i++) {
        const job_link *l = &f->waits.links[i];
        const job_rank *from = &f->of->ranks[l->from], *to = &f->of->ranks[l->to];
        add_verdict(
            v, "slow-link", PKI_WARN, NULL,
            "Messages from rank %d (host %.64s) to rank %d (host %.64s) take %s when both are there"
            " (median of %zu), and %s between other ranks: the link, or what moves them, is slow%s.",
            from->rank, f->of->hosts.texts[from->host], to->rank, f->of->hosts.texts[to->host],
            TIME(l->transfer), l->looked_at, TIME(l->usual),
            and_more(more, i, slow, "links are slow"));
    }
}

static void add_slow_processors(verdicts *v, const job_findings *f)
{
    const job_processors *p = &f->lateness.processors;
    char more[60];
    for (size_t i = 0; i < p->slow_count && i < FIRST_SAID; i++) {
        const job_slow_processor *s = &p->slow[i];
        add_verdict(
            v, "slow-processor", PKI_WARN, NULL,
            "Processor %u of host %.64s takes %s longer for the same work than its others, in steps"
            " %llu to %llu, with up to %zu ranks on it: something else has a part of it, or it is"
            " held down. That is no rank's lateness and not counted as such%s.",
            s->number, f->of->hosts.texts[s->host], SHARE(s->by), (unsigned long long)s->first,
            (unsigned long long)s->last, s->ranks,
            and_more(more, i, p->slow_count, "processors are slow"));
        v->all[v->count - 1].slow = s;
    }
}

static void add_crowds(verdicts *v, const job_findings *f)
{
    char more[60];
    for (size_t i = 0; i < f->crowd_count && i < FIRST_SAID; i++) {
        const job_crowd *c = &f->crowds[i];
        add_verdict(
            v, "no-processor", PKI_WARN, NULL,
            "Host %.64s: its %zu ranks were ready to run and had no processor for %s to %s of their"
            " time (rank %d most; threshold %s): more wants to run there than there are processors."
            " That is no rank's lateness and not counted as such%s.",
            f->of->hosts.texts[c->host], c->ranks, SHARE(c->least), SHARE(c->most),
            f->of->ranks[c->most_rank].rank, SHARE(JOB_CROWDED_FROM),
            and_more(more, i, f->crowd_count, "hosts are like that"));
    }
}

/* "Ranks 3 and 4 more take" */
static const char *who_may_be(const job_findings *f, const job_undecided *of, char who[80])
{
    char more[40] = "";
    if (of->ranks > 1)
        snprintf(more, sizeof more, " and %zu more take", of->ranks - 1);
    snprintf(who, 80, "Rank%s %d%s", of->ranks > 1 ? "s" : "", f->of->ranks[of->rank].rank,
             of->ranks > 1 ? more : " takes");
    return who;
}

static void add_maybe_late(verdicts *v, const job_findings *f)
{
    const job_undecided *known = &f->lateness.not_known, *alone = &f->lateness.not_alone;
    const job_undecided *at_link = &f->lateness.at_link;
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
            " shared with something else, and who sits there. With ranks bound to processors one"
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

/* Of a rank that stands beyond the limit in tables and pictures it has to be said why it is not
 * called late. */
static void add_not_called(verdicts *v, const job_findings *f)
{
    const job_undecided *unsure = &f->lateness.unsure, *small = &f->lateness.not_worth;
    bool crowded = small->ranks && job_is_crowded(f->of, small->rank);
    char who[80], low[80] = "its steps are too few or too unlike";
    if (unsure->low > 0)
        snprintf(low, sizeof low, "its steps tell surely of no more than %s", SHARE(unsure->low));
    if (unsure->ranks)
        add_verdict(
            v, "not-sure", PKI_NOTE, NULL,
            "%s longer than the others for the same work (%s, late from %s on), which may be"
            " chance: %s, and %s is asked for. More steps, or a machine with less else to"
            " do, would tell.",
            who_may_be(f, unsure, who), SHARE(unsure->by), SHARE(JOB_LATE_LEAST), low,
            SHARE(JOB_LATE_SURELY));
    if (small->ranks)
        add_verdict(v, "not-sure", PKI_NOTE, NULL,
                    "%s longer than the others for the same work (%s, late from %s on), which costs"
                    " less than %s of a step: it is not worth while.",
                    who_may_be(f, small, who), SHARE(small->by), SHARE(JOB_LATE_LEAST),
                    SHARE(crowded ? JOB_LATE_COST : JOB_LATE_WORTH));
}

static void add_communication(verdicts *v, const job_findings *f)
{
    double share = job_communication_share(f);
    if (share <= JOB_COMMUNICATION_MOST)
        return;
    add_verdict(
        v, "communication", PKI_WARN, NULL,
        "Communication takes %s of the steps (threshold %s): so much even of the rank that waits"
        " least, so it is the network or its use%s.",
        SHARE(share), SHARE(JOB_COMMUNICATION_MOST),
        f->lateness.count || f->crowd_count ? "" : ", not a rank: none is late");
}

/* On a crowded host time without a processor is in a rank's own, and nobody has divided that. */
static void add_imbalance(verdicts *v, const job_findings *f)
{
    const job_pop *p = &f->pop;
    if (!p->known || f->lateness.count || f->crowd_count || p->load_balance >= JOB_ACCEPTABLE)
        return;
    add_verdict(
        v, "imbalance", PKI_WARN, NULL,
        "The load balance is %s (acceptable from %s on): rank %d has %s of time of its own, the"
        " mean is %s. For the same work no rank is late, so the work is divided unevenly.",
        SHARE(p->load_balance), SHARE(JOB_ACCEPTABLE), p->useful_max_rank, TIME(p->useful_max),
        TIME(p->useful_mean));
}

static void add_absent(verdicts *v, const job_findings *f)
{
    char *missing = job_gaps(f->gaps, f->gap_count);
    char *cut = job_ranges(f->cut, f->cut_count);
    if (f->missing_count)
        add_verdict(v, "missing-ranks", PKI_WARN, NULL,
                    "There is no file of %zu of %d ranks: %.400s.", f->missing_count, f->of->world,
                    missing);
    if (f->cut_count)
        add_verdict(v, "cut-off", PKI_WARN, NULL,
                    "%zu ranks did not end, or their files are cut off: %.400s.", f->cut_count,
                    cut);
    free(missing);
    free(cut);
}

static void add_not_judged(verdicts *v, const job_findings *f)
{
    if (f->of->outside_waits)
        add_verdict(
            v, "waits-unknown", PKI_NOTE, NULL,
            "No stage of the steps is of the kind comm or wait: what is outside all regions counts"
            " as waiting for others.");
    if (f->lateness.why_not)
        add_verdict(v, "not-judged", PKI_NOTE, NULL, "Nobody can be called late: %s.",
                    f->lateness.why_not);
    else if (v->count == (size_t)f->of->outside_waits)
        add_verdict(v, "no-finding", PKI_GOOD, NULL, "No rank is late, and no host.");
}

static job_verdict *find_verdicts(const job_findings *f, bool all, size_t *count)
{
    verdicts v = {NULL, 0};
    add_late(&v, f, all);
    add_links(&v, f);
    add_slow_processors(&v, f);
    add_maybe_late(&v, f);
    add_not_called(&v, f);
    add_crowds(&v, f);
    add_communication(&v, f);
    add_imbalance(&v, f);
    add_absent(&v, f);
    add_not_judged(&v, f);
    *count = v.count;
    return v.all;
}

job_verdict *job_verdicts(const job_findings *f, size_t *count)
{
    return find_verdicts(f, true, count);
}

job_verdict *job_grouped_verdicts(const job_findings *f, size_t *count)
{
    return find_verdicts(f, false, count);
}
