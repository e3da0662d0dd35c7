/* lib/measure/fold/spans.h - records of pk_spans into their regions' distributions. */
#pragma once

#include "measure/fold/fold.h"

/* A PKI_RECORD_SPAN_*; more is the second slot of an end. */
void pki_fold_span(pki_fold *fold, const pki_record *record, const pki_record *more);
