/* lib/backend/cupti/emit.h - joined records as activities of the session.
 *
 * Threads: one at a time (the drain lock).
 */
#pragma once

#include "backend/cupti/join.h"

/* A pki_cupti_give. */
void pki_cupti_emit(const pki_cupti_record *record, const pki_cupti_tie *tie);
