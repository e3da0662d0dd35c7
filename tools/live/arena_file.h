/* tools/live/arena_file.h - an arena's bytes, read from its file and checked. */
#pragma once

#include "complaint.h"
#include "core/arena.h"

/* All of them, or false. */
bool arena_file_read(int fd, uint64_t offset, void *to, size_t bytes);

/* Is it an arena, by its first bytes? */
bool arena_file_recognise(int fd);

/* The header of a file of so many bytes, into one that was all zero before the first time: magic,
 * version, layout and counts are as this program has them, its texts end, and of its lists there is
 * what is used. False, and why: `header` holds what could be read, within the same bounds. */
bool arena_file_header(int fd, uint64_t bytes, pki_arena_header *header, complaint *why);
