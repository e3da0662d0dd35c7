/* lib/session/costs/io.h - the process's I/O, in rounds and at the ends of steps */
#pragma once

#include "session/session.h"

/* ---- what the process read and wrote in each step, as counters (costs=io) ---- */

/* The thread that ends a step reads /proc/self/io, takes off what perfkit itself has done (its
 * thread, and such readings), and records what is new since the reading before, as of the step's
 * end: "io.read", "io.written", "io.device_read", "io.device_written" in bytes, "io.operations",
 * and "io.steps", how many steps have ended since that reading. It records all of these or, without
 * room in the ring, none: then the next reading has what this one would have had. So nothing is
 * told twice, and what is told adds up to all that was done.
 *
 * A reading is no nearer to the one before than PKI_IO_STEP_LEAST, nor than PKI_IO_STEP_SHARE times
 * what one takes: three system calls, some microseconds. So each step that is longer has its own,
 * and of shorter ones a reading has several. Where a program tells when steps begin
 * (pk_step_begin), what was done between two of them is a reading of its own with 0 steps; if a
 * step was too short for one, that step's has it too. What it takes is in the account of perfkit's
 * own time.
 *
 * To the kernel what a child process did is its parent's from wait() on.
 *
 * How long the thread waited for devices is not read: the kernel has it in ticks of 10 ms, off by
 * default, in a file that takes half as long again as all the rest. */

/* For tests: ns between two readings. */
uint64_t pki_io_steps_least(void);

/* So much of the program's threads' time has gone into it, ns, about. */
uint64_t pki_io_steps_spent(void);

/* ---- the process's I/O, read of the kernel in the collector's rounds (costs=io) ---- */

/* What perfkit's own thread reads and writes is taken off. Under the drain lock, but for what says
 * otherwise. */

/* On perfkit's thread: when it begins, before it does anything in a round, and when all is done. */
void pki_io_on_collector(void);
void pki_io_works(void);
void pki_io_rests(void);

/* Of the session, as of the last look. False: they are not asked for, or unknown. */
bool pki_io_so_far(pki_io_counts *counts);

/* Once threads and steps are in it: the session so far. False without memory. */
bool pki_io_summarise(const pki_session *session, pki_summary *out);

/* For tests: the folder that stands for /proc/self. */
extern const char *pki_io_folder;
