/* bench/job.c - how good pk job's verdicts are, on forged jobs whose truth is known: recall and
 * precision at a slow-down of 5 %, false verdicts of healthy jobs, a slow link.
 *
 *     bench-job [JOBS]       so many jobs for each line (default 40; of healthy ones 25 times that)
 */
#include <stdio.h>
#include <stdlib.h>

#include "job_forge.h"

static double share(size_t part, size_t of)
{
    return of ? (double)part / (double)of : 1;
}

static void print_late(size_t ranks, size_t steps, bool varying, size_t culprits, size_t jobs)
{
    forge f = {.seed = 1,
               .ranks = ranks,
               .steps = steps,
               .varying = varying,
               .slow = 0.05,
               .culprits = culprits,
               .stage = FORGE_LOAD};
    job_score s = score_jobs(&f, jobs);
    printf("%6zu %6zu  %-7s %8zu %7zu  %6.3f %9.3f %6.3f\n", ranks, steps,
           varying ? "varying" : "equal", culprits, jobs, share(s.found, s.culprits),
           share(s.rightly, s.accused), share(s.stages, s.found));
}

static void print_healthy(size_t ranks, bool varying, size_t jobs)
{
    forge f = {.seed = 100000, .ranks = ranks, .steps = 50, .varying = varying};
    job_score s = score_jobs(&f, jobs);
    printf("%6zu     50  %-7s  healthy %7zu  false verdicts in %.2f %%\n", ranks,
           varying ? "varying" : "equal", jobs, 100 * share(s.with_false, s.jobs));
}

static void print_link(size_t ranks, size_t jobs)
{
    forge f = {.seed = 7, .ranks = ranks, .steps = 50, .link = 10};
    job_score s = score_jobs(&f, jobs);
    printf("%6zu     50  a slow link      %7zu  communication named in %.1f %%, ranks accused in"
           " %.1f %%\n",
           ranks, jobs, 100 * share(s.communication, s.jobs), 100 * share(s.with_false, s.jobs));
}

int main(int argc, char **argv)
{
    size_t jobs = argc > 1 ? strtoul(argv[1], NULL, 10) : 40;
    printf(" ranks  steps  work    culprits    jobs  recall precision  stage\n");
    for (size_t ranks = 64; ranks <= 1024; ranks *= 16)
        for (int varying = 0; varying < 2; varying++)
            for (size_t culprits = 1; culprits < 3; culprits++)
                print_late(ranks, 50, varying, culprits, jobs);
    for (int varying = 0; varying < 2; varying++) {
        print_healthy(64, varying, 25 * jobs);
        print_healthy(1024, varying, jobs);
    }
    print_link(64, jobs);
    return 0;
}
