/* lib/stats/select.h - the k-th smallest of many, without putting all of them in order. */
#pragma once

#include <stddef.h>

/* Puts the sample of that rank, from 0, in its place: none before it is larger, none behind it
 * smaller. In time that grows with n, which is at least 1; no NaN among them. */
void pki_select(double *samples, size_t n, size_t wanted);
