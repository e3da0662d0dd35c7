/* lib/backend/shim.h - finding libpkshim.so, which shim/pkshim.h is about. */
#pragma once

#define PKI_SHIM "libpkshim.so"

/* Where the option or the variable says, else where the loader looks, else where it was installed;
 * NULL if it cannot be opened. Not to be closed once something of it is used: others are inside. */
void *pki_shim_open(const char *given);
