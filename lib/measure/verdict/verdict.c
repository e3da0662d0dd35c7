#include "measure/verdict/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "measure/verdict/rules.h"

/* ---- what the figures of a run mean, in words ---- */

/* ---- verdict ---- */

static pki_rule pki_verdict_leak, pki_verdict_near_limit, pki_verdict_allocates,
    pki_verdict_page_faults;
static pki_rule pki_verdict_requests_late, pki_verdict_requests_queued;

static const struct {
    pki_rule *say;
    pki_yielding yielding;
} rules[] = {
    {pki_verdict_cpu_starved, PKI_STANDS},
    {pki_verdict_oversubscribed, PKI_STANDS},
    {pki_verdict_throttled, PKI_STANDS},
    {pki_verdict_memory_far, PKI_STANDS},
    {pki_verdict_clock_low, PKI_STANDS},
    {pki_verdict_requests_late, PKI_YIELDS},
    {pki_verdict_requests_queued, PKI_YIELDS},
    {pki_verdict_input_bound, PKI_YIELDS_SHARE},
    {pki_verdict_communication, PKI_YIELDS_SHARE},
    {pki_verdict_waiting, PKI_YIELDS_SHARE},
    {pki_verdict_io_bound, PKI_YIELDS_SHARE},
    {pki_verdict_comm_exposed, PKI_YIELDS_SHARE},
    {pki_verdict_launch_bound, PKI_YIELDS_SHARE},
    {pki_verdict_copy_bound, PKI_STANDS},
    {pki_verdict_sync_bound, PKI_YIELDS_SHARE},
    {pki_verdict_gpu_idle, PKI_YIELDS_SHARE},
    {pki_verdict_gpu_throttled, PKI_STANDS},
    {pki_verdict_unsteady, PKI_YIELDS},
    {pki_verdict_drifting, PKI_YIELDS},
    {pki_verdict_leak, PKI_STANDS},
    {pki_verdict_near_limit, PKI_STANDS},
    {pki_verdict_gpu_leak, PKI_STANDS},
    {pki_verdict_gpu_near_limit, PKI_STANDS},
    {pki_verdict_gpu_allocates, PKI_STANDS},
    {pki_verdict_page_faults, PKI_STANDS},
    {pki_verdict_allocates, PKI_STANDS},
    {pki_verdict_gpu_bound, PKI_STANDS},
    {pki_verdict_at_the_roof, PKI_STANDS},
    {pki_verdict_nothing_found, PKI_STANDS},
    {pki_verdict_incomplete, PKI_STANDS},
    {pki_verdict_dropped, PKI_STANDS},
    {pki_verdict_late, PKI_STANDS},
    {pki_verdict_unwritten, PKI_STANDS},
    {pki_verdict_two_perfkits, PKI_STANDS},
    {pki_verdict_not_finite, PKI_STANDS},
    {pki_verdict_overhead, PKI_STANDS},
    {pki_verdict_clock_coarse, PKI_STANDS},
    {pki_verdict_untracked, PKI_STANDS},
    {pki_verdict_unbalanced, PKI_STANDS},
    {pki_verdict_warm_up, PKI_STANDS},
    {pki_verdict_few_steps, PKI_STANDS},
    {pki_verdict_no_breakdown, PKI_STANDS},
    {pki_verdict_no_steps, PKI_STANDS},
};

bool pki_verdicts_fill(pki_summary *summary)
{
    double starved = pki_starved_share(summary);
    pki_summary_clear_verdicts(summary);
    for (size_t i = 0; i < PKI_COUNT_OF(rules); i++) {
        pki_sentence words = {.starved = starved, .yielding = rules[i].yielding};
        bool fits = rules[i].say(summary, &words);
        free(words.text);
        if (!fits) {
            pki_summary_clear_verdicts(summary);
            return false;
        }
    }
    return true;
}

/* ---- the sentences of a verdict, put together, and the list of verdicts ---- */

#define REGIONS_MOST 3
#define REGION_LEAST 0.01 /* of the step, to be worth a mention */

static void fail(pki_sentence *words)
{
    free(words->text);
    words->text = NULL;
    words->failed = true;
}

void pki_sentence_add(pki_sentence *words, const char *format, ...)
{
    va_list args;
    if (words->failed)
        return;
    char *more = NULL, *both = NULL;
    va_start(args, format);
    int length = vasprintf(&more, format, args);
    va_end(args);
    if (length < 0) {
        fail(words);
        return;
    }
    size_t before = words->text ? strlen(words->text) : 0;
    both = realloc(words->text, before + (size_t)length + 1);
    if (both) {
        memcpy(both + before, more, (size_t)length + 1);
        words->text = both;
    } else {
        fail(words);
    }
    free(more);
}

/* Of the step; of a run without steps if there is but one thread that it can be a share of. */
static double share_of(const pki_summary *s, const pki_region_row *row)
{
    if (!s->whole_run.time)
        return row->step_share;
    return s->thread_count == 1 ? (double)row->self / (double)s->whole_run.time : 0;
}

/* The next one in falling order of share after `last`. */
static const pki_region_row *next_largest(const pki_summary *s, unsigned kinds,
                                          const pki_region_row *last)
{
    const pki_region_row *found = NULL;
    for (size_t i = 0; i < s->region_count; i++) {
        const pki_region_row *row = &s->regions[i];
        double share = share_of(s, row), limit = last ? share_of(s, last) : 0;
        if (row->kind >= PKI_KINDS || !(kinds >> row->kind & 1) || share < REGION_LEAST)
            continue;
        /* Equal shares: in the order of the rows. */
        bool after = !last || share < limit || (share <= limit && row > last);
        if (after && (!found || share > share_of(s, found)))
            found = row;
    }
    return found;
}

void pki_sentence_add_regions(pki_sentence *words, const pki_summary *summary, unsigned kinds)
{
    const pki_region_row *row = NULL;
    for (int i = 0; i < REGIONS_MOST && (row = next_largest(summary, kinds, row)); i++)
        pki_sentence_add(words, "%s\"%s\" %s", i ? ", " : ": ", row->name,
                         pki_figure_percent(share_of(summary, row)).text);
    pki_sentence_add(words, ".");
}

void pki_sentence_add_slowest(pki_sentence *words, const pki_summary *summary)
{
    const pki_step_row *slowest = summary->steps.slowest;
    if (summary->steps.slowest_count == 0 || slowest->part_count == 0)
        return;
    const pki_step_part *part = slowest->parts;
    bool named = part->kind != PKI_UNTRACKED;
    pki_sentence_add(words, " The slowest is step %s with %s: %s%s%s took %s longer than usual.",
                     pki_figure_count(slowest->index).text,
                     pki_figure_time((double)slowest->duration).text, named ? "\"" : "",
                     named ? part->name : "time outside every region", named ? "\"" : "",
                     pki_figure_time((double)part->self - part->usual).text);
}

static bool yields(const pki_sentence *words, double value, double threshold)
{
    return words->starved > 0 &&
           (words->yielding == PKI_YIELDS ||
            (words->yielding == PKI_YIELDS_SHARE && value - words->starved <= threshold));
}

bool pki_verdict_add_sentence(pki_sentence *words, pki_summary *summary, const char *name,
                              pki_severity severity, double value, double threshold)
{
    if (words->text && severity != PKI_GOOD && yields(words, value, threshold)) {
        pki_sentence_add(words, " Without a processor (cpu-starved), that can come of itself.");
        severity = PKI_NOTE;
    }
    return words->text && pki_verdict_add(summary, name, severity, value, threshold, words->text);
}

/* ---- the list ---- */

/* Warnings come first. */
bool pki_verdict_has_warning(const pki_summary *s)
{
    return s->verdict_count > 0 && s->verdicts[0].severity == PKI_WARN;
}

static int rank_of(pki_severity severity)
{
    return severity == PKI_WARN ? 0 : severity == PKI_GOOD ? 1 : 2;
}

bool pki_verdict_add(pki_summary *summary, const char *name, pki_severity severity, double value,
                     double threshold, const char *text)
{
    size_t count = summary->verdict_count, place = count;
    pki_verdict *grown = realloc(summary->verdicts, (count + 1) * sizeof *grown);
    if (!grown)
        return false;
    summary->verdicts = grown;
    pki_verdict verdict = {strdup(name), severity, value, threshold, strdup(text)};
    if (!verdict.name || !verdict.text) {
        free(verdict.name);
        free(verdict.text);
        return false;
    }
    while (place && rank_of(grown[place - 1].severity) > rank_of(severity))
        place--;
    memmove(&grown[place + 1], &grown[place], (count - place) * sizeof *grown);
    grown[place] = verdict;
    summary->verdict_count++;
    return true;
}

/* ---- memory ---- */

/* Memory grows without end, is nearly used up, or is taken and given
 * back in every step. */

#define BYTES(n) (pki_figure_scaled((double)(n), "B").text)

static const char *shown(const pki_memory_region *r)
{
    return r->name && r->name[0] ? r->name : "outside of all regions";
}

/* The region that grows most; NULL: none does. */
static const pki_memory_region *growing(const pki_memory_summary *m)
{
    const pki_memory_region *most = NULL;
    for (size_t i = 0; i < m->region_count; i++)
        if (m->regions[i].growth.per_step > (most ? most->growth.per_step : 0))
            most = &m->regions[i];
    return most;
}

static bool pki_verdict_leak(pki_summary *s, pki_sentence *words)
{
    const pki_memory_summary *m = &s->memory;
    const pki_memory_region *r = growing(m);
    const pki_growth *g = r ? &r->growth : &m->growth;
    if (!(g->per_step > 0))
        return true;
    if (r)
        pki_sentence_add(
            words,
            "What is allocated %s%s%s and not freed grows by %s a step, in each third of"
            " the last %s steps (%s standard deviations from no trend, threshold 4.5): %s"
            " live at the end.",
            r->name[0] ? "in \"" : "", shown(r), r->name[0] ? "\"" : "", BYTES(g->per_step),
            COUNT(g->steps), pki_figure_scaled(g->z, "").text, BYTES(r->live));
    else
        pki_sentence_add(
            words,
            "The process's private memory grows by %s a step, in each third of the last"
            " %s steps (%s standard deviations from no trend, threshold 4.5).",
            BYTES(g->per_step), COUNT(g->steps), pki_figure_scaled(g->z, "").text);
    if (!r && !m->allocator[0])
        pki_sentence_add(words, " With libpk_alloc preloaded the report names the region.");
    return pki_verdict_add_sentence(words, s, "leak", PKI_WARN, g->z, PKI_GROWTH_Z);
}

static bool pki_verdict_near_limit(pki_summary *s, pki_sentence *words)
{
    const pki_memory_summary *m = &s->memory;
    double share = m->limit ? (double)m->used / (double)m->limit : 0;
    if (!(share > PKI_NEAR_LIMIT))
        return true;
    pki_sentence_add(words,
                     "%s of memory were in use, %s of the limit of %s (%s; threshold 90 %%): a"
                     " somewhat larger input ends the run.",
                     BYTES(m->used), PERCENT(share), BYTES(m->limit), m->limit_of);
    return pki_verdict_add_sentence(words, s, "near-memory-limit", PKI_WARN, share, PKI_NEAR_LIMIT);
}

/* A step's usual length; 0: there are none. */
static double usual_step(const pki_summary *s)
{
    return s->steps.steady.count ? s->steps.steady.p50 : 0;
}

static bool pki_verdict_page_faults(pki_summary *s, pki_sentence *words)
{
    const pki_memory_summary *m = &s->memory;
    double step = usual_step(s);
    double ns = m->steady_minor * PKI_MINOR_FAULT_NS + m->steady_major * PKI_MAJOR_FAULT_NS;
    if (!(step > 0 && ns / step > PKI_PAGE_FAULT_SHARE))
        return true;
    pki_sentence_add(
        words,
        "%s page faults in a step, %s of them from a disk, cost some %s of it (at 0.5 us"
        " and 100 us; threshold 5 %%): memory is given back to the system and taken"
        " anew. Keep large blocks from step to step, or have the allocator keep them.",
        pki_figure_scaled(m->steady_minor + m->steady_major, "").text,
        pki_figure_scaled(m->steady_major, "").text, PERCENT(ns / step));
    return pki_verdict_add_sentence(words, s, "page-faults", PKI_WARN, ns / step,
                                    PKI_PAGE_FAULT_SHARE);
}

static bool pki_verdict_allocates(pki_summary *s, pki_sentence *words)
{
    const pki_memory_summary *m = &s->memory;
    const pki_memory_region *most = NULL;
    double step = usual_step(s), all = 0;
    for (size_t i = 0; i < m->region_count; i++) {
        all += m->regions[i].steady;
        if (m->regions[i].steady > (most ? most->steady : 0))
            most = &m->regions[i];
    }
    double share = step > 0 ? all * PKI_ALLOCATION_NS / step : 0;
    if (!most || !(share > PKI_ALLOCATES_SHARE))
        return true;
    pki_sentence_add(
        words,
        "%s allocations in a step, long after the first ones, cost some %s of it (at 50"
        " ns; threshold 2 %%); most, %s, %s%s%s. Allocate before the loop.",
        pki_figure_scaled(all, "").text, PERCENT(share), pki_figure_scaled(most->steady, "").text,
        most->name[0] ? "in \"" : "", shown(most), most->name[0] ? "\"" : "");
    return pki_verdict_add_sentence(words, s, "allocates", PKI_NOTE, share, PKI_ALLOCATES_SHARE);
}

/* ---- of a server: requests that miss their limits, or wait ---- */

/* What most of their time went to, in words, and what helps. */
typedef struct cause {
    uint64_t ns;
    const char *what, *advice;
} cause;

static cause largest_cause(const pki_request_parts *p)
{
    const cause all[] = {
        {p->queued, "the queue", "Let more into the batch at once, or have more servers."},
        {p->preempted, "being out of the batch again",
         "Let fewer in at once, or give the cache more memory."},
        {p->prefill, "reading their own prompts", "Keep what prompts have in common."},
        {p->crowded, "others' prompts before the first token",
         "Read prompts in smaller chunks, or on servers of their own."},
        {p->decode, "generating", "What a step of the batch takes decides."},
        {p->behind, "others' prompts between tokens",
         "Read prompts in smaller chunks, or on servers of their own."}};
    const cause *found = all;
    for (size_t i = 1; i < PKI_COUNT_OF(all); i++)
        found = all[i].ns > found->ns ? &all[i] : found;
    return *found;
}

static double requests_share_of(uint64_t part, uint64_t all)
{
    return all ? (double)part / (double)all : 0;
}

static void add_limits(pki_sentence *words, const pki_request_summary *r)
{
    if (r->ttft_limit)
        pki_sentence_add(words, " first token %s", TIME((double)r->ttft_limit));
    if (r->tpot_limit)
        pki_sentence_add(words, "%s %s a token", r->ttft_limit ? "," : "",
                         TIME((double)r->tpot_limit));
}

static bool pki_verdict_requests_late(pki_summary *s, pki_sentence *words)
{
    const pki_request_summary *r = &s->requests;
    double share = requests_share_of(r->slow.count, r->finished);
    if (r->slow_from || r->finished < PKI_REQUESTS_LEAST || !(share > PKI_LATE_SHARE))
        return true;
    cause most = largest_cause(&r->slow);
    pki_sentence_add(
        words, "%s of the finished requests missed the limits (threshold 5 %%):", PERCENT(share));
    add_limits(words, r);
    pki_sentence_add(words, ". Of their time %s went to %s. %s",
                     PERCENT(requests_share_of(most.ns, r->slow.total)), most.what, most.advice);
    return pki_verdict_add_sentence(words, s, "requests-late", PKI_WARN, share, PKI_LATE_SHARE);
}

/* Nobody has said what is late. */
static bool pki_verdict_requests_queued(pki_summary *s, pki_sentence *words)
{
    const pki_request_summary *r = &s->requests;
    double share = requests_share_of(r->all.queued, r->all.total);
    if (!r->slow_from || r->count < PKI_REQUESTS_LEAST || !(share > PKI_QUEUED_SHARE))
        return true;
    cause most = largest_cause(&r->slow);
    pki_sentence_add(words,
                     "Requests spend %s of their time in the queue (threshold 50 %%), %s each.",
                     PERCENT(share), TIME((double)r->all.queued / (double)r->all.count));
    pki_sentence_add(words, " Of the slowest, %s and more, %s went to %s. %s",
                     TIME((double)r->slow_from), PERCENT(requests_share_of(most.ns, r->slow.total)),
                     most.what, most.advice);
    return pki_verdict_add_sentence(words, s, "requests-queued", PKI_WARN, share, PKI_QUEUED_SHARE);
}
