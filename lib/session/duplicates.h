/* lib/session/duplicates.h - other copies of perfkit in this process.
 *
 * Two libraries that are both linked with libpk.a bring two perfkits that share nothing: two
 * collectors, two handlers where CUPTI and NCCL know one, two reports that each say half. So one
 * copy at a time has a session. Whoever comes second is refused, and counted by the first one.
 *
 * Copies find each other whatever their symbols' visibility: each carries an ELF note, the linker
 * gathers notes where the loader shows them, and dl_iterate_phdr goes through all objects.
 * Namespaces of dlmopen do not see each other; each has a C library of its own, too.
 */
#pragma once

#include <stdint.h>

#include <pk/status.h>

/* This copy has a session from now on. PK_EBUSY, and which one it is, if another one has. */
pk_status pki_duplicates_claim(void);

void pki_duplicates_release(void);

/* How often another copy wanted to start since the last claim. */
uint32_t pki_duplicates_refused(void);
