/* lib/measure/verdict/energy.c - a GPU's clocks were held down, and steps were slower for it. */
#include "measure/verdict/rules.h"

#define HELD_STEPS 10 /* at least so many of both sorts */
#define HELD_SLOWER 1.05

bool pki_verdict_gpu_throttled(pki_summary *s, pki_sentence *words)
{
    const pki_energy_summary *e = &s->energy;
    if (e->held_steps < HELD_STEPS || e->free_steps < HELD_STEPS)
        return true;
    double held = (double)e->held_time / (double)e->held_steps;
    double other = (double)e->free_time / (double)e->free_steps;
    if (!(held > HELD_SLOWER * other))
        return true;
    pki_sentence_add(
        words,
        "A GPU's clocks were held down by %s in %s of %s steps, which took %s on average,"
        " %s the others (threshold 1.05 x; %s).",
        e->held_by ? e->held_by : "something", pki_figure_count(e->held_steps).text,
        pki_figure_count(e->held_steps + e->free_steps).text, TIME(held),
        pki_figure_ratio(held / other).text, TIME(other));
    return pki_verdict_add_sentence(words, s, "gpu-throttled", PKI_WARN, held / other, HELD_SLOWER);
}
