/* lib/measure/fold/spans.h - records of pk_spans as calls of their regions. */
#pragma once

#include "measure/fold/fold.h"

#define PKI_NO_CALL UINT64_MAX

/* Of a PKI_RECORD_SPAN_*: how long a call of its region it is, ns, or PKI_NO_CALL. more is the
 * second slot of an end. */
uint64_t pki_fold_span(pki_fold *fold, const pki_record *record, const pki_record *more);
