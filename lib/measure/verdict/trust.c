/* lib/measure/verdict/trust.c - how far the figures can be trusted, and what perfkit took */
#include <math.h>

#include "base/compiler.h"
#include "measure/overhead.h"
#include "measure/verdict/rules.h"

/* ---- perfkit itself takes much ---- */

#define WAKE_UPS_NS 1000 /* of the collector, per record: it has little to do */
#define LOOP_NS 10000    /* a region that is shorter on average may be one in a tight loop */

static const pki_region_row *most_called(const pki_summary *s)
{
    const pki_region_row *found = NULL;
    for (size_t i = 0; i < s->region_count; i++)
        if (!found || found->time.count < s->regions[i].time.count)
            found = &s->regions[i];
    return found;
}

static void advise(const pki_summary *s, pki_sentence *words)
{
    const pki_overhead *o = &s->overhead;
    const pki_region_row *often = most_called(s);
    double records = (double)s->counts.begun + (double)s->counts.points;
    if (o->collector > WAKE_UPS_NS * records) { /* so much no record takes */
        pki_sentence_add(words, " Most of it is the collector's waking up, at least twice a second:"
                                " there is little to record.");
        return;
    }
    double rest = o->recording + o->collector + o->callers;
    if (o->captures > rest || o->readings > rest) {
        pki_sentence_add(words,
                         o->captures > o->readings
                             ? " Most of it is writing captures: captures_per_hour bounds it."
                             : " Most of it is reading what `costs` asks for.");
        return;
    }
    if (o->collector + o->callers > o->recording && s->run.trace_path && *s->run.trace_path)
        pki_sentence_add(words, " What is not recording is mostly formatting and writing the trace,"
                                " and compressing it if its name ends in .gz: fewer regions, no"
                                " compression, or statistics only (no trace_path) make it less.");
    if (often && often->time.mean < LOOP_NS)
        pki_sentence_add(
            words, " Most calls are to \"%s\" (%s, %s each): a region around the loop would do.",
            often->name, COUNT(often->time.count), TIME(often->time.mean));
}

/* A process that hardly runs has little CPU time for the collector's wake-ups to be compared with.
 */
static bool is_little(const pki_summary *s)
{
    return s->run.wall && s->overhead.total <= PKI_OVERHEAD_OF_WALL * (double)s->run.wall;
}

static bool pki_verdict_overhead(pki_summary *s, pki_sentence *words)
{
    const pki_overhead *o = &s->overhead;
    if (!(o->share > PKI_OVERHEAD_SHARE) || !(o->total >= PKI_OVERHEAD_LEAST_NS))
        return true;
    bool little = is_little(s);
    pki_sentence_add(words, "perfkit itself took %s of the %s (threshold 1 %%), %s in all: %s.",
                     PERCENT(o->share), s->run.cpu ? "process's CPU time" : "run", TIME(o->total),
                     pki_overhead_parts(o).text);
    if (little)
        pki_sentence_add(words, " That is %s of one processor: the program hardly runs.",
                         PERCENT(o->total / (double)s->run.wall));
    else
        advise(s, words);
    return pki_verdict_add_sentence(words, s, "overhead", little ? PKI_NOTE : PKI_WARN, o->share,
                                    PKI_OVERHEAD_SHARE);
}

/* ---- how far the figures can be trusted, and which are missing ---- */

static bool pki_verdict_incomplete(pki_summary *s, pki_sentence *words)
{
    if (s->run.complete)
        return true;
    pki_sentence_add(
        words,
        "The run did not end with pk_stop (killed, cut off, or still going on): the figures cover"
        " what had been recorded until then.");
    return pki_verdict_add_sentence(words, s, "incomplete", PKI_WARN, 0, 1);
}

static bool pki_verdict_dropped(pki_summary *s, pki_sentence *words)
{
    const pk_counts *c = &s->counts;
    uint64_t lost = c->dropped + c->points_dropped;
    if (lost == 0)
        return true;
    double begun = (double)c->begun + (double)c->points + (double)c->points_dropped;
    double share = begun > 0 ? (double)lost / begun : 0;
    pki_sentence_add(words, "%s records were dropped (%s of all)", COUNT(lost), PERCENT(share));
    if (c->too_deep)
        pki_sentence_add(words, ", %s of them regions below 64 open ones", COUNT(c->too_deep));
    if (lost > c->too_deep)
        pki_sentence_add(
            words,
            "%s because a ring was full or memory was short (PK_RING_RECORDS, PK_MEMORY_BYTES)",
            c->too_deep ? ", the others" : "");
    pki_sentence_add(words,
                     ". A full ring costs slices of the trace; it does not change statistics.");
    return pki_verdict_add_sentence(words, s, "records-dropped", PKI_WARN, share, 0);
}

static bool pki_verdict_late(pki_summary *s, pki_sentence *words)
{
    const pki_activity_summary *a = &s->activities;
    if (a->late == 0)
        return true;
    double share = (double)a->late / (double)a->count;
    pki_sentence_add(words,
                     "%s of %s activities of devices (%s) came when their step had been summed up:"
                     " totals and the trace have them, the GPU's figures per step do not, and are"
                     " too low.",
                     COUNT(a->late), COUNT(a->count), PERCENT(share));
    return pki_verdict_add_sentence(words, s, "device-records-late", PKI_WARN, share, 0);
}

static uint64_t told_by_nccl(const pki_comm_summary *comm)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < comm->comm_count; i++)
        if (strcmp(comm->comms[i].library, "NCCL") == 0)
            calls += comm->comms[i].calls;
    return calls;
}

static bool pki_verdict_operations_dropped(pki_summary *s, pki_sentence *words)
{
    uint64_t lost = s->comm.dropped_operations;
    if (lost == 0)
        return true;
    double share = (double)lost / ((double)lost + (double)told_by_nccl(&s->comm));
    pki_sentence_add(words,
                     "%s of NCCL's operations (%s) are missing: the profiler plugin's room for what"
                     " is under way was full. Their communicators' calls, bytes and times are too"
                     " low. Without PK_NCCL_KERNEL_CH there is more room; libpk_nccl counts"
                     " operations where they are called.",
                     COUNT(lost), PERCENT(share));
    return pki_verdict_add_sentence(words, s, "operations-dropped", PKI_WARN, share, 0);
}

static bool pki_verdict_unwritten(pki_summary *s, pki_sentence *words)
{
    uint64_t lost = s->counts.unwritten;
    if (lost == 0)
        return true;
    double all = (double)lost + (double)s->counts.written;
    pki_sentence_add(words,
                     "%s events (%s) are not in the trace file: the disk was full or failing, or"
                     " PK_TRACE_MAX_BYTES was reached. Statistics have them.",
                     COUNT(lost), PERCENT((double)lost / all));
    return pki_verdict_add_sentence(words, s, "trace-incomplete", PKI_WARN, (double)lost / all, 0);
}

static bool pki_verdict_clock_coarse(pki_summary *s, pki_sentence *words)
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
    pki_sentence_add(
        words,
        "The clock advances in steps of %s; %s region%s a median below ten of them (\"%s\": %s)."
        " Percentiles there are rough.",
        TIME(s->run.clock_step_ns), COUNT(count), count == 1 ? " has" : "s have", shortest->name,
        TIME(shortest->time.p50));
    return pki_verdict_add_sentence(words, s, "clock-coarse", PKI_NOTE,
                                    shortest->time.p50 / s->run.clock_step_ns, PKI_CLOCK_STEPS);
}

/* Corrections in small steps, as a time service makes them, are in every clock. */
static bool pki_verdict_calendar_set(pki_summary *s, pki_sentence *words)
{
    double by = (double)s->run.calendar_set, seconds = fabs(by) / 1e9;
    if (!(seconds >= PKI_CALENDAR_SECONDS))
        return true;
    pki_sentence_add(
        words,
        "The calendar's clock was set %s by %s during the run: dates go by it as it was"
        " at the start, no duration does.",
        by > 0 ? "ahead" : "back", TIME(fabs(by)));
    return pki_verdict_add_sentence(words, s, "calendar-set", PKI_NOTE, seconds,
                                    PKI_CALENDAR_SECONDS);
}

static bool pki_verdict_untracked(pki_summary *s, pki_sentence *words)
{
    double share = pki_verdict_share(s, KIND(PKI_UNTRACKED));
    if (!(share > PKI_UNTRACKED_SHARE) || s->whole_run.time)
        return true;
    pki_sentence_add(
        words,
        "%s of the step lies outside every region (threshold 20 %%): give the rest of the loop"
        " regions to see where that goes.",
        PERCENT(share));
    return pki_verdict_add_sentence(words, s, "untracked", PKI_NOTE, share, PKI_UNTRACKED_SHARE);
}

static bool pki_verdict_unbalanced(pki_summary *s, pki_sentence *words)
{
    uint64_t open = s->counts.unbalanced, stray = s->counts.stray_ends;
    if (open + stray == 0)
        return true;
    pki_sentence_add(
        words,
        "%s regions were closed by another's end, a thread's exit or pk_stop, and %s ends had no"
        " begin: look for early returns.",
        COUNT(open), COUNT(stray));
    return pki_verdict_add_sentence(words, s, "unbalanced", PKI_NOTE, (double)(open + stray), 0);
}

static bool pki_verdict_two_perfkits(pki_summary *s, pki_sentence *words)
{
    uint64_t starts = s->counts.other_starts;
    if (starts == 0)
        return true;
    pki_sentence_add(words,
                     "Another copy of perfkit in this process wanted to start%s%s%s: what it would"
                     " have recorded is missing here. Link all of the process with one libpk.so.",
                     starts > 1 ? ", " : "", starts > 1 ? COUNT(starts) : "",
                     starts > 1 ? " times" : "");
    return pki_verdict_add_sentence(words, s, "two-perfkits", PKI_WARN, (double)starts, 0);
}

static bool pki_verdict_not_finite(pki_summary *s, pki_sentence *words)
{
    uint64_t count = s->counts.not_finite;
    if (count == 0)
        return true;
    pki_sentence_add(
        words,
        "%s value%s given to counters %s not finite (infinite, or no number at all): %s in"
        " no figure and not in the trace. Look at what pk_counter_set is given.",
        COUNT(count), count == 1 ? "" : "s", count == 1 ? "was" : "were",
        count == 1 ? "it is" : "they are");
    return pki_verdict_add_sentence(words, s, "not-finite", PKI_WARN, (double)count, 0);
}

/* ---- the steps ---- */

static bool pki_verdict_warm_up(pki_summary *s, pki_sentence *words)
{
    const pki_step_summary *steps = &s->steps;
    if (steps->warmup == 0 || steps->steady.count == 0)
        return true;
    if (steps->warmup == 1)
        pki_sentence_add(words, "The first step took %s", TIME(steps->warm.sum));
    else
        pki_sentence_add(words, "The first %s steps took %s, %s each", COUNT(steps->warmup),
                         TIME(steps->warm.sum), TIME(steps->warm.mean));
    pki_sentence_add(words, " (later: %s); %s not in the figures of the steps%s.",
                     TIME(steps->steady.p50), steps->warmup == 1 ? "it is" : "they are",
                     steps->warmup_given ? ", as asked" : "");
    return pki_verdict_add_sentence(words, s, "warm-up", PKI_NOTE, (double)steps->warmup, 0);
}

static bool pki_verdict_few_steps(pki_summary *s, pki_sentence *words)
{
    const pki_step_summary *steps = &s->steps;
    if (steps->count == 0 || steps->steady.count >= PKI_FEW_STEPS)
        return true;
    pki_sentence_add(words,
                     "Only %s steps after the warm-up: percentiles and shares say little yet.",
                     COUNT(steps->steady.count));
    return pki_verdict_add_sentence(words, s, "few-steps", PKI_NOTE, (double)steps->steady.count,
                                    PKI_FEW_STEPS);
}

static bool pki_verdict_no_breakdown(pki_summary *s, pki_sentence *words)
{
    uint64_t steady = s->steps.steady.count, known = s->steps.broken_down;
    if (known >= steady)
        return true;
    pki_sentence_add(
        words,
        "%s of %s steps have no breakdown: they began and ended on different threads, or their"
        " records were dropped.",
        COUNT(steady - known), COUNT(steady));
    return pki_verdict_add_sentence(words, s, "no-breakdown", PKI_NOTE,
                                    (double)(steady - known) / (double)steady, 0);
}

static bool pki_verdict_no_steps(pki_summary *s, pki_sentence *words)
{
    if (s->steps.count > 0 || s->steps.step_kind_count > 0)
        return true;
    pki_sentence_add(
        words,
        "No steps: call pk_step(items) at the end of each turn of the main loop, and the report"
        " shows what a step's time goes to.");
    if (s->run.awaits_steps)
        pki_sentence_add(words, " The captures that are asked for are of steps, too: without them"
                                " none is made.");
    return pki_verdict_add_sentence(words, s, "no-steps", s->run.awaits_steps ? PKI_WARN : PKI_NOTE,
                                    0, 0);
}

const pki_rule_row pki_trust_rules[] = {
    {.say = pki_verdict_incomplete, .yielding = PKI_STANDS},
    {.say = pki_verdict_dropped, .yielding = PKI_STANDS},
    {.say = pki_verdict_late, .yielding = PKI_STANDS},
    {.say = pki_verdict_operations_dropped, .yielding = PKI_STANDS},
    {.say = pki_verdict_unwritten, .yielding = PKI_STANDS},
    {.say = pki_verdict_two_perfkits, .yielding = PKI_STANDS},
    {.say = pki_verdict_not_finite, .yielding = PKI_STANDS},
    {.say = pki_verdict_overhead, .yielding = PKI_STANDS},
    {.say = pki_verdict_clock_coarse, .yielding = PKI_STANDS},
    {.say = pki_verdict_calendar_set, .yielding = PKI_STANDS},
    {.say = pki_verdict_untracked, .yielding = PKI_STANDS},
    {.say = pki_verdict_unbalanced, .yielding = PKI_STANDS},
    {.say = pki_verdict_warm_up, .yielding = PKI_STANDS},
    {.say = pki_verdict_few_steps, .yielding = PKI_STANDS},
    {.say = pki_verdict_no_breakdown, .yielding = PKI_STANDS},
    {.say = pki_verdict_no_steps, .yielding = PKI_STANDS},
    {0},
};
