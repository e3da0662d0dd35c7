#include "measure/verdict/copies.h"

#include "measure/figure.h"

bool pki_verdict_two_perfkits(pki_summary *s, pki_words *words)
{
    uint64_t starts = s->counts.other_starts;
    if (starts == 0)
        return true;
    pki_words_add(words,
                  "Another copy of perfkit in this process wanted to start%s%s%s: what it would"
                  " have recorded is missing here. Link all of the process with one libpk.so.",
                  starts > 1 ? ", " : "", starts > 1 ? pki_figure_count(starts).text : "",
                  starts > 1 ? " times" : "");
    return pki_words_say(words, s, "two-perfkits", PKI_WARN, (double)starts, 0);
}
