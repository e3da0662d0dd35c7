/* lib/backend/cupti/names.h - names as PyTorch's tools know them.
 *
 * Threads: one at a time (the drain lock). Names live until pki_cupti_names_forget.
 */
#pragma once

#include "backend/cupti/records.h"

/* A kernel's name, demangled where the process has a demangler (every C++ program has one), else
 * its first identifier: CUPTI's string becomes one of ours that stays. Never NULL. */
const char *pki_cupti_kernel_name(const char *mangled);

/* cudaLaunchKernel of __cudaLaunchKernel_ptsz_v13000. At most size - 1 bytes of it. */
void pki_cupti_plain_name(const char *name, char *plain, size_t size);

/* The identifier that a mangled name begins with; false: it is not mangled in a way that is known.
 */
bool pki_cupti_identifier(const char *mangled, char *name, size_t size);

/* Of a copy, a memset, a graph, a wait, an overhead. */
void pki_cupti_name(const pki_cupti_record *record, char *name, size_t size);

void pki_cupti_names_forget(void);
void pki_cupti_names_after_fork(void);
