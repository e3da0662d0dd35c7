#include "job_score.h"

#include <stdlib.h>
#include <string.h>

#include "job/verdicts/findings.h"

static void score_verdict(const job *j, const job_late *late, const forge *f, const bool *culprit,
                          job_score *s, size_t *wrong)
{
    size_t right = 0;
    for (size_t r = 0; r < f->ranks; r++)
        if (late->host ? j->ranks[r].host == late->host_at : r == late->rank) {
            right += culprit[r];
            *wrong += !culprit[r];
            s->accused++;
        }
    s->rightly += right;
    s->found += right;
    s->stages += strcmp(j->stages[late->stage].name, forge_stages[f->stage]) == 0 ? right : 0;
}

static void score_job(const forge *f, job_score *s)
{
    pki_summary *ranks = calloc(f->ranks, sizeof *ranks);
    bool *culprit = calloc(f->ranks, sizeof *culprit);
    complaint why = {""};
    job j;
    size_t wrong = 0;
    forge_make(f, ranks, culprit);
    if (job_of(&j, ranks, f->ranks, &(job_steps){0}, &why)) {
        job_findings found = job_find(&j);
        for (size_t i = 0; i < found.lateness.count; i++)
            score_verdict(&j, &found.lateness.late[i], f, culprit, s, &wrong);
        s->communication += job_communication_share(&found) > JOB_COMMUNICATION_MOST;
        job_findings_finish(&found);
    }
    for (size_t r = 0; r < f->ranks; r++)
        s->culprits += culprit[r];
    s->with_false += wrong > 0;
    s->jobs++;
    job_finish(&j);
    free(culprit);
    free(ranks);
}

job_score score_jobs(const forge *f, size_t jobs)
{
    job_score s = {0};
    for (size_t i = 0; i < jobs; i++) {
        forge next = *f;
        next.seed += i;
        score_job(&next, &s);
    }
    return s;
}
