/* lib/session/trace/output.h - from the output span in the arena to the file, and what stands at
 * its end */
#pragma once

#include <stddef.h>

#include "session/session.h"

/* ---- the output span in the arena, and the way from there to the file ---- */

/* What the file holds, what waits in the span and how far each ring has been taken change together
 * (lib/core/arena.h): events are put into the span at will, and count once they are committed. All
 * of it under the drain lock. */

#define PKI_OUTPUT_BYTES ((size_t)1 << 20)

/* A file of several (rotate.h) is closed when it has no more room than this; its last line needs
 * some, too. */
#define PKI_PART_LEAST ((size_t)64 << 10)
#define PKI_PART_END 128u

/* How much of the span may wait for one write: all of it, but no more than the file that is written
 * has room for. A file that could not be closed in time goes on without that bound. */
static inline size_t pki_output_span(const pki_session *s)
{
    uint64_t most = s->config.trace_rotate_bytes, used = s->file.length + PKI_PART_END;
    if (!most || used + PKI_PART_LEAST > most)
        return PKI_OUTPUT_BYTES;
    return (size_t)PKI_MIN(most - used, (uint64_t)PKI_OUTPUT_BYTES);
}

/* Of that, what is free; what waits may be more, after the file has grown. */
static inline size_t pki_output_free(const pki_session *s)
{
    return pki_output_span(s) - PKI_MIN(s->pending.buffered, pki_output_span(s));
}

/* Which of the two generations is in force, and which one is being prepared. */
uint32_t pki_output_in_force(const pki_session *s);
uint32_t pki_output_in_preparation(const pki_session *s);

/* Puts what has been prepared in force, and gives the rings' owners back what has been taken. */
void pki_output_commit(pki_session *s);

/* The same on a thread of the program: a turn (core/ring.h) that has been read, megabytes to be
 * zeroed, is left to the next commit. */
void pki_output_commit_little(pki_session *s);

/* What is in the span goes to the file; what fails is noted, and stays. Once in a round: a disk
 * that is full is asked again when the next round begins, not for each event. */
void pki_output_write(pki_session *s);

void pki_output_round(pki_session *s);

/* Is the trace where it was made? If not that is said, once. A file without a name will be
 * nobody's: what is in it counts as unwritten from here on, and no more is written to it. */
void pki_output_check(pki_session *s);

/* Is there room for PKI_EVENT_BYTES at s->buffer + s->pending.buffered? False without a trace, too,
 * and past its bound. May write and commit. */
bool pki_output_room(pki_session *s);

/* The same for so many events at once. False may mean that there is room for fewer. */
bool pki_output_room_for(pki_session *s, uint32_t events);

/* Writes, and commits, if there is a piece. */
void pki_output_write_piece(pki_session *s);

/* So many bytes, of so many events, have been put there. */
void pki_output_wrote(pki_session *s, size_t n, unsigned events);

/* A write has failed: said once, and kept for pk_flush and pk_stop. */
void pki_output_error(pki_session *s, int error);
const char *pki_output_error_text(const pki_session *s, pk_status status);

/* Events and bytes written, events that are in no file. */
void pki_output_counts(const pki_session *s, pk_counts *counts);

/* ---- what stands behind the events of a trace ---- */

/* The report, and members that are not known when the head is written, such as the devices that a
 * backend has met.
 *
 * Under the drain lock. A run that is killed has none of it. */

/* A member of the document, in the place of an earlier one with that key; both are copied. key is
 * plain ASCII, json a whole value. Without memory there is none. */
void pki_tail_set(const char *key, const char *json);

/* What closes the document, with this report; to be freed. NULL without memory. */
char *pki_tail_text(const char *report, size_t report_bytes, size_t *bytes);

/* The session's part. */
void pki_tail_reset(void);
