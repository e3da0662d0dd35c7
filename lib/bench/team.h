/* lib/bench/team.h - threads that run the same thing at once, over and over, and start it
 * together. */
#pragma once

#include <stdbool.h>

typedef struct pki_bench_team pki_bench_team;

/* threads - 1 new ones, which wait; the caller is number 0. NULL and errno. */
pki_bench_team *pki_bench_team_create(unsigned threads, void (*job)(void *arg, unsigned thread),
                                      void *arg);
void pki_bench_team_destroy(pki_bench_team *team);

/* The job on all of them; returns when all are done. */
void pki_bench_team_run(pki_bench_team *team);

/* Inside the job, once per thread and run: returns when all have come here. */
void pki_bench_team_meet(pki_bench_team *team);
