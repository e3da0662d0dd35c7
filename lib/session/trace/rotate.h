/* lib/session/trace/rotate.h - a trace in several files, each one whole by itself.
 *
 * The trace's path names the file that is written. Before it would be larger than
 * trace_rotate_bytes it is closed, between two events, gets a part's name (out/file.h), and
 * another file takes its place: head, threads and tracks by name, and, where devices are measured,
 * the mark that says so. An event stands in the file that was written when it ended.
 *
 * At no moment is the path without a file. The arena says which part is being written (pki_commit),
 * in the same commit as how much of it there is: `pk recover` goes by that.
 *
 * Threads: under the drain lock. Failure: the file that there is goes on, and another is tried with
 * the next write.
 */
#pragma once

#include "session/session.h"

/* With the trace: looks behind each write whether it is time. */
void pki_rotate_open(pki_session *session);
void pki_rotate_close(void);
