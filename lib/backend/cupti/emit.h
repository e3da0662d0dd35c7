/* lib/backend/cupti/emit.h - joined records as activities of the session.
 *
 * Threads: one at a time (the drain lock).
 */
#ifndef PKI_BACKEND_CUPTI_EMIT_H
#define PKI_BACKEND_CUPTI_EMIT_H

#include "backend/cupti/join.h"

/* A pki_cupti_give. */
void pki_cupti_emit(const pki_cupti_record *record, const pki_cupti_tie *tie);

#endif
