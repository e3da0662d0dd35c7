/* lib/session/costs/io.h - the process's I/O, read of the kernel in the collector's rounds
 * (costs=io).
 *
 * What perfkit's own thread reads and writes is taken off. Under the drain lock, but for what says
 * otherwise.
 */
#pragma once

#include "session/session.h"

/* On perfkit's thread: when it begins, before it does anything in a round, and when all is done. */
void pki_io_on_collector(void);
void pki_io_works(void);
void pki_io_rests(void);

/* All has been opened: from here on what is read and written is the program's. */
void pki_io_begin(void);

/* On any thread, without a lock: all that the process has done less what perfkit's thread and its
 * readings on the program's threads have. False: it cannot be read. */
bool pki_io_of_program(pki_io_counts *counts);

/* Of the session, as of the last look. False: they are not asked for, or unknown. */
bool pki_io_so_far(pki_io_counts *counts);

/* Once threads and steps are in it: the session so far. False without memory. */
bool pki_io_summarise(const pki_session *session, pki_summary *out);

/* For tests: the folder that stands for /proc/self. */
extern const char *pki_io_folder;
