/* lib/measure/verdict/processor.h - the loop lacks a processor, and what that explains. */
#ifndef PKI_MEASURE_VERDICT_PROCESSOR_H
#define PKI_MEASURE_VERDICT_PROCESSOR_H

#include "measure/verdict/words.h"

/* The share of the time in which the stepping thread was ready to run and had no processor, if it
 * is worth a verdict; else 0. */
double pki_starved_share(const pki_summary *summary);

bool pki_verdict_cpu_starved(pki_summary *summary, pki_words *words);

#endif
