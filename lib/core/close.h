/* lib/core/close.h - how a region ends, off the fast path. */
#pragma once

#include "core/thread.h"

/* The innermost open region of that id; NULL: none. Within pki_enter and pki_leave. */
pki_frame *pki_find_frame(pki_thread *t, uint32_t id);

/* Closes the innermost region; there is one, and no guard above it. By the owner, as all below but
 * the last. */
void pki_close_top(pki_thread *t, uint64_t now, unsigned flags);

/* Closes the innermost region of that id, and what is open inside it as unbalanced. Without one it
 * is a stray end. */
void pki_close(pki_thread *t, uint32_t id, uint64_t now, unsigned flags);

/* If the innermost open call of that id is an untimed one (core/thin.h): where it is counted, else
 * NULL; and its end. */
pki_counted *pki_untimed_call(pki_thread *t, uint32_t id);
bool pki_close_untimed(pki_thread *t, uint32_t id, uint64_t now);

/* Closes every region above `until`, as unbalanced; by the owner. */
void pki_close_above(pki_thread *t, const pki_frame *until, uint64_t now);

/* The record, and its second slot, of the region that is open at this depth, as if it ended now.
 * Any thread. */
void pki_record_open(const pki_thread *t, unsigned depth, uint64_t now, pki_record record[2]);
