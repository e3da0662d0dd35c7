/* tests/unit/failing_memory.h - makes the n-th allocation of a program's own code fail, and
 * perhaps all that follow; of the calling thread alone.
 *
 * Link with failing_memory_args (meson.build), which put these in front of malloc, calloc, realloc,
 * strdup, strndup and vasprintf.
 */
#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* n more allocations succeed, then none; negative: all of them do. */
void memory_fails_after(long n);

/* n more succeed, the next one does not, all others do. */
void memory_fails_once(long n);

/* Has one failed since? */
bool memory_has_failed(void);

/* All succeed, and which of them tell something by failing is noted, until memory_fails_after(). n
 * is of no consequence: this takes the place of the other two. */
void memory_watch(long n);

/* The same, but goes on counting how often each way has been come by. */
void memory_watch_on(long n);

/* What n has to be for these, ascending: of each way to an allocation (ways.h) some. total: of all
 * there were. Valid until the next watch. */
const long *memory_watched(size_t *count, long *total);

#endif
