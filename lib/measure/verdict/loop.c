/* lib/measure/verdict/loop.c - what the loop's time goes to. */
#include <math.h>

#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

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

const char *pki_verdict_unit(const pki_summary *s)
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
