/* lib/measure/verdict/overhead.c - perfkit itself takes much. */
#include "measure/overhead.h"
#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

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

bool pki_verdict_overhead(pki_summary *s, pki_sentence *words)
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
