/* lib/measure/verdict/copies.h - perfkit is twice in the process, and only one was let start. */
#ifndef PKI_MEASURE_VERDICT_COPIES_H
#define PKI_MEASURE_VERDICT_COPIES_H

#include "measure/verdict/words.h"

bool pki_verdict_two_perfkits(pki_summary *summary, pki_words *words);

#endif
