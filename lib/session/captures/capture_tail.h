/* lib/session/captures/capture_tail.h - what stands behind a capture's events: "perfkitCapture"
 * (docs/internals/trace-format.md): what it is of, the steps around, and the machine and build. */
#pragma once

#include "session/captures/capture_file.h"

/* Closes the document; to be freed. NULL without memory. */
char *pki_capture_tail(const pki_capture_job *job, size_t *bytes);
