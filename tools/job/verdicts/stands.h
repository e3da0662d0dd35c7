/* tools/job/verdicts/stands.h - does a rank stand out from the others of its host, where these
 * share processors?
 *
 * Processors are not alike: what runs on the other thread of a core, or beside a virtual machine,
 * takes a part of one and not of the next. Where ranks have a processor each, that is what one
 * wants to hear of. Where they share them, whoever sits on the slower one is late with all others
 * there, and by no fault of his own. Where ranks tell in which steps they sat where, that is taken
 * off (processors.h); not all of them do, and not all is seen. So of the ranks of a crowded host
 * (crowd.h) that do the same work the latest has to be an outlier among them: with m, s mean and
 * deviation of the n others, beyond Student's t with n - 1 degrees of freedom,
 *
 *     (late - m) / (s sqrt(1 + 1 / n))
 *
 * (Grubbs: Procedures for detecting outlying observations in samples, Technometrics 11, 1969, as
 * the externally studentized residual); then the next one among the rest, until one is not. So a
 * rank that is alone in being late stands out, and half of them do not. Who takes twice as long or
 * more stands out in any case: a processor that is shared by two halves at most.
 */
#pragma once

#include "job/job.h"

#define JOB_STANDS_OUT 2.0         /* times as long as others: always */
#define JOB_STANDS_DETERMINED 0.02 /* the level, where the processors' part is off */

/* By place of a rank; determined: processors.h's; late: logarithms, by rank; level: of each
 * comparison. All true on hosts that are not crowded, or have fewer than three ranks to compare. To
 * be freed.
 */
bool *job_stand_out(const job *j, const uint32_t *roles, const bool *determined, const double *late,
                    double level);
