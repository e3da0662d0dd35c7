#include "session/captures/capture_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/names.h"
#include "measure/shape.h"
#include "out/file.h"
#include "session/captures/capture_path.h"
#include "session/report/run.h"

/* The first capture of a step gets its name as it is, others of the same step another one. */
static bool name_file(const pki_session *s, const pki_budget *budget, pki_capture_job *job)
{
    char number[48];
    for (unsigned again = 1; again < 1000; again++) {
        int n = snprintf(number, sizeof number, "%llu", (unsigned long long)job->wish.first);
        if (again > 1)
            snprintf(number + n, sizeof number - (size_t)n, ".%u", again);
        if (!pki_capture_path_expand(s->paths.capture, number, job->path))
            return false;
        if (!pki_budget_has(budget, job->path))
            return true;
    }
    return false;
}

/* False: none of its steps is known. Never all that there is in their place. */
static bool find_range(pki_capture_job *job, const pki_waiting_capture *w)
{
    uint64_t kept = job->view.head->first;
    bool all = pki_capture_is_of_now(w->wish.reason);
    if (!w->begun && !all)
        return false;
    job->beginning_gone = !w->begun || w->number != w->wish.first || w->at < kept;
    job->range = (pki_history_range){.from = w->from,
                                     .until = w->wish.last == UINT64_MAX || !w->until ? UINT64_MAX
                                                                                      : w->until,
                                     .first = w->wish.first,
                                     .last = w->wish.last,
                                     .first_at = w->begun ? w->at : kept};
    memcpy(job->around, w->around, w->around_count * sizeof *w->around);
    job->around_count = w->around_count;
    return true;
}

/* Without memory the capture has those alone whose begins are in the history. */
static void note_open_spans(pki_capture_job *job)
{
    pki_fold_lock();
    const pki_fold *fold = pki_fold_now();
    size_t most = PKI_MIN(fold->spans.open.used, (size_t)PKI_CAPTURE_OPEN_SPANS);
    job->open = most ? malloc(most * sizeof *job->open) : NULL;
    job->range.open = job->open;
    job->range.open_count = job->open ? pki_fold_open_spans(fold, job->open, most) : 0;
    pki_fold_unlock();
}

/* What it counts is the capture's own, which its events show; what the run has taken so far is not
 * what its steps have. */
static void make_head(pki_session *s, pki_capture_job *job)
{
    pki_chrome_run run;
    pki_fold_lock();
    job->clock = s->arena->header->clock;
    pki_fold_unlock();
    pki_chrome_init(&job->chrome, &job->clock, s->config.world.pid, pki_chrome_name_of, NULL);
    pki_chrome_set_rank(&job->chrome, s->config.world.rank, s->config.world.size);
    pki_run_describe(s, true, &run);
    memset(&run.counts, 0, sizeof run.counts);
    memset(&run.toll, 0, sizeof run.toll);
    job->head_bytes = pki_chrome_head(&job->chrome, job->head, &run);
}

bool pki_capture_job_make(pki_session *s, const pki_waiting_capture *w, pki_budget *budget,
                          pki_capture_job *job)
{
    memset(job, 0, sizeof *job);
    job->wish = w->wish;
    job->most_bytes = pki_budget_allows(budget, pki_monotonic_ns(), w->wish.worth);
    job->compressed = s->config.capture_compressed;
    job->config = &s->config;
    if (!job->most_bytes || !pki_history_view_now(s->history, &job->view))
        return false;
    job->lost = job->view.head->lost;
    if (!find_range(job, w) || !name_file(s, budget, job))
        return false;
    note_open_spans(job);
    make_head(s, job);
    return true;
}

/* Read with the session's first capture, for all of them: a git repository has many files. Whoever
 * writes captures is one at a time. */
static struct {
    bool known;
    pki_environment is;
} cached_environment;

/* NULL without memory. */
static const pki_environment *environment_of(const pki_config *config)
{
    if (!cached_environment.known && !pki_environment_fill(config, &cached_environment.is)) {
        pki_capture_job_forget();
        return NULL;
    }
    cached_environment.known = true;
    return &cached_environment.is;
}

void pki_capture_job_forget(void)
{
    pki_shape_finish(&pki_environment_shape, &cached_environment.is);
    pki_capture_job_after_fork();
}

void pki_capture_job_after_fork(void)
{
    memset(&cached_environment, 0, sizeof cached_environment);
}

bool pki_capture_job_write(pki_capture_job *job, pki_budget *budget)
{
    uint64_t t = pki_monotonic_ns();
    job->environment = environment_of(job->config);
    bool written = pki_capture_file_write(job);
    int error = errno;
    if (written) {
        pki_budget_make_room(budget, t, job->wish.worth, job->bytes);
        written = pki_file_publish(job->part, job->path);
        error = errno;
    }
    if (written)
        pki_budget_enter(budget, t, job->wish.worth, job->bytes, job->path);
    pki_chrome_finish(&job->chrome);
    free(job->open);
    errno = error;
    return written;
}

void pki_capture_job_log(const pki_capture_job *job, int error)
{
    const pki_wish *w = &job->wish;
    if (error)
        pki_log(PK_LOG_ERROR, "capture %s: %s; the program goes on without it", job->path,
                pki_own_why(error));
    else if (w->reason == PKI_CAPTURE_SLOW)
        pki_log(PK_LOG_INFO, "capture %s: step %llu took %.2f x the median of its like", job->path,
                (unsigned long long)w->slow_step, w->worth);
    else
        pki_log(PK_LOG_INFO, "capture %s: %s", job->path, pki_capture_reason_name(w->reason));
}

void pki_capture_counts_log(const pki_capture_counts *c)
{
    if (c->written + c->refused + c->failed)
        pki_log(PK_LOG_INFO,
                "captures: %llu written, %llu of them removed for worse ones; %llu refused (the "
                "hour's budget, or too many at once), %llu failed",
                (unsigned long long)c->written, (unsigned long long)c->removed,
                (unsigned long long)c->refused, (unsigned long long)c->failed);
}
