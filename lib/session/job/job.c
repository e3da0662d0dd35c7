#include "session/job/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/files.h"
#include "out/file.h"
#include "out/report/report.h"
#include "session/collector/collect.h"
#include "session/collector/drain.h"
#include "session/report/run.h"
#include "session/control.h"
#include "session/session.h"

/* What waits, under the control lock. */
static struct {
    uint32_t ranks;     /* parts wait, for so many of them; 0: none does */
    bool there;         /* one does */
    bool of_open;       /* of a session that goes on: what is left of it comes with its end */
    bool saved;         /* it is in its file already */
    uint32_t to_stderr; /* see pk_job_part_ */
    char *text;         /* the part */
    size_t bytes;       /* of it */
    char *own;          /* the rank's own report for stderr, should the job's not come */
    size_t own_size;    /* of it */
    char path[PATH_MAX], file[PATH_MAX];
} waiting;

static bool is_stderr(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* ---- the file of a rank ---- */

bool pki_job_file_of(const char *job_path, int32_t rank, const pki_world *world, char *path)
{
    int n = rank >= 0 ? snprintf(path, PATH_MAX, "%s.ranks/%d/%d" PKI_RANK_SUFFIX, job_path,
                                 rank / 1000, rank)
                      : snprintf(path, PATH_MAX, "%s.ranks/0/%s-%d" PKI_RANK_SUFFIX, job_path,
                                 world->host, (int)world->pid);
    return n > 0 && n < PATH_MAX;
}

/* The two folders that it lies in. Others make them at the same time. */
static void make_folders(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *inner = strrchr(folder, '/');
    if (!inner)
        return;
    *inner = 0;
    char *outer = strrchr(folder, '/');
    if (outer) {
        *outer = 0;
        mkdir(folder, 0777);
        *outer = '/';
    }
    mkdir(folder, 0777);
}

static pk_status put(const char *path, const char *text, size_t bytes)
{
    return pki_file_put(path, text, bytes)
               ? PK_OK
               : pki_fail(pki_status_of_errno(errno), "job_path: %s: %s", path, strerror(errno));
}

static pk_status save_file(const char *path, const char *text, size_t bytes)
{
    make_folders(path);
    return put(path, text, bytes);
}

/* The folders go with the last of the files. */
static void remove_file(const char *path)
{
    char folder[PATH_MAX];
    unlink(path);
    snprintf(folder, sizeof folder, "%s", path);
    for (int i = 0; i < 2; i++) {
        char *end = strrchr(folder, '/');
        if (!end)
            return;
        *end = 0;
        if (rmdir(folder) != 0)
            return;
    }
}

/* ---- what waits ---- */

static void forget(void)
{
    free(waiting.text);
    free(waiting.own);
    waiting.text = waiting.own = NULL;
    waiting.there = waiting.of_open = waiting.saved = false;
}

static pk_status write_pending(void)
{
    pk_status status = PK_OK;
    if (waiting.there && !waiting.of_open) {
        if (waiting.path[0] && !waiting.saved)
            status = save_file(waiting.file, waiting.text, waiting.bytes);
        if (waiting.own && !pki_write_stderr(waiting.own, waiting.own_size) && !status)
            status = pki_fail(pki_status_of_errno(errno), "report on stderr: %s", strerror(errno));
    }
    forget();
    return status;
}

static bool is_wanted(const pki_session *s)
{
    return s->job_has_it || s->config.job[0] || (waiting.ranks > 1 && is_stderr(s->config.report));
}

/* False: without memory, or a path that is too long. */
static bool store_part(const pki_session *s, const pki_summary *summary)
{
    const pki_config *c = &s->config;
    const char *path = is_stderr(c->job) ? "" : c->job;
    forget();
    waiting.to_stderr = waiting.ranks > 1 && is_stderr(c->report) ? PK_JOB_STDERR_ : 0;
    if (is_stderr(c->job))
        waiting.to_stderr = PK_JOB_STDERR_ASKED_;
    snprintf(waiting.path, sizeof waiting.path, "%s", path);
    if (path[0] &&
        !pki_job_file_of(path, c->world.size ? c->world.rank : -1, &c->world, waiting.file))
        return false;
    waiting.text = pki_report_as(pki_report_rank, summary, &waiting.bytes);
    waiting.there = waiting.text != NULL;
    return waiting.there;
}

/* ---- a session that stops ---- */

static pk_status part_error(void)
{
    return pki_fail(PK_ENOMEM, "job_path: no memory for this rank's part, or its path is too long");
}

static pk_status hold(const pki_session *s, const pki_summary *summary)
{
    write_pending(); /* of a session before */
    if (!store_part(s, summary))
        return part_error();
    if (waiting.to_stderr)
        waiting.own = pki_report_as(pki_report_text, summary, &waiting.own_size);
    return PK_OK;
}

/* Nobody gathers it. */
static pk_status write_now(const pki_session *s, const pki_summary *summary)
{
    const pki_config *c = &s->config;
    if (is_stderr(c->job))
        return is_stderr(c->report) ? PK_OK : pki_report_file(summary, "-", false);
    pk_status status = store_part(s, summary) ? PK_OK : part_error();
    return status ? status : write_pending();
}

bool pki_job_wants_summary(const pki_session *s)
{
    return s->writing || s->config.report[0] || is_wanted(s);
}

pk_status pki_job_stop(pki_session *s, const pki_summary *summary)
{
    const pki_config *c = &s->config;
    bool apart = is_wanted(s) && (waiting.ranks || s->job_has_it);
    pk_status part = PK_OK, report = PK_OK;
    if (apart && !s->job_has_it)
        part = hold(s, summary);
    else if (!apart && c->job[0])
        part = write_now(s, summary);
    if (!(apart && !part && waiting.to_stderr && is_stderr(c->report)))
        report = pki_report_file(summary, c->report, c->report_json);
    return part ? part : report;
}

/* ---- a process that ends ---- */

static void write_at_exit(void)
{
    if (waiting.path[0] && !waiting.saved) {
        make_folders(waiting.file);
        if (!pki_file_put(waiting.file, waiting.text, waiting.bytes))
            pki_log(PK_LOG_ERROR, "job_path: %s could not be written", waiting.file);
    }
    if (waiting.own)
        pki_write_stderr(waiting.own, waiting.own_size);
}

void pki_job_exit(void)
{
    int saved = errno;
    if (pki_control_lock_within(PKI_EXIT_PATIENCE_NS)) {
        if (waiting.there)
            write_at_exit();
        waiting.there = waiting.of_open = false; /* the texts stay where they are */
        pki_control_unlock();
    }
    errno = saved;
}

/* ---- for libpk_mpi ---- */

void pk_job_hold_(uint32_t ranks)
{
    int saved = errno;
    if (!pki_control_lock()) {
        waiting.ranks = ranks;
        pki_control_unlock();
    }
    errno = saved;
}

/* The session goes on: what it has so far. */
static void store_open_session(pki_session *s)
{
    pki_summary summary;
    if (!is_wanted(s))
        return;
    write_pending();
    pthread_mutex_lock(&pki_drain_lock);
    pki_drain_round(s, true);
    if (pki_run_summarise_so_far(s, &summary)) {
        waiting.of_open = store_part(s, &summary);
        s->job_has_it = waiting.of_open;
        pki_summary_finish(&summary);
    }
    pthread_mutex_unlock(&pki_drain_lock);
}

uint32_t pk_job_take_(pk_job_part_ *part)
{
    int saved = errno;
    if (part->size < sizeof *part)
        return 0;
    if (pki_control_lock()) {
        errno = saved;
        return 0;
    }
    if (pki_the_session.open)
        store_open_session(&pki_the_session);
    if (waiting.there) {
        part->to_stderr = waiting.to_stderr;
        part->path = waiting.path;
        part->text = waiting.text;
        part->bytes = waiting.bytes;
    }
    uint32_t there = waiting.there;
    pki_control_unlock();
    errno = saved;
    return there;
}

void pk_job_leave_(uint32_t reduced)
{
    int saved = errno;
    if (!pki_control_lock()) {
        if (waiting.there && reduced && waiting.saved)
            remove_file(waiting.file);
        if (waiting.there && !reduced && waiting.of_open)
            pki_the_session.job_has_it = false;
        if (reduced)
            forget();
        else
            write_pending();
        pki_control_unlock();
    }
    errno = saved;
}

void pk_job_save_(void)
{
    int saved = errno;
    if (!pki_control_lock()) {
        if (waiting.there && waiting.path[0] && !waiting.saved)
            waiting.saved = save_file(waiting.file, waiting.text, waiting.bytes) == PK_OK;
        pki_control_unlock();
    }
    errno = saved;
}

pk_status pk_job_write_(const char *path, const char *text, uint64_t bytes)
{
    int saved = errno;
    pk_status status = PK_OK;
    if (path)
        status = put(path, text, bytes);
    else if (!pki_write_stderr(text, bytes))
        status =
            pki_fail(pki_status_of_errno(errno), "the job's report on stderr: %s", strerror(errno));
    errno = saved;
    return status;
}

static void after_fork(void)
{
    memset(&waiting, 0, sizeof waiting); /* the parent's; nothing is given back (process.c) */
}

const pki_service pki_service_job = {
    .name = "job",
    .after_fork = after_fork,
};
