/* lib/session/costs/energy.h - energy of processors and memory, from the kernel's counters, and of
 * GPUs, from NVML's (costs=energy).
 *
 * powercap (sysfs): /sys/class/powercap/ZONE has name, energy_uj and max_energy_range_uj, where it
 * wraps. Only root may read energy_uj on most systems; what cannot be read is named, and nothing is
 * guessed. All under the drain lock, but for the fold's call at each step.
 */
#pragma once

#include "measure/costs/sums.h"
#include "session/session.h"

/* Of the session so far, as of the last readings; empty if it is not asked for. False without
 * memory. Under the fold lock. */
bool pki_energy_so_far(pki_energy_sums *out);

/* Of a backend: a GPU's counter, J, at that moment of CLOCK_MONOTONIC. */
void pki_energy_of_gpu(unsigned ordinal, double joules, uint64_t when);

/* The same: its clocks are held down by that from here on; NULL: by nothing. */
void pki_energy_of_clocks(unsigned ordinal, const char *why);

/* For tests: the folder that stands for /sys/class/powercap. */
extern const char *pki_energy_folder;
