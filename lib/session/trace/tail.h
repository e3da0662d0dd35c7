/* lib/session/trace/tail.h - what stands behind the events of a trace: the report, and members that
 * are not known when the head is written, such as the devices that a backend has met.
 *
 * Under the drain lock. A run that is killed has none of it.
 */
#pragma once

#include <stddef.h>

/* A member of the document, in the place of an earlier one with that key; both are copied. key is
 * plain ASCII, json a whole value. Without memory there is none. */
void pki_tail_set(const char *key, const char *json);

/* What closes the document, with this report; to be freed. NULL without memory. */
char *pki_tail_text(const char *report, size_t report_bytes, size_t *bytes);

/* The session's part. */
void pki_tail_reset(void);
