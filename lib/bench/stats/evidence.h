/* lib/bench/stats/evidence.h - what samples are evidence of, and decisions by it */
#pragma once

#include "bench/stats/samples.h"

/* ---- what replications say about a difference ---- */

/* Intervals, p-values, several decisions at once, and how many more replications it would take.
 *
 * A replication is one whole process run of a build (or a pair of them, or a stored run), never a
 * sample within one: those share the layout of one process run. Differences are logarithms of
 * ratios, so that twice as slow and twice as fast are equally far from 0.
 *
 * All of it is pure arithmetic on at most some hundred numbers. */

/* ---- distributions ---- */

/* P(T <= t) for Student's t, by the regularized incomplete beta function I_x(df/2, 1/2),
 * x = df / (df + t^2) (Abramowitz and Stegun 26.7.1, 26.5.27), whose continued fraction (DLMF
 * 8.17.22) is evaluated by Lentz's method. df > 0, need not be whole; infinity: the normal one. */
double pki_t_below(double t, double df);

/* The t that P(T <= t) = p belongs to, 0 < p < 1: the above inverted by Newton's method. */
double pki_t_quantile(double p, double df);

/* P(V <= v) of Wilcoxon's signed-rank statistic of n differences without ties: exact, by counting
 * the subsets of 1 .. n whose sum is s (each rank is in or not), up to n = 60; beyond that the
 * normal distribution with mean n(n+1)/4, variance n(n+1)(2n+1)/24 and a correction for continuity
 * (Hollander, Wolfe, Chicken: Nonparametric Statistical Methods, 3rd ed., 3.1). */
#define PKI_WILCOXON_EXACT 60
double pki_wilcoxon_below(size_t n, double v);

/* The largest v of which that is at most p, below 1; false if not even that of 0 is, or n is 0. */
bool pki_wilcoxon_critical(size_t n, double p, size_t *v);

/* ---- one difference: an estimate, its interval, how likely it is beyond a bound by chance ---- */

typedef enum pki_method {
    PKI_BY_WILCOXON, /* pseudo-median and signed ranks: pairs of process runs */
    PKI_BY_MOMENTS   /* stored runs, see pki_run_difference */
} pki_method;

/* Runs of two builds at different moments. Each number is one run's logarithm. */
typedef struct pki_run_difference {
    double mean;      /* the difference of the means */
    double error;     /* standard error of it from the spread between runs; with no such spread,
                         from within the two runs */
    double df;        /* degrees of freedom of that error; 0: from within, normal */
    double spread;    /* standard deviation between runs; NAN if it is unknown */
    double allowance; /* how far runs of one build may lie apart beyond what error says */
} pki_run_difference;

/* The differences of n replications, or what stands for them. */
typedef struct pki_evidence {
    pki_method method;
    size_t count;
    const double *values, *walsh; /* PKI_BY_WILCOXON: and their pki_walsh_averages */
    pki_run_difference runs;      /* PKI_BY_MOMENTS */
} pki_evidence;

/* The n (n + 1) / 2 means of two values (each with itself, too), ascending. Their median is Hodges'
 * and Lehmann's pseudo-median; the number of them above a bound is Wilcoxon's V against it, whence
 * the interval between order statistics (Tukey 1949; Hollander, Wolfe, Chicken 3.2 and 3.3). */
size_t pki_walsh_count(size_t n);
void pki_walsh_averages(const double *values, size_t n, double *walsh);

/* The interval of n values' pseudo-median, of level 1 - alpha, from their averages. Values whose
 * neighbours depend on each other (pki_samples_dependence; 1: they do not) count as
 * n / dependence. Without bounds where these are too few for the level. */
pki_interval pki_walsh_interval(const double *walsh, size_t n, double dependence, double alpha);

/* Between the two groups of runs: pooled variance over both groups if they have at least
 * `PKI_MOMENTS_DF` degrees of freedom together (Student's two-sample t). Else the allowance, beside
 * the errors of single runs, given as standard errors of logarithms. */
#define PKI_MOMENTS_DF 3
pki_run_difference pki_run_difference_of(const double *old_runs, size_t old_count,
                                         const double *new_runs, size_t new_count, double old_error,
                                         double new_error, double allowance);

double pki_evidence_estimate(const pki_evidence *e);

/* At the level 1 - alpha, two-sided. Infinite where there are too few replications for it. */
pki_interval pki_evidence_interval(const pki_evidence *e, double alpha);

/* How likely it would look so large (small) if the truth were `bound`: one-sided. The interval at
 * 1 - alpha excludes a bound from below exactly where p_above(bound) is at most alpha / 2. */
double pki_evidence_p_above(const pki_evidence *e, double bound);
double pki_evidence_p_below(const pki_evidence *e, double bound);

/* ---- several at once ---- */

/* Holm's step-down procedure (Scandinavian Journal of Statistics 6, 1979): sorted p-values against
 * alpha / m, alpha / (m - 1), ... until one fails. The probability of any false rejection is at
 * most alpha, whatever the dependence between them. levels[i]: the alpha at which i was tested;
 * what is not rejected shares the one at which the procedure stopped. False without memory. */
bool pki_holm(const double *p, size_t count, double alpha, bool *rejected, double *levels);

/* ---- how many it would take ---- */

/* The least n for which an effect that lies `distance` beyond a bound is found with probability
 * 0.9: (t(1 - alpha/2, n - 1) + z(0.9)) * spread / sqrt(n) <= distance (Chow, Shao, Wang: Sample
 * Size Calculations in Clinical Research, 3.1, solved for n). PKI_TOO_MANY if it is more. */
#define PKI_TOO_MANY 100000
size_t pki_replications_needed(double spread, double distance, double alpha);

/* The standard deviation of replications: for ranks, the one that makes the interval as wide as it
 * is. NAN where it is unknown. */
double pki_evidence_spread(const pki_evidence *e, double alpha);

/* ---- slower, faster, same, or cannot tell: for all benchmarks of a file at once ---- */

/* With the margin m, a benchmark is *slower* if its ratio is above 1 + m beyond chance, *faster* if
 * it is below 1 / (1 + m), *the same* if its whole interval lies between them, and otherwise it
 * *cannot be told*. A margin of 0 asks whether there is any difference at all; a build's code and
 * pages lie elsewhere than its twin's, which alone moves some kernels by 1 %
 * (docs/internals/bench.md).
 *
 * Holm's procedure over all benchmarks keeps the probability of even one
 * wrong "slower" or "faster" in the whole file at alpha. The interval that is shown is the one at
 * the level at which the benchmark was tested, so that the verdict can be read from it. */

typedef enum pki_change { PKI_UNSURE, PKI_SAME, PKI_FASTER, PKI_SLOWER } pki_change;

typedef struct pki_decision {
    pki_change change;
    double ratio;          /* new time over old time; NAN if there is nothing to compare */
    pki_interval interval; /* of the ratio; 0 and infinity where nothing bounds it */
    double p;              /* two-sided, against the margin, this benchmark alone */
    double level;          /* the alpha at which it was tested */
    size_t more;           /* PKI_UNSURE: how many replications more it would take to tell with
                              probability 0.9; PKI_TOO_MANY: that many or more; 0: unknown */
} pki_decision;

/* margin 0.01: 1 %. False without memory. */
bool pki_decide(const pki_evidence *evidence, size_t count, double margin, double alpha,
                pki_decision *decisions);

/* "cannot tell", "same", "faster", "slower" */
const char *pki_change_name(pki_change change);
