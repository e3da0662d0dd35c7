#include "measure/verdict/values.h"

#include "measure/figure.h"

bool pki_verdict_not_finite(pki_summary *s, pki_words *words)
{
    uint64_t count = s->counts.not_finite;
    if (count == 0)
        return true;
    pki_words_add(
        words,
        "%s value%s given to counters %s not finite (infinite, or no number at all): %s in"
        " no figure and not in the trace. Look at what pk_counter_set is given.",
        pki_figure_count(count).text, count == 1 ? "" : "s", count == 1 ? "was" : "were",
        count == 1 ? "it is" : "they are");
    return pki_words_say(words, s, "not-finite", PKI_WARN, (double)count, 0);
}
