/* lib/measure/verdict/loop.c - what the loop's time goes to, and what it lacks */
#include <math.h>

#include "measure/overhead.h"
#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

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

bool pki_verdict_at_the_roof(pki_summary *s, pki_sentence *words)
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

double pki_starved_share(const pki_summary *s)
{
    const pki_processor *p = &s->steps.processor;
    if (p->observed < PKI_PROCESSOR_LEAST_NS)
        return 0;
    double share = (double)p->ready / (double)p->observed;
    return share > PKI_STARVED_SHARE ? share : 0;
}

bool pki_verdict_cpu_starved(pki_summary *s, pki_sentence *words)
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

bool pki_verdict_oversubscribed(pki_summary *s, pki_sentence *words)
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

bool pki_verdict_throttled(pki_summary *s, pki_sentence *words)
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

bool pki_verdict_memory_far(pki_summary *s, pki_sentence *words)
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

bool pki_verdict_clock_low(pki_summary *s, pki_sentence *words)
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

/* Added up as integers, so that thresholds are met exactly. */
double pki_verdict_share(const pki_summary *s, unsigned kinds)
{
    const uint64_t *times = s->whole_run.time ? s->whole_run.kinds : s->steps.kinds;
    uint64_t all = 0, some = 0;
    for (unsigned k = 0; k < PKI_SHARES; k++) {
        all += times[k];
        some += kinds & KIND(k) ? times[k] : 0;
    }
    return all > 0 ? (double)some / (double)all : 0;
}

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

bool pki_verdict_input_bound(pki_summary *s, pki_sentence *words)
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

bool pki_verdict_communication(pki_summary *s, pki_sentence *words)
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

bool pki_verdict_waiting(pki_summary *s, pki_sentence *words)
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

bool pki_verdict_io_bound(pki_summary *s, pki_sentence *words)
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

bool pki_verdict_unsteady(pki_summary *s, pki_sentence *words)
{
    const pki_dist *steady = &s->steps.steady;
    double ratio = steady->p50 > 0 ? steady->p99 / steady->p50 : 0;
    if (steady->count < PKI_UNSTEADY_STEPS || !(ratio > PKI_UNSTEADY_RATIO))
        return true;
    pki_sentence_add(
        words,
        "One step in a hundred takes %s the median or more (threshold 1.5 x): p50 %s, p99 %s.",
        pki_figure_ratio(ratio).text, TIME(steady->p50), TIME(steady->p99));
    pki_sentence_add_slowest(words, s);
    return pki_verdict_add_sentence(words, s, "unsteady", PKI_WARN, ratio, PKI_UNSTEADY_RATIO);
}

bool pki_verdict_drifting(pki_summary *s, pki_sentence *words)
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
bool pki_verdict_nothing_found(pki_summary *s, pki_sentence *words)
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
