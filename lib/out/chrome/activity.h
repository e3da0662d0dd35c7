/* lib/out/chrome/activity.h - activities of devices and libraries as Chrome trace events, in the
 * words of PyTorch's profiler, which its tools (HTA) read. docs/internals/trace-format.md lists the
 * fields.
 *
 * Threads: any; nothing is kept. Failure: none; what does not fit into an event is left out.
 */
#pragma once

#include "core/activity.h"
#include "out/chrome/chrome.h"

/* An X event, and one end of an arrow if the activity is tied to another; preceded by ",\n".
 * region: name of the region that asked for it, n bytes, or NULL. */
size_t pki_chrome_activity(const pki_chrome *chrome, char out[PKI_EVENT_BYTES],
                           const pki_track *track, const pki_activity *activity, const char *region,
                           size_t n);

/* From this moment on devices are measured (kernels, copies), or no longer: an instant of the
 * process, of category "perfkit", preceded by ",\n". */
#define PKI_CHROME_MEASURES "CUPTI on"
#define PKI_CHROME_MEASURES_NOT "CUPTI off"
size_t pki_chrome_measures(char out[PKI_EVENT_BYTES], uint32_t pid, uint64_t ns, bool on);

/* The names and the order of a track, and of its process if it has a name; preceded by ",\n". */
size_t pki_chrome_track(char out[PKI_EVENT_BYTES], const pki_track *track);
