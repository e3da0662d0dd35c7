#include "machine/rates.h"

#include "base/compare.h"
#include "base/compiler.h"

#include <stdlib.h>

#define ROUND_SECONDS 0.005
#define TURNS_MOST ((uint64_t)1 << 40)

static uint64_t whole(double rate)
{
    return rate < 1 ? 1 : rate > 1e18 ? PKI_MACHINE_RATE_MOST : (uint64_t)rate;
}

void rates_summarise(double *rates, unsigned count, pki_limit *limit)
{
    qsort(rates, count, sizeof *rates, pki_compare_double);
    limit->best = whole(rates[count - 1]);
    limit->median = whole((rates[(count - 1) / 2] + rates[count / 2]) / 2);
    limit->worst = whole(rates[0]);
    limit->rounds = count;
}

/* By time on a processor, where that is known: a round that others have interrupted is no longer
 * for it. These rounds also bring the arrays in and the clock up. */
static void find_turns(team *t, const rates_work *w)
{
    *w->turns = 1;
    for (;;) {
        double wall = team_do(t, w->work, w->user), busy = (double)team_shortest(t) / 1e9;
        if ((busy > 0 ? busy : wall) >= ROUND_SECONDS || *w->turns >= TURNS_MOST)
            return;
        *w->turns *= 2;
    }
}

void rates_measure(team *t, const rates_work *w, unsigned rounds, pki_limit *limit)
{
    double rates[RATES_ROUNDS_MOST];
    find_turns(t, w);
    rounds = PKI_MIN(rounds, RATES_ROUNDS_MOST);
    for (unsigned i = 0; i < rounds; i++)
        rates[i] = w->worth * (double)*w->turns / team_do(t, w->work, w->user);
    rates_summarise(rates, rounds, limit);
}
