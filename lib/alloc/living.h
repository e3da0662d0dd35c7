/* lib/alloc/living.h - what lives now, and the most that did. See interface.h for the figures. */
#pragma once

#include <stdint.h>

uint64_t pki_alloc_live(uint32_t region);
uint64_t pki_alloc_total(void);
uint64_t pki_alloc_peak(uint32_t region);
uint64_t pki_alloc_total_peak(void);
uint64_t pki_alloc_at_peak(uint32_t region);
void pki_alloc_peaks_anew(void);
void pki_alloc_unlock_peak(void);

/* Ids below have been counted on some thread. */
uint32_t pki_alloc_regions_seen(void);
