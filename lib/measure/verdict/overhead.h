/* lib/measure/verdict/overhead.h - perfkit itself takes much. */
#ifndef PKI_MEASURE_VERDICT_OVERHEAD_H
#define PKI_MEASURE_VERDICT_OVERHEAD_H

#include "measure/verdict/words.h"

bool pki_verdict_overhead(pki_summary *summary, pki_words *words);

#endif
