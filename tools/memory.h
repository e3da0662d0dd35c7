/* tools/memory.h - memory of a command: there is some, or the command ends.
 *
 * Without memory no command has an answer. So nobody here passes on that there was none: one line
 * on stderr says so, the exit status is EXIT_UNUSABLE, and what was begun on the disk is removed
 * (output.h). What jansson may take is bounded apart (read/json.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Zeroed; good for free, also with a count of 0. */
void *memory_zeroed(size_t count, size_t bytes);
void *memory_resized(void *block, size_t bytes);
char *memory_copy(const char *text);

/* pki_array_fit: at least twice the room, the new one zeroed. */
void memory_fit(void *array_of, size_t *room, size_t wanted, size_t bytes);

/* Of a function of the library that answers false without memory. */
void memory_needed(bool there);
