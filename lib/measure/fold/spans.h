/* lib/measure/fold/spans.h - records of pk_spans as calls of their regions. */
#pragma once

#include "measure/fold/fold.h"

/* A PKI_RECORD_REQUEST, with its second slot. */
void pki_fold_request(pki_fold *fold, const pki_record *record, const pki_record *more);

#define PKI_NO_CALL UINT64_MAX

/* Of a PKI_RECORD_SPAN_*: how long a call of its region it is, ns, or PKI_NO_CALL. more is the
 * second slot of an end. */
uint64_t pki_fold_span(pki_fold *fold, uint32_t tid, const pki_record *record,
                       const pki_record *more);
