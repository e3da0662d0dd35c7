/* lib/measure/verdict/cpu_side.c - why the loop lacks processors, or has slow ones: too many
 * threads, a cgroup's bound, memory far away, a clock that is held down. */
#include "measure/overhead.h"
#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

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
