/* lib/measure/verdict/sentence.h - the sentences of a verdict, put together, and the list of
 * verdicts. Only verdict/ includes it. */
#pragma once

#include "base/compiler.h"
#include "measure/figure.h"
#include "measure/summary.h"

#define PERCENT(share) (pki_figure_percent(share).text)
#define TIME(ns) (pki_figure_time(ns).text)
#define COUNT(n) (pki_figure_count(n).text)

typedef enum pki_yielding {
    PKI_STANDS,
    PKI_YIELDS_SHARE, /* if its value, less the time without a processor, is below the threshold */
    PKI_YIELDS
} pki_yielding;

typedef struct pki_sentence {
    double starved;        /* pki_starved_share */
    pki_yielding yielding; /* what becomes of a warning then */
    char *text;            /* the caller's to free; NULL if there was no memory, or nothing yet */
    bool failed;
} pki_sentence;

PKI_PRINTF(2, 3) void pki_sentence_add(pki_sentence *words, const char *format, ...);

/* ": "load" 58.0 %, "decode" 3.2 %.": the regions of these kinds (a bit each) with the largest
 * shares of the step; just "." if none has one. */
void pki_sentence_add_regions(pki_sentence *words, const pki_summary *summary, unsigned kinds);

/* " The slowest, step 412 (93.1 ms): "load" +48.2 ms." */
void pki_sentence_add_slowest(pki_sentence *words, const pki_summary *summary);

/* Is something wrong, by the verdicts so far? */
bool pki_verdict_has_warning(const pki_summary *summary);

/* The verdict with these words. False without memory, also if there was none for the words. */
bool pki_verdict_add_sentence(pki_sentence *words, pki_summary *summary, const char *name,
                              pki_severity severity, double value, double threshold);
