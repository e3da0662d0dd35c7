/* lib/backend/cupti/emit.h - joined records as activities of the session, on their tracks */
#pragma once

#include <stdint.h>

#include "backend/cupti/join.h"
#include "backend/cupti/records.h"

/* ---- which line of the viewer an activity goes to ---- */

/* A stream has a track of its own on its device; what overlaps there (graphs' branches, kernels
 * that start before their predecessor has quite ended) goes to further ones, "stream 7 (2)". Calls
 * of a thread lie on a track beside the thread's. What belongs to neither has tracks of the
 * process. Activities have to come in the order in which they begin, track by track.
 *
 * Threads: one at a time (the drain lock). */

void pki_cupti_tracks_forget(void);
void pki_cupti_tracks_after_fork(void);

/* ---- what the end of the trace says of devices and records ---- */

/* Threads: one at a time (the drain lock). */

/* "deviceProperties", in the words of PyTorch's profiler. */
void pki_cupti_describe_devices(void);

/* "cupti": the library's version and the accounting of its records. */
void pki_cupti_describe_counts(const pki_cupti_counts *counts, uint64_t dropped, uint64_t refused);

/* ---- joined records as activities of the session ---- */

/* Threads: one at a time (the drain lock). */

/* A pki_cupti_give. */
void pki_cupti_emit(const pki_cupti_record *record, const pki_cupti_tie *tie);
