/* lib/job/window.h - what ranks have reported of their last steps, and who of them is late: the
 * verdict of a whole job (verdicts/verdicts.h) of a window that moves on.
 *
 * Of all that judges jobs this is what libpk_mpi has, for while the job runs: nothing of it prints
 * or ends anything, and without memory it judges no more.
 *
 * Each rank's last PKI_WINDOW_BLOCKS portions of steps are kept, 176 bytes each. Who is late since
 * some of them is named at once, who is all along or now and then in PKI_WINDOW_NAMED verdicts on
 * end, and who is not in PKI_WINDOW_CLEARED on end is so no more: a verdict that comes and goes is
 * none.
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

typedef struct pki_job_window pki_job_window;

/* hosts: of each rank, PKI_WINDOW_HOST bytes. NULL: without memory. */
pki_job_window *pki_job_window_create(int32_t ranks, const char *hosts);
void pki_job_window_destroy(pki_job_window *window);

/* One portion of each rank; of who has none (steps 0) nothing is kept. Steps that begin before the
 * rank's last ones are of another session: what there is of it goes. */
void pki_job_window_add(pki_job_window *window, const pk_job_steps_ *of_ranks);

/* False: without memory; `word` is as it was, and stays so from there on. While there are too few
 * steps `word` is as it was, too. */
bool pki_job_window_judge(pki_job_window *window, pk_job_word_ *word);
