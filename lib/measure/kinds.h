/* lib/measure/kinds.h - the kinds of regions as indices of arrays, and the time outside every
 * region. */
#pragma once

#define PKI_KINDS 6             /* enum pk_kind */
#define PKI_UNTRACKED PKI_KINDS /* index of the time outside every region */
#define PKI_SHARES (PKI_KINDS + 1)

/* "other", "compute", "data", "comm", "io", "wait", "untracked" */
extern const char *const pki_kind_names[PKI_SHARES];
