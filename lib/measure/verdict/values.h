/* lib/measure/verdict/values.h - values of counters that no figure can hold. */
#ifndef PKI_MEASURE_VERDICT_VALUES_H
#define PKI_MEASURE_VERDICT_VALUES_H

#include "measure/verdict/words.h"

bool pki_verdict_not_finite(pki_summary *summary, pki_words *words);

#endif
