/* lib/measure/verdict/verdict.c - the rules about the program, its memory and its requests,
 * and the list of all; their words */
#include "measure/verdict/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "measure/overhead.h"
#include "measure/verdict/rules.h"

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

/* ": "load" 58.0 %, "decode" 3.2 %.": the regions of these kinds (a bit each) with the largest
 * shares of the step; just "." if none has one. */
static void pki_sentence_add_regions(pki_sentence *words, const pki_summary *summary,
                                     unsigned kinds)
{
    const pki_region_row *row = NULL;
    for (int i = 0; i < REGIONS_MOST && (row = next_largest(summary, kinds, row)); i++)
        pki_sentence_add(words, "%s\"%s\" %s", i ? ", " : ": ", row->name,
                         pki_figure_percent(share_of(summary, row)).text);
    pki_sentence_add(words, ".");
}

/* " The slowest, step 412 (93.1 ms): "load" +48.2 ms." */
static void pki_sentence_add_slowest(pki_sentence *words, const pki_summary *summary)
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

/* ---- a region that does nearly what the machine allows ---- */

/* There faster code helps less than less to do. */

/* The region with most self time among those near the roof, if it matters. */
static const pki_roofline_row *find(const pki_roofline *r)
{
    const pki_roofline_row *found = NULL;
    for (size_t i = 0; i < r->row_count; i++) {
        const pki_roofline_row *row = &r->rows[i];
        /* Of the roof for double precision more than all is single precision's, or a cache's. */
        double of = row->of_double <= PKI_ROOF_MOST ? row->of_double : row->of_single;
        if (row->share >= PKI_ROOF_REGION && of >= PKI_ROOF_SHARE && of <= PKI_ROOF_MOST &&
            (!found || row->share > found->share))
            found = row;
    }
    return found;
}

static bool pki_verdict_at_the_roof(pki_summary *s, pki_sentence *words)
{
    const pki_roofline_row *row = s->roofline.measured ? find(&s->roofline) : NULL;
    if (!row)
        return true;
    bool is_double = row->of_double <= PKI_ROOF_MOST;
    bool memory = is_double ? row->memory_bound_double : row->memory_bound_single;
    double of = is_double ? row->of_double : row->of_single;
    pki_sentence_add(
        words,
        "\"%s\", %s of all self time, reaches %s (threshold 70 %%) of what the machine's "
        "%s allows",
        row->region, PERCENT(row->share), PERCENT(of),
        memory      ? "memory"
        : is_double ? "arithmetic in double precision"
                    : "arithmetic in single precision");
    if (row->intensity > 0)
        pki_sentence_add(words, " at %s operations a byte",
                         pki_figure_scaled(row->intensity, "").text);
    pki_sentence_add(words, memory ? ": moving fewer bytes helps (blocking, fusing loops, smaller "
                                     "types), faster arithmetic does not."
                                   : ": fewer operations help, or a narrower type; faster memory "
                                     "does not.");
    return pki_verdict_add_sentence(words, s, "at-the-roof", PKI_NOTE, of, PKI_ROOF_SHARE);
}

/* ---- the loop lacks a processor, and what that explains ---- */

/* The share of the time in which the stepping thread was ready to run and had no processor, if it
 * is worth a verdict; else 0. */
static double pki_starved_share(const pki_summary *s)
{
    const pki_processor *p = &s->steps.processor;
    if (p->observed < PKI_PROCESSOR_LEAST_NS)
        return 0;
    double share = (double)p->ready / (double)p->observed;
    return share > PKI_STARVED_SHARE ? share : 0;
}

static bool pki_verdict_cpu_starved(pki_summary *s, pki_sentence *words)
{
    const pki_processor *p = &s->steps.processor;
    double share = pki_starved_share(s);
    if (!(share > 0))
        return true;
    pki_sentence_add(
        words,
        "The loop had a processor for %s of the time; for %s (threshold 10 %%) it was"
        " ready to run and others had it: other programs, other ranks, or threads of its"
        " own beyond the processors that it may use. All that follows, waits and"
        " communication above all, is longer for it: give each rank its processors first"
        " (binding, fewer threads, another machine).",
        PERCENT((double)p->running / (double)p->observed), PERCENT(share));
    return pki_verdict_add_sentence(words, s, "cpu-starved", PKI_WARN, share, PKI_STARVED_SHARE);
}

/* ---- why the loop lacks processors, or has slow ones ---- */

/* Too many threads, a cgroup's bound, memory far away, a clock that is held down. */

static double ready_share(const pki_summary *s)
{
    const pki_processor *p = &s->steps.processor;
    return p->observed >= PKI_PROCESSOR_LEAST_NS ? (double)p->ready / (double)p->observed : 0;
}

/* Those that are busy may all be bound to fewer than the process may use. */
static uint64_t for_threads(const pki_cpu_side *c)
{
    return c->allowed_busy ? c->allowed_busy : c->allowed;
}

static bool pki_verdict_oversubscribed(pki_summary *s, pki_sentence *words)
{
    const pki_cpu_side *c = &s->cpu_side;
    double share = ready_share(s), processors = (double)for_threads(c);
    if (!c->looks || !c->allowed || share <= PKI_CROWDED_SHARE ||
        c->busy < processors * PKI_CROWDED_RATIO + 0.5)
        return true;
    pki_sentence_add(words,
                     "The loop was not on a processor for %s of the step although it could have run"
                     " (threshold 3 %%): %s threads of this process want one at the same time.",
                     PERCENT(share), pki_figure_scaled(c->busy, "").text);
    if (c->allowed_busy && c->allowed_busy < c->allowed)
        pki_sentence_add(words, " They are bound to %s of the %s that it may use.",
                         COUNT(c->allowed_busy), COUNT(c->allowed));
    else
        pki_sentence_add(words, " It may use %s.", COUNT(c->allowed));
    if (s->steps.count && c->forced)
        pki_sentence_add(words, " It was taken off its processor %s times a step.",
                         pki_figure_scaled((double)c->forced / (double)s->steps.count, "").text);
    pki_sentence_add(words, c->allowed_busy == 1 && c->allowed > 1
                                ? " All of them share one processor: bind threads to processors of"
                                  " their own, or do not bind them (OMP_PROC_BIND, taskset)."
                                : " Fewer threads help (OMP_NUM_THREADS, loaders' workers), or more"
                                  " processors for this rank.");
    /* A warning where cpu-starved is one; else the loop has what it needs for most of the time. */
    return pki_verdict_add_sentence(words, s, "oversubscribed",
                                    pki_starved_share(s) > 0 ? PKI_WARN : PKI_NOTE, share,
                                    PKI_CROWDED_SHARE);
}

static bool pki_verdict_throttled(pki_summary *s, pki_sentence *words)
{
    const pki_cpu_side *c = &s->cpu_side;
    double share = c->quota_periods ? (double)c->quota_throttled / (double)c->quota_periods : 0;
    if (!c->looks || !(c->quota > 0) || share <= PKI_THROTTLED_SHARE)
        return true;
    pki_sentence_add(words,
                     "The cgroup's bound of %s processors stopped the process in %s of its periods"
                     " (threshold 5 %%), %s of its threads' time in all: all threads stand still"
                     " together, whatever they are doing. Run no more threads than the bound has"
                     " processors, or raise it (cpu.max).",
                     pki_figure_scaled(c->quota, "").text, PERCENT(share),
                     TIME((double)c->quota_throttled_time));
    return pki_verdict_add_sentence(words, s, "throttled", PKI_WARN, share, PKI_THROTTLED_SHARE);
}

static bool pki_verdict_memory_far(pki_summary *s, pki_sentence *words)
{
    const pki_cpu_side *c = &s->cpu_side;
    double all = (double)c->near_bytes + (double)c->far_bytes;
    double far_share = all > 0 ? (double)c->far_bytes / all : 0;
    if (!c->looks || c->nodes < 2 || all < PKI_FAR_LEAST_BYTES)
        return true;
    if (far_share > PKI_FAR_SHARE) {
        pki_sentence_add(
            words,
            "%s of this process's memory (threshold 20 %%) lies on nodes whose processors"
            " it may not use: each access goes across. Memory lies where it is touched"
            " first: bind the process before it allocates (numactl --cpunodebind"
            " --membind).",
            PERCENT(far_share));
        return pki_verdict_add_sentence(words, s, "memory-far", PKI_WARN, far_share, PKI_FAR_SHARE);
    }
    if (c->own_nodes < 2 || c->busy < 2 || c->largest_node <= PKI_ONE_NODE_SHARE)
        return true;
    pki_sentence_add(
        words,
        "%s of this process's memory (threshold 80 %%) lies on one node, and it may run"
        " on %s: threads on the others reach across, and one node's bandwidth serves all."
        " Let the threads that use the data touch it first, or bind each rank to a node.",
        PERCENT(c->largest_node), COUNT(c->own_nodes));
    return pki_verdict_add_sentence(words, s, "memory-far", PKI_NOTE, c->largest_node,
                                    PKI_ONE_NODE_SHARE);
}

static bool pki_verdict_clock_low(pki_summary *s, pki_sentence *words)
{
    const pki_cpu_side *c = &s->cpu_side;
    double share = c->clock_most > 0 ? c->clock_mean / c->clock_most : 1;
    if (!c->looks || (c->heat_events == 0 && (share >= PKI_CLOCK_LOW || c->busy < 1)))
        return true;
    if (c->clock_most > 0)
        pki_sentence_add(words,
                         "The processors' clock was %s in the mean, %s of the %s that they hold"
                         " (threshold 80 %%)",
                         pki_figure_scaled(c->clock_mean, "Hz").text, PERCENT(share),
                         pki_figure_scaled(c->clock_most, "Hz").text);
    if (c->heat_events)
        pki_sentence_add(words, "%s %s times for heat",
                         c->clock_most > 0 ? "; it was held down"
                                           : "The processors' clock was held down",
                         COUNT(c->heat_events));
    pki_sentence_add(words, ". Look at the governor (scaling_governor), at cooling, and at power"
                            " limits; wide vectors lower it, too.");
    return pki_verdict_add_sentence(words, s, "clock-low", c->heat_events ? PKI_WARN : PKI_NOTE,
                                    share, PKI_CLOCK_LOW);
}

/* ---- what the loop's time goes to ---- */

/* What it is a share of: "step", or "run" where there are no steps. */
static const char *pki_verdict_unit(const pki_summary *s)
{
    return s->whole_run.time ? "run" : "step";
}

static double time_of(const pki_summary *s)
{
    return s->whole_run.time ? (double)s->whole_run.time : s->steps.steady.sum;
}

static const pki_thread_row *busiest_loader(const pki_summary *s)
{
    const pki_thread_row *found = NULL;
    for (size_t i = 0; i < s->thread_count; i++)
        if (!found || found->kinds[PK_DATA] < s->threads[i].kinds[PK_DATA])
            found = &s->threads[i];
    double busy = found ? (double)found->kinds[PK_DATA] : 0;
    return busy > 0 && busy >= PKI_LOADER_BUSY * time_of(s) ? found : NULL;
}

/* The loader that the loop's PK_WAIT time is for; NULL if it waits for something else, or not at
 * all. */
static const pki_thread_row *awaited_loader(const pki_summary *s)
{
    return pki_verdict_share(s, KIND(PK_WAIT)) > 0 ? busiest_loader(s) : NULL;
}

static unsigned input_kinds(const pki_summary *s)
{
    return KIND(PK_DATA) | (awaited_loader(s) ? KIND(PK_WAIT) : 0);
}

static bool pki_verdict_input_bound(pki_summary *s, pki_sentence *words)
{
    double share = pki_verdict_share(s, input_kinds(s));
    if (!(share > PKI_INPUT_SHARE) || pki_gpu_is_busy(s, true)) /* then it works ahead, unseen */
        return true;
    const pki_thread_row *loader = awaited_loader(s);
    pki_sentence_add(words, "Getting input takes %s of the %s (threshold 30 %%)", PERCENT(share),
                     pki_verdict_unit(s));
    pki_sentence_add_regions(words, s, input_kinds(s));
    if (loader)
        pki_sentence_add(
            words, " The waits count as input because thread \"%s\" spent %s in data regions.",
            loader->name, TIME((double)loader->kinds[PK_DATA]));
    pki_sentence_add(words, " Load ahead of the loop, on more threads, or make loading cheaper.");
    return pki_verdict_add_sentence(words, s, "input-bound", PKI_WARN, share, PKI_INPUT_SHARE);
}

static bool pki_verdict_communication(pki_summary *s, pki_sentence *words)
{
    double share = pki_verdict_share(s, KIND(PK_COMM));
    bool bound = share > PKI_COMM_BOUND_SHARE;
    if (!(share > PKI_COMM_SHARE))
        return true;
    pki_sentence_add(words, "Communication takes %s of the %s (threshold %s %%)", PERCENT(share),
                     pki_verdict_unit(s), bound ? "50" : "30");
    pki_sentence_add_regions(words, s, KIND(PK_COMM));
    pki_sentence_add(words,
                     " Overlap it with computation, send less, or do more work per exchange.");
    return pki_verdict_add_sentence(words, s, bound ? "communication-bound" : "communication-heavy",
                                    PKI_WARN, share, bound ? PKI_COMM_BOUND_SHARE : PKI_COMM_SHARE);
}

static const char *whose_time(const pki_summary *s)
{
    if (!s->whole_run.time)
        return "The loop";
    return s->whole_run.busiest ? "The busiest thread" : "The main thread";
}

static bool pki_verdict_waiting(pki_summary *s, pki_sentence *words)
{
    double share = pki_verdict_share(s, KIND(PK_WAIT));
    if (!(share > PKI_WAIT_SHARE) || awaited_loader(s) || pki_gpu_is_busy(s, false))
        return true; /* what a loop does while a device works is waiting */
    pki_sentence_add(words, "%s waits for %s of the %s (threshold 30 %%)", whose_time(s),
                     PERCENT(share), pki_verdict_unit(s));
    pki_sentence_add_regions(words, s, KIND(PK_WAIT));
    pki_sentence_add(words,
                     " Look in the trace at what the awaited thread or device does meanwhile.");
    return pki_verdict_add_sentence(words, s, "waiting", PKI_WARN, share, PKI_WAIT_SHARE);
}

static double per_second(uint64_t bytes, uint64_t ns)
{
    return ns ? (double)bytes * 1e9 / (double)ns : 0;
}

/* What moved, beside what the device gave at its best in this run. */
static void add_device(pki_sentence *words, const pki_io_summary *io)
{
    if (!io->observed)
        return;
    pki_sentence_add(words, " The run read %s and wrote %s",
                     pki_figure_scaled(per_second(io->read_chars, io->observed), "B/s").text,
                     pki_figure_scaled(per_second(io->write_chars, io->observed), "B/s").text);
    pki_sentence_add(words, "; devices gave %s at best and took %s.",
                     pki_figure_scaled(io->best_read, "B/s").text,
                     pki_figure_scaled(io->best_write, "B/s").text);
}

static bool pki_verdict_io_bound(pki_summary *s, pki_sentence *words)
{
    double share = pki_verdict_share(s, KIND(PK_IO));
    if (!(share > PKI_IO_SHARE))
        return true;
    pki_sentence_add(words, "Files take %s of the %s (threshold 30 %%)", PERCENT(share),
                     pki_verdict_unit(s));
    pki_sentence_add_regions(words, s, KIND(PK_IO));
    add_device(words, &s->io);
    pki_sentence_add(words, " Write less often, or from another thread.");
    return pki_verdict_add_sentence(words, s, "io-bound", PKI_WARN, share, PKI_IO_SHARE);
}

/* What no line of the program did, of all that slow steps took longer. */
static double slow_outside(const pki_summary *s)
{
    double ns = 0;
    for (size_t i = 0; i < s->slow_steps.cause_count; i++) {
        const pki_slow_cause *c = &s->slow_steps.causes[i];
        bool own = strcmp(c->by, PKI_BY_OWN_THREADS) == 0;
        if ((strcmp(c->cause, PKI_NO_PROCESSOR) == 0 && !own) ||
            strcmp(c->cause, PKI_STOPPED) == 0 || strcmp(c->cause, PKI_SUSPENDED) == 0)
            ns += c->ns;
    }
    return s->slow_steps.longer > 0 ? ns / s->slow_steps.longer : 0;
}

static const char *slow_words(const char *cause)
{
    static const char *const words[][2] = {{PKI_NO_PROCESSOR, "had no processor"},
                                           {PKI_STOPPED, "were stopped"},
                                           {PKI_SUSPENDED, "were made by a machine that slept"},
                                           {PKI_WAITED, "waited longer"},
                                           {PKI_COMPUTE, "computed longer"}};
    for (size_t i = 0; i < PKI_COUNT_OF(words); i++)
        if (strcmp(words[i][0], cause) == 0)
            return words[i][1];
    return "computed or waited longer";
}

static void add_slow_causes(pki_sentence *words, const pki_slow_steps *q)
{
    for (size_t i = 0; i < q->cause_count; i++) {
        const pki_slow_cause *c = &q->causes[i];
        if (c->steps)
            pki_sentence_add(words, "%s%s %s (%s%s%s)", i ? ", " : "", COUNT(c->steps),
                             slow_words(c->cause), TIME(c->ns), c->by[0] ? ", because of " : "",
                             c->by);
    }
}

static bool pki_verdict_slow_steps(pki_summary *s, pki_sentence *words)
{
    const pki_slow_steps *q = &s->slow_steps;
    double outside = slow_outside(s), share = q->longer / (double)PKI_MAX(s->run.wall, 1u);
    bool warns = share > PKI_SLOW_SHARE && outside >= PKI_SLOW_OUTSIDE;
    pki_sentence causes = {.text = NULL};
    if (q->count < PKI_SLOW_STEPS)
        return true;
    add_slow_causes(&causes, q);
    pki_sentence_add(words, "Of %s slow steps, which took %s longer than like ones, %s.",
                     COUNT(q->count), TIME(q->longer), causes.text ? causes.text : "");
    words->failed |= causes.failed;
    free(causes.text);
    if (outside >= 0.999)
        pki_sentence_add(words, " That is outside the program, whose work was as usual.");
    else if (outside >= PKI_SLOW_OUTSIDE)
        pki_sentence_add(words, " %s of that time is outside the program, whose work was as usual.",
                         PERCENT(outside));
    return pki_verdict_add_sentence(words, s, "slow-steps", warns ? PKI_WARN : PKI_NOTE, outside,
                                    PKI_SLOW_OUTSIDE);
}

static bool pki_verdict_unsteady(pki_summary *s, pki_sentence *words)
{
    const pki_dist *steady = &s->steps.steady;
    double ratio = steady->p50 > 0 ? steady->p99 / steady->p50 : 0;
    if (steady->count < PKI_UNSTEADY_STEPS || !(ratio > PKI_UNSTEADY_RATIO))
        return true;
    pki_sentence_add(
        words,
        "One step in a hundred takes %s the median or more (threshold 1.5 x): p50 %s, p99 %s.",
        pki_figure_ratio(ratio).text, TIME(steady->p50), TIME(steady->p99));
    if (slow_outside(s) < PKI_SLOW_OUTSIDE) /* else no region of the program is to blame */
        pki_sentence_add_slowest(words, s);
    return pki_verdict_add_sentence(words, s, "unsteady", PKI_WARN, ratio, PKI_UNSTEADY_RATIO);
}

static bool pki_verdict_drifting(pki_summary *s, pki_sentence *words)
{
    double drift = s->steps.drift;
    if (s->steps.steady.count < PKI_DRIFT_STEPS || !(fabs(drift) > PKI_DRIFT))
        return true;
    pki_sentence_add(
        words,
        "Steps became %s %s over the run (threshold 10 %%): a median of %s in its first"
        " third, %s in its last.",
        PERCENT(fabs(drift)), drift > 0 ? "slower" : "faster", TIME(s->steps.first_third),
        TIME(s->steps.last_third));
    return pki_verdict_add_sentence(words, s, "drifting", drift > 0 ? PKI_WARN : PKI_NOTE, drift,
                                    PKI_DRIFT);
}

/* Without regions of the program's own, what is in none is its own work. */
static bool add_whole_run(pki_summary *s, pki_sentence *words)
{
    double untracked = pki_verdict_share(s, KIND(PKI_UNTRACKED));
    if (pki_verdict_has_warning(s))
        return true;
    pki_sentence_add(
        words,
        "Nothing stands out in the whole run: input takes %s, communication %s, waiting"
        " %s, files %s (thresholds 30 %%); %s is in no region.",
        PERCENT(pki_verdict_share(s, input_kinds(s))), PERCENT(pki_verdict_share(s, KIND(PK_COMM))),
        PERCENT(awaited_loader(s) ? 0 : pki_verdict_share(s, KIND(PK_WAIT))),
        PERCENT(pki_verdict_share(s, KIND(PK_IO))), PERCENT(untracked));
    return pki_verdict_add_sentence(words, s, "no-bottleneck", PKI_GOOD, untracked, 0);
}

/* Comes right after the rules about the loop, so a warning so far is one about the loop. */
static bool pki_verdict_nothing_found(pki_summary *s, pki_sentence *words)
{
    double compute = pki_verdict_share(s, KIND(PK_COMPUTE)),
           other = pki_verdict_share(s, KIND(PK_OTHER));
    if (s->whole_run.time)
        return add_whole_run(s, words);
    if (s->steps.broken_down == 0 || pki_verdict_has_warning(s) || pki_gpu_is_busy(s, false) ||
        pki_verdict_share(s, KIND(PKI_UNTRACKED)) > PKI_UNTRACKED_SHARE)
        return true;
    bool bound = compute > PKI_COMPUTE_SHARE;
    pki_sentence_add(
        words,
        "%s%s of the step is computation; input takes %s, communication %s, waiting %s, files %s"
        " (thresholds 30 %%).",
        bound ? "" : "Nothing stands out: ", PERCENT(compute),
        PERCENT(pki_verdict_share(s, input_kinds(s))), PERCENT(pki_verdict_share(s, KIND(PK_COMM))),
        PERCENT(awaited_loader(s) ? 0 : pki_verdict_share(s, KIND(PK_WAIT))),
        PERCENT(pki_verdict_share(s, KIND(PK_IO))));
    if (other > PKI_COMPUTE_SHARE)
        pki_sentence_add(words, " But %s is in regions of no kind: declare them with PK_REGION_OF.",
                         PERCENT(other));
    pki_sentence_add_gpu(words, s);
    return pki_verdict_add_sentence(words, s, bound ? "compute-bound" : "no-bottleneck", PKI_GOOD,
                                    compute, PKI_COMPUTE_SHARE);
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

/* ---- all rules, in their order ---- */

static const pki_rule_row rules[] = {
    {.say = pki_verdict_cpu_starved, .yielding = PKI_STANDS},
    {.say = pki_verdict_oversubscribed, .yielding = PKI_STANDS},
    {.say = pki_verdict_throttled, .yielding = PKI_STANDS},
    {.say = pki_verdict_memory_far, .yielding = PKI_STANDS},
    {.say = pki_verdict_clock_low, .yielding = PKI_STANDS},
    {.say = pki_verdict_requests_late, .yielding = PKI_YIELDS},
    {.say = pki_verdict_requests_queued, .yielding = PKI_YIELDS},
    {.say = pki_verdict_input_bound, .yielding = PKI_YIELDS_SHARE},
    {.say = pki_verdict_communication, .yielding = PKI_YIELDS_SHARE},
    {.say = pki_verdict_waiting, .yielding = PKI_YIELDS_SHARE},
    {.say = pki_verdict_io_bound, .yielding = PKI_YIELDS_SHARE},
    {.group = pki_gpu_step_rules},
    {.say = pki_verdict_slow_steps, .yielding = PKI_STANDS},
    {.say = pki_verdict_unsteady, .yielding = PKI_YIELDS},
    {.say = pki_verdict_drifting, .yielding = PKI_YIELDS},
    {.say = pki_verdict_leak, .yielding = PKI_STANDS},
    {.say = pki_verdict_near_limit, .yielding = PKI_STANDS},
    {.group = pki_gpu_memory_rules},
    {.say = pki_verdict_page_faults, .yielding = PKI_STANDS},
    {.say = pki_verdict_allocates, .yielding = PKI_STANDS},
    {.say = pki_verdict_gpu_bound, .yielding = PKI_STANDS},
    {.say = pki_verdict_at_the_roof, .yielding = PKI_STANDS},
    {.say = pki_verdict_nothing_found, .yielding = PKI_STANDS},
    {.group = pki_trust_rules},
    {0},
};

static bool say_all(pki_summary *summary, const pki_rule_row *rule, double starved)
{
    bool fits = true;
    for (; fits && (rule->say || rule->group); rule++) {
        pki_sentence words = {.starved = starved, .yielding = rule->yielding};
        fits = rule->group ? say_all(summary, rule->group, starved) : rule->say(summary, &words);
        free(words.text);
    }
    return fits;
}

bool pki_verdicts_fill(pki_summary *summary)
{
    double starved = pki_starved_share(summary);
    pki_summary_clear_verdicts(summary);
    if (say_all(summary, rules, starved))
        return true;
    pki_summary_clear_verdicts(summary);
    return false;
}
