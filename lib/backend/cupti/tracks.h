/* lib/backend/cupti/tracks.h - which line of the viewer an activity goes to.
 *
 * A stream has a track of its own on its device; what overlaps there (graphs' branches, kernels
 * that start before their predecessor has quite ended) goes to further ones, "stream 7 (2)". Calls
 * of a thread lie on a track beside the thread's. What belongs to neither has tracks of the
 * process. Activities have to come in the order in which they begin, track by track.
 *
 * Threads: one at a time (the drain lock).
 */
#pragma once

#include <stdint.h>

/* Ids of lib/session/activity.h's tracks; 0 without memory. */
uint32_t pki_cupti_stream_track(uint32_t device, uint32_t context, uint32_t stream, uint64_t start,
                                uint64_t end);
/* Of a device's process: what waits for it, and events that were recorded on it. */
uint32_t pki_cupti_device_wait_track(uint32_t device, uint64_t start, uint64_t end);
uint32_t pki_cupti_event_track(uint32_t device, uint64_t at);

uint32_t pki_cupti_thread_track(uint32_t tid);
uint32_t pki_cupti_overhead_track(uint64_t start, uint64_t end);
uint32_t pki_cupti_wait_track(uint64_t start, uint64_t end);

void pki_cupti_tracks_forget(void);
void pki_cupti_tracks_after_fork(void);
