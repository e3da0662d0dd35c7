/* lib/comm/mpi/stragglers_window.h - what ranks have reported of their last steps, and who of them
 * is late: `pk job`'s verdict (tools/job/verdicts/verdicts.h) of a window that moves on.
 *
 * The code is that of the command (tools/job), in one object whose only names are these functions.
 * Each rank's last PKI_WINDOW_BLOCKS portions of steps are kept, 176 bytes each. Who is late in
 * PKI_WINDOW_NAMED verdicts on end is named, and who is not in PKI_WINDOW_CLEARED on end is so no
 * more: a verdict that comes and goes is none.
 *
 * Not for two threads at once.
 */
#pragma once

#include <stdbool.h>

#include <pk/private.h>

#define PKI_WINDOW_BLOCKS 32
#define PKI_WINDOW_NAMED 2
#define PKI_WINDOW_CLEARED 3
#define PKI_WINDOW_HOST 64

typedef struct pki_straggler_window pki_straggler_window;

/* hosts: of each rank, PKI_WINDOW_HOST bytes. NULL: without memory. */
pki_straggler_window *pki_mpi_window_create(int32_t ranks, const char *hosts);
void pki_mpi_window_destroy(pki_straggler_window *window);

/* One portion of each rank; of who has none (steps 0) nothing is kept. Steps that begin before the
 * rank's last ones are of another session: what there is of it goes. */
void pki_mpi_window_add(pki_straggler_window *window, const pk_job_steps_ *of_ranks);

/* False: without memory; `word` is as it was, and stays so from there on. While there are too few
 * steps `word` is as it was, too. */
bool pki_mpi_window_judge(pki_straggler_window *window, pk_job_word_ *word);
