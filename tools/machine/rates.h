/* tools/machine/rates.h - rounds of the same work, as a limit of the machine. */
#pragma once

#include "machine/team.h"
#include "measure/machine/machine.h"

#define RATES_ROUNDS_MOST 1000u

/* What a team does in a round: `turns` times something, which is worth so much (bytes, operations),
 * by all members together. */
typedef struct rates_work {
    team_work *work;
    void *user;
    uint64_t *turns; /* in `user` */
    double worth;
} rates_work;

/* Finds out how many turns a round needs, 5 ms of them, and does so many rounds. The rounds are
 * short, so that of a machine with other work some are undisturbed. */
void rates_measure(team *t, const rates_work *w, unsigned rounds, pki_limit *limit);

/* Best, median and worst of rates, which it puts in order. */
void rates_summarise(double *rates, unsigned count, pki_limit *limit);
