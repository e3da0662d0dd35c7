#include "session/job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "out/file.h"
#include "out/report/report.h"
#include "session/collector/drain.h"
#include "session/report/run.h"
#include "session/control.h"
#include "session/session.h"

#define PART_MOST (64 << 20) /* of a file that a rank has left; they are below 1 MiB */

/* What waits, under the control lock. */
static struct {
    uint32_t ranks; /* parts wait, for so many of them; 0: none does */
    bool there;     /* one does */
    bool of_open;   /* of a session that goes on: what is left of it comes with its end */
    bool saved;     /* it is in its file already */
    char *text;     /* the part */
    size_t bytes;   /* of it */
    char *packed;   /* it, as it stands in the job's file; NULL: nobody has asked */
    char path[PATH_MAX], file[PATH_MAX];
} waiting;

/* The job's file, of rank 0. Under the control lock. */
static struct {
    pki_owned own;
    uint64_t end;
    pk_status status; /* of all that was done with it */
    char path[PATH_MAX], temporary[PATH_MAX];
} job_file = {.own = {.fd = -1}};

/* ---- the file of a rank ---- */

/* Where the part of a rank goes that nobody gathers; PATH_MAX bytes. False: it is longer. rank -1:
 * not known, and the process's number takes its place. */
static bool pki_job_file_of(const char *job_path, int32_t rank, const pki_world *world, char *path)
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

static pk_status no_file(const char *path, int error)
{
    return pki_fail(pki_status_of_errno(error), "job_path: %s: %s", path, strerror(error));
}

static pk_status save_file(const char *path, const char *text, size_t bytes)
{
    make_folders(path);
    return pki_file_put(path, text, bytes) ? PK_OK : no_file(path, errno);
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
    free(waiting.packed);
    waiting.text = waiting.packed = NULL;
    waiting.there = waiting.of_open = waiting.saved = false;
}

static pk_status write_pending(void)
{
    pk_status status = PK_OK;
    if (waiting.there && !waiting.of_open && !waiting.saved)
        status = save_file(waiting.file, waiting.text, waiting.bytes);
    forget();
    return status;
}

/* Without memory, or with a path that is too long, there is none. */
static pk_status store_part(const pki_session *s, const pki_summary *summary)
{
    const pki_config *c = &s->config;
    forget();
    snprintf(waiting.path, sizeof waiting.path, "%s", c->job);
    if (pki_job_file_of(c->job, c->world.size ? c->world.rank : -1, &c->world, waiting.file))
        waiting.text = pki_report_as(pki_report_rank, summary, &waiting.bytes);
    waiting.there = waiting.text != NULL;
    return waiting.there
               ? PK_OK
               : pki_fail(PK_ENOMEM,
                          "job_path: no memory for this rank's part, or its path is too long");
}

/* ---- a session that stops ---- */

/* Nobody gathers it, unless it waits. */
static pk_status stop_with_part(const pki_session *s, const pki_summary *summary)
{
    if (waiting.ranks)
        write_pending(); /* of a session before */
    pk_status status = store_part(s, summary);
    return status || waiting.ranks ? status : write_pending();
}

pk_status pki_job_stop(pki_session *s, const pki_summary *summary)
{
    return s->config.job[0] && !s->job_has_it ? stop_with_part(s, summary) : PK_OK;
}

/* ---- a process that ends ---- */

static void write_at_exit(void)
{
    if (waiting.saved)
        return;
    make_folders(waiting.file);
    if (!pki_file_put(waiting.file, waiting.text, waiting.bytes))
        pki_log(PK_LOG_ERROR, "job_path: %s could not be written", waiting.file);
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

/* ---- as it stands in the job's file ---- */

/* Behind a line of its own. */
static char *with_head(const char *text, size_t bytes, int32_t rank, size_t *all)
{
    char head[200];
    size_t n = (size_t)snprintf(head, sizeof head,
                                PKI_RANKS_BEGIN "%d,\"rank\":%d,\"ranks\":%u,\"bytes\":%zu}\n",
                                PKI_RANKS_SCHEMA, (int)rank, waiting.ranks, bytes);
    char *out = malloc(n + bytes);
    if (!out)
        return NULL;
    memcpy(out, head, n);
    memcpy(out + n, text, bytes);
    *all = n + bytes;
    return out;
}

/* Each rank's is a member of its own, so nobody has to unpack what others have sent. */
static char *compressed(const char *text, size_t bytes, size_t *all)
{
    pki_gz *gz = pki_gz_create();
    pki_gz_output made;
    char *out = NULL;
    if (gz && pki_gz_append(gz, text, bytes, "", 0, &made))
        out = malloc(made.body_bytes + made.end_bytes);
    if (out) {
        memcpy(out, made.body, made.body_bytes);
        memcpy(out + made.body_bytes, made.end, made.end_bytes);
        *all = made.body_bytes + made.end_bytes;
    }
    pki_gz_destroy(gz);
    return out;
}

static char *pack(const char *path, const char *text, size_t bytes, int32_t rank, size_t *all)
{
    char *plain = with_head(text, bytes, rank, all);
    if (!plain || !pki_ends_with(path, ".gz"))
        return plain;
    char *out = compressed(plain, *all, all);
    free(plain);
    return out;
}

/* ---- for libpk_mpi: the part ---- */

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
    if (!s->config.job[0])
        return;
    write_pending();
    pthread_mutex_lock(&pki_drain_lock);
    pki_drain_round(s, true);
    if (pki_run_summarise_so_far(s, &summary)) {
        waiting.of_open = store_part(s, &summary) == PK_OK;
        s->job_has_it = waiting.of_open;
        pki_summary_finish(&summary);
    }
    pthread_mutex_unlock(&pki_drain_lock);
}

static uint32_t take(pk_job_part_ *part)
{
    size_t bytes = 0;
    if (pki_the_session.open)
        store_open_session(&pki_the_session);
    if (!waiting.there)
        return 0;
    free(waiting.packed);
    waiting.packed = pack(waiting.path, waiting.text, waiting.bytes, part->rank, &bytes);
    part->path = waiting.path;
    part->text = waiting.packed;
    part->bytes = waiting.packed ? bytes : 0;
    return 1;
}

uint32_t pk_job_take_(pk_job_part_ *part)
{
    int saved = errno;
    uint32_t there = 0;
    if (part->size >= sizeof *part && !pki_control_lock()) {
        there = take(part);
        pki_control_unlock();
    }
    errno = saved;
    return there;
}

void pk_job_leave_(uint32_t gathered)
{
    int saved = errno;
    if (!pki_control_lock()) {
        if (waiting.there && gathered && waiting.saved)
            remove_file(waiting.file);
        if (waiting.there && !gathered && waiting.of_open)
            pki_the_session.job_has_it = false;
        if (gathered)
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
        if (waiting.there && !waiting.saved)
            waiting.saved = save_file(waiting.file, waiting.text, waiting.bytes) == PK_OK;
        pki_control_unlock();
    }
    errno = saved;
}

/* ---- for libpk_mpi: the job's file ---- */

static void drop_job_file(void)
{
    if (job_file.own.fd < 0)
        return;
    pki_own_close(&job_file.own);
    unlink(job_file.temporary);
}

static pk_status begin_job_file(const char *path)
{
    drop_job_file();
    job_file.end = 0;
    job_file.status = PK_OK;
    snprintf(job_file.path, sizeof job_file.path, "%s", path);
    int fd = pki_file_fresh(path, PKI_FILE_MODE, job_file.temporary, sizeof job_file.temporary);
    if (!pki_own_adopt(&job_file.own, fd))
        job_file.status = no_file(path, errno);
    return job_file.status;
}

static pk_status add_to_job_file(const char *text, size_t bytes)
{
    if (job_file.status)
        return job_file.status;
    if (!pki_file_write_at(&job_file.own, text, bytes, job_file.end)) {
        job_file.status = no_file(job_file.path, errno);
        drop_job_file();
    }
    job_file.end += bytes;
    return job_file.status;
}

static pk_status end_job_file(bool whole)
{
    if (job_file.status || !whole) {
        drop_job_file();
        return job_file.status;
    }
    pki_own_close(&job_file.own);
    if (!pki_file_publish(job_file.temporary, job_file.path))
        job_file.status = no_file(job_file.path, errno);
    return job_file.status;
}

pk_status pk_job_file_begin_(const char *path)
{
    int saved = errno;
    pk_status status = pki_control_lock();
    if (!status) {
        status = begin_job_file(path);
        pki_control_unlock();
    }
    errno = saved;
    return status;
}

pk_status pk_job_file_add_(const char *text, uint64_t bytes)
{
    int saved = errno;
    pk_status status = pki_control_lock();
    if (!status) {
        status = add_to_job_file(text, bytes);
        pki_control_unlock();
    }
    errno = saved;
    return status;
}

pk_status pk_job_file_end_(uint32_t whole)
{
    int saved = errno;
    pk_status status = pki_control_lock();
    if (!status) {
        status = end_job_file(whole);
        pki_control_unlock();
    }
    errno = saved;
    return status;
}

/* Others may have put something else there, a pipe that nobody writes to. */
static char *read_left(const char *path, size_t *bytes)
{
    struct stat found;
    int fd = pki_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    if (fd < 0)
        return NULL;
    char *text = NULL;
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_size < PART_MOST)
        text = malloc((size_t)found.st_size + 1);
    *bytes = 0;
    for (ssize_t n = 1; text && n > 0 && *bytes < (size_t)found.st_size; *bytes += (size_t)n) {
        n = read(fd, text + *bytes, (size_t)found.st_size - *bytes);
        n = n < 0 ? 0 : n;
    }
    close(fd);
    return text;
}

static bool add_left(int32_t rank)
{
    char path[PATH_MAX];
    size_t bytes = 0, all = 0;
    char *text = pki_job_file_of(job_file.path, rank, NULL, path) ? read_left(path, &bytes) : NULL;
    char *packed = bytes ? pack(job_file.path, text, bytes, rank, &all) : NULL;
    bool added = packed && add_to_job_file(packed, all) == PK_OK;
    free(text);
    free(packed);
    return added;
}

uint32_t pk_job_file_add_left_(int32_t rank)
{
    int saved = errno;
    uint32_t added = 0;
    if (rank >= 0 && !pki_control_lock()) {
        added = add_left(rank);
        pki_control_unlock();
    }
    errno = saved;
    return added;
}

static void after_fork(void)
{
    memset(&waiting, 0, sizeof waiting); /* the parent's; nothing is given back (process.c) */
    job_file.own.fd = -1;
}

const pki_service pki_service_job = {
    .name = "job",
    .after_fork = after_fork,
};
