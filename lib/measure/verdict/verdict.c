#include "measure/verdict/verdict.h"

#include "base/compiler.h"
#include "measure/figure.h"
#include "measure/verdict/copies.h"
#include "measure/verdict/gpu.h"
#include "measure/verdict/overhead.h"
#include "measure/verdict/processor.h"
#include "measure/verdict/values.h"
#include "measure/verdict/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PERCENT(share) (pki_figure_percent(share).text)
#define TIME(ns) (pki_figure_time(ns).text)
#define COUNT(n) (pki_figure_count(n).text)

#define KIND(kind) (1u << (kind))

/* Of these kinds together: added up as integers, so that thresholds are met exactly. */
static double share_of(const pki_summary *s, unsigned kinds)
{
    uint64_t all = 0, some = 0;
    for (unsigned k = 0; k < PKI_SHARES; k++) {
        all += s->steps.kinds[k];
        some += kinds & KIND(k) ? s->steps.kinds[k] : 0;
    }
    return all > 0 ? (double)some / (double)all : 0;
}

/* ---- what the loop's time goes to ---- */

static const pki_thread_row *busiest_loader(const pki_summary *s)
{
    const pki_thread_row *found = NULL;
    for (size_t i = 0; i < s->thread_count; i++)
        if (!found || found->kinds[PK_DATA] < s->threads[i].kinds[PK_DATA])
            found = &s->threads[i];
    double busy = found ? (double)found->kinds[PK_DATA] : 0;
    return busy > 0 && busy >= PKI_LOADER_BUSY * s->steps.steady.sum ? found : NULL;
}

/* The loader that the loop's PK_WAIT time is for; NULL if it waits for something else, or not at
 * all. */
static const pki_thread_row *awaited_loader(const pki_summary *s)
{
    return s->steps.kinds[PK_WAIT] ? busiest_loader(s) : NULL;
}

static unsigned input_kinds(const pki_summary *s)
{
    return KIND(PK_DATA) | (awaited_loader(s) ? KIND(PK_WAIT) : 0);
}

static bool input_bound(pki_summary *s, pki_words *words)
{
    double share = share_of(s, input_kinds(s));
    if (!(share > PKI_INPUT_SHARE) || pki_gpu_is_busy(s, true)) /* then it works ahead, unseen */
        return true;
    const pki_thread_row *loader = awaited_loader(s);
    pki_words_add(words, "Getting input takes %s of the step (threshold 30 %%)", PERCENT(share));
    pki_words_add_regions(words, s, input_kinds(s));
    if (loader)
        pki_words_add(words,
                      " The waits count as input because thread \"%s\" spent %s in data regions.",
                      loader->name, TIME((double)loader->kinds[PK_DATA]));
    pki_words_add(words, " Load ahead of the loop, on more threads, or make loading cheaper.");
    return pki_words_say(words, s, "input-bound", PKI_WARN, share, PKI_INPUT_SHARE);
}

static bool communication(pki_summary *s, pki_words *words)
{
    double share = share_of(s, KIND(PK_COMM));
    bool bound = share > PKI_COMM_BOUND_SHARE;
    if (!(share > PKI_COMM_SHARE))
        return true;
    pki_words_add(words, "Communication takes %s of the step (threshold %s %%)", PERCENT(share),
                  bound ? "50" : "30");
    pki_words_add_regions(words, s, KIND(PK_COMM));
    pki_words_add(words, " Overlap it with computation, send less, or do more work per exchange.");
    return pki_words_say(words, s, bound ? "communication-bound" : "communication-heavy", PKI_WARN,
                         share, bound ? PKI_COMM_BOUND_SHARE : PKI_COMM_SHARE);
}

static bool waiting(pki_summary *s, pki_words *words)
{
    double share = share_of(s, KIND(PK_WAIT));
    if (!(share > PKI_WAIT_SHARE) || awaited_loader(s) || pki_gpu_is_busy(s, false))
        return true; /* what a loop does while a device works is waiting */
    pki_words_add(words, "The loop waits for %s of the step (threshold 30 %%)", PERCENT(share));
    pki_words_add_regions(words, s, KIND(PK_WAIT));
    pki_words_add(words, " Look in the trace at what the awaited thread or device does meanwhile.");
    return pki_words_say(words, s, "waiting", PKI_WARN, share, PKI_WAIT_SHARE);
}

static bool io_bound(pki_summary *s, pki_words *words)
{
    double share = share_of(s, KIND(PK_IO));
    if (!(share > PKI_IO_SHARE))
        return true;
    pki_words_add(words, "Files take %s of the step (threshold 30 %%)", PERCENT(share));
    pki_words_add_regions(words, s, KIND(PK_IO));
    pki_words_add(words, " Write less often, or from another thread.");
    return pki_words_say(words, s, "io-bound", PKI_WARN, share, PKI_IO_SHARE);
}

static bool unsteady(pki_summary *s, pki_words *words)
{
    const pki_dist *steady = &s->steps.steady;
    double ratio = steady->p50 > 0 ? steady->p99 / steady->p50 : 0;
    if (steady->count < PKI_UNSTEADY_STEPS || !(ratio > PKI_UNSTEADY_RATIO))
        return true;
    pki_words_add(
        words,
        "One step in a hundred takes %s the median or more (threshold 1.5 x): p50 %s, p99 %s.",
        pki_figure_ratio(ratio).text, TIME(steady->p50), TIME(steady->p99));
    pki_words_add_slowest(words, s);
    return pki_words_say(words, s, "unsteady", PKI_WARN, ratio, PKI_UNSTEADY_RATIO);
}

static bool drifting(pki_summary *s, pki_words *words)
{
    double drift = s->steps.drift;
    if (s->steps.steady.count < PKI_DRIFT_STEPS || !(fabs(drift) > PKI_DRIFT))
        return true;
    pki_words_add(words,
                  "Steps became %s %s over the run (threshold 10 %%): a median of %s in its first"
                  " third, %s in its last.",
                  PERCENT(fabs(drift)), drift > 0 ? "slower" : "faster", TIME(s->steps.first_third),
                  TIME(s->steps.last_third));
    return pki_words_say(words, s, "drifting", drift > 0 ? PKI_WARN : PKI_NOTE, drift, PKI_DRIFT);
}

static bool loop_is_in_trouble(const pki_summary *s)
{
    return s->verdict_count > 0 && s->verdicts[0].severity == PKI_WARN;
}

static bool gpu_idle(pki_summary *s, pki_words *words)
{
    return pki_verdict_gpu_idle(s, words, loop_is_in_trouble(s));
}

static bool gpu_bound(pki_summary *s, pki_words *words)
{
    return loop_is_in_trouble(s) || pki_verdict_gpu_bound(s, words);
}

/* Comes right after the rules about the loop, so a warning so far is one about the loop. */
static bool nothing_found(pki_summary *s, pki_words *words)
{
    double compute = share_of(s, KIND(PK_COMPUTE)), other = share_of(s, KIND(PK_OTHER));
    if (s->steps.broken_down == 0 || loop_is_in_trouble(s) || pki_gpu_is_busy(s, false) ||
        share_of(s, KIND(PKI_UNTRACKED)) > PKI_UNTRACKED_SHARE)
        return true;
    bool bound = compute > PKI_COMPUTE_SHARE;
    pki_words_add(
        words,
        "%s%s of the step is computation; input takes %s, communication %s, waiting %s, files %s"
        " (thresholds 30 %%).",
        bound ? "" : "Nothing stands out: ", PERCENT(compute), PERCENT(share_of(s, input_kinds(s))),
        PERCENT(share_of(s, KIND(PK_COMM))),
        PERCENT(awaited_loader(s) ? 0 : share_of(s, KIND(PK_WAIT))),
        PERCENT(share_of(s, KIND(PK_IO))));
    if (other > PKI_COMPUTE_SHARE)
        pki_words_add(words, " But %s is in regions of no kind: declare them with PK_REGION_OF.",
                      PERCENT(other));
    pki_words_add_gpu(words, s);
    return pki_words_say(words, s, bound ? "compute-bound" : "no-bottleneck", PKI_GOOD, compute,
                         PKI_COMPUTE_SHARE);
}

/* ---- how far the figures can be trusted ---- */

static bool incomplete(pki_summary *s, pki_words *words)
{
    if (s->run.complete)
        return true;
    pki_words_add(
        words,
        "The run did not end with pk_stop (killed, cut off, or still going on): the figures cover"
        " what had been recorded until then.");
    return pki_words_say(words, s, "incomplete", PKI_WARN, 0, 1);
}

static bool dropped(pki_summary *s, pki_words *words)
{
    const pk_counts *c = &s->counts;
    uint64_t lost = c->dropped + c->points_dropped;
    if (lost == 0)
        return true;
    double begun = (double)c->begun + (double)c->points + (double)c->points_dropped;
    double share = begun > 0 ? (double)lost / begun : 0;
    pki_words_add(words, "%s records were dropped (%s of all)", COUNT(lost), PERCENT(share));
    if (c->too_deep)
        pki_words_add(words, ", %s of them regions below 64 open ones", COUNT(c->too_deep));
    if (lost > c->too_deep)
        pki_words_add(
            words,
            "%s because a ring was full or memory was short (PK_RING_RECORDS, PK_MEMORY_BYTES)",
            c->too_deep ? ", the others" : "");
    pki_words_add(words, ". A full ring costs slices of the trace; it does not change statistics.");
    return pki_words_say(words, s, "records-dropped", PKI_WARN, share, 0);
}

static bool unwritten(pki_summary *s, pki_words *words)
{
    uint64_t lost = s->counts.unwritten;
    if (lost == 0)
        return true;
    double all = (double)lost + (double)s->counts.written;
    pki_words_add(words,
                  "%s events (%s) are not in the trace file: the disk was full or failing, or"
                  " PK_TRACE_MAX_BYTES was reached. Statistics have them.",
                  COUNT(lost), PERCENT((double)lost / all));
    return pki_words_say(words, s, "trace-incomplete", PKI_WARN, (double)lost / all, 0);
}

static bool clock_coarse(pki_summary *s, pki_words *words)
{
    double bound = PKI_CLOCK_STEPS * s->run.clock_step_ns;
    const pki_region_row *shortest = NULL;
    size_t count = 0;
    for (size_t i = 0; i < s->region_count; i++) {
        const pki_region_row *row = &s->regions[i];
        if (row->time.count == 0 || !(row->time.p50 < bound))
            continue;
        count++;
        if (!shortest || row->time.p50 < shortest->time.p50)
            shortest = row;
    }
    if (!shortest)
        return true;
    pki_words_add(
        words,
        "The clock advances in steps of %s; %s region%s a median below ten of them (\"%s\": %s)."
        " Percentiles there are rough.",
        TIME(s->run.clock_step_ns), COUNT(count), count == 1 ? " has" : "s have", shortest->name,
        TIME(shortest->time.p50));
    return pki_words_say(words, s, "clock-coarse", PKI_NOTE,
                         shortest->time.p50 / s->run.clock_step_ns, PKI_CLOCK_STEPS);
}

static bool untracked(pki_summary *s, pki_words *words)
{
    double share = share_of(s, KIND(PKI_UNTRACKED));
    if (!(share > PKI_UNTRACKED_SHARE))
        return true;
    pki_words_add(
        words,
        "%s of the step lies outside every region (threshold 20 %%): give the rest of the loop"
        " regions to see where that goes.",
        PERCENT(share));
    return pki_words_say(words, s, "untracked", PKI_NOTE, share, PKI_UNTRACKED_SHARE);
}

static bool unbalanced(pki_summary *s, pki_words *words)
{
    uint64_t open = s->counts.unbalanced, stray = s->counts.stray_ends;
    if (open + stray == 0)
        return true;
    pki_words_add(
        words,
        "%s regions were closed by another's end, a thread's exit or pk_stop, and %s ends had no"
        " begin: look for early returns.",
        COUNT(open), COUNT(stray));
    return pki_words_say(words, s, "unbalanced", PKI_NOTE, (double)(open + stray), 0);
}

/* ---- about the steps themselves ---- */

static bool warm_up(pki_summary *s, pki_words *words)
{
    const pki_step_summary *steps = &s->steps;
    if (steps->warmup == 0 || steps->steady.count == 0)
        return true;
    if (steps->warmup == 1)
        pki_words_add(words, "The first step took %s", TIME(steps->warm.sum));
    else
        pki_words_add(words, "The first %s steps took %s, %s each", COUNT(steps->warmup),
                      TIME(steps->warm.sum), TIME(steps->warm.mean));
    pki_words_add(words, " (later: %s); %s not in the figures of the steps%s.",
                  TIME(steps->steady.p50), steps->warmup == 1 ? "it is" : "they are",
                  steps->warmup_given ? ", as asked" : "");
    return pki_words_say(words, s, "warm-up", PKI_NOTE, (double)steps->warmup, 0);
}

static bool few_steps(pki_summary *s, pki_words *words)
{
    const pki_step_summary *steps = &s->steps;
    if (steps->count == 0 || steps->steady.count >= PKI_FEW_STEPS)
        return true;
    pki_words_add(words, "Only %s steps after the warm-up: percentiles and shares say little yet.",
                  COUNT(steps->steady.count));
    return pki_words_say(words, s, "few-steps", PKI_NOTE, (double)steps->steady.count,
                         PKI_FEW_STEPS);
}

static bool no_breakdown(pki_summary *s, pki_words *words)
{
    uint64_t steady = s->steps.steady.count, known = s->steps.broken_down;
    if (known >= steady)
        return true;
    pki_words_add(
        words,
        "%s of %s steps have no breakdown: they began and ended on different threads, or their"
        " records were dropped.",
        COUNT(steady - known), COUNT(steady));
    return pki_words_say(words, s, "no-breakdown", PKI_NOTE,
                         (double)(steady - known) / (double)steady, 0);
}

static bool no_steps(pki_summary *s, pki_words *words)
{
    if (s->steps.count > 0)
        return true;
    pki_words_add(
        words,
        "No steps: call pk_step(items) at the end of each turn of the main loop, and the report"
        " shows what a step's time goes to.");
    return pki_words_say(words, s, "no-steps", PKI_NOTE, 0, 0);
}

typedef bool rule(pki_summary *summary, pki_words *words);

static const struct {
    rule *say;
    pki_yielding yielding;
} rules[] = {
    {pki_verdict_cpu_starved, PKI_STANDS},
    {input_bound, PKI_YIELDS_SHARE},
    {communication, PKI_YIELDS_SHARE},
    {waiting, PKI_YIELDS_SHARE},
    {io_bound, PKI_YIELDS_SHARE},
    {pki_verdict_comm_exposed, PKI_YIELDS_SHARE},
    {pki_verdict_launch_bound, PKI_YIELDS_SHARE},
    {pki_verdict_copy_bound, PKI_STANDS},
    {pki_verdict_sync_bound, PKI_YIELDS_SHARE},
    {gpu_idle, PKI_YIELDS_SHARE},
    {unsteady, PKI_YIELDS},
    {drifting, PKI_YIELDS},
    {gpu_bound, PKI_STANDS},
    {nothing_found, PKI_STANDS},
    {incomplete, PKI_STANDS},
    {dropped, PKI_STANDS},
    {unwritten, PKI_STANDS},
    {pki_verdict_two_perfkits, PKI_STANDS},
    {pki_verdict_not_finite, PKI_STANDS},
    {pki_verdict_overhead, PKI_STANDS},
    {clock_coarse, PKI_STANDS},
    {untracked, PKI_STANDS},
    {unbalanced, PKI_STANDS},
    {warm_up, PKI_STANDS},
    {few_steps, PKI_STANDS},
    {no_breakdown, PKI_STANDS},
    {no_steps, PKI_STANDS},
};

bool pki_verdicts_fill(pki_summary *summary)
{
    double starved = pki_starved_share(summary);
    pki_summary_clear_verdicts(summary);
    for (size_t i = 0; i < PKI_COUNT_OF(rules); i++) {
        pki_words words = {.starved = starved, .yielding = rules[i].yielding};
        bool fits = rules[i].say(summary, &words);
        free(words.text);
        if (!fits) {
            pki_summary_clear_verdicts(summary);
            return false;
        }
    }
    return true;
}
