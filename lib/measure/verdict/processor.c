/* lib/measure/verdict/processor.c - the loop lacks a processor, and what that explains. */
#include "measure/overhead.h"
#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

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
