#include "comm/mpi/job.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pk/job.h>

#include "comm/mpi/gather.h"
#include "comm/mpi/glue.h"
#include "comm/mpi/job_report.h"
#include "comm/mpi/clocks.h"
#include "comm/mpi/patience.h"
#include "comm/mpi/session.h"

#define PART_MOST (64L << 20) /* of a file of a rank; they are below 1 MiB */

static double patience;
static bool begun;

void pki_mpi_job_begin(void)
{
    int ranks = 0;
    if (begun || PMPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS)
        return;
    begun = true;
    patience = pki_mpi_patience();
    if (patience > 0)
        pk_job_hold_((uint32_t)ranks);
}

/* ---- the report ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool complain(const char *why)
{
    char line[400];
    snprintf(line, sizeof line, "there is no report of the job: %.300s", why);
    pk_log_(PK_LOG_ERROR, line);
    pk_say_(0, line);
    return false;
}

/* Ranks' parts, one after the other. */
typedef struct reading {
    pki_mpi_report *report;
    bool *taken; /* by rank; NULL: nobody asks */
    int ranks;
    size_t count;
} reading;

static void read_part(void *user, int32_t rank, const char *text, size_t bytes)
{
    reading *r = user;
    bool taken = pki_mpi_report_read(r->report, rank, text, bytes);
    r->count++;
    if (r->taken && rank >= 0 && rank < r->ranks)
        r->taken[rank] = taken;
}

/* path NULL: on stderr. */
static bool write_as(pki_mpi_report *report, const char *path)
{
    char why[300];
    size_t bytes = 0;
    bool json = path && ends_with(path, ".json");
    char *text = pki_mpi_report_text(report, json, &bytes, why);
    bool done = text && pk_job_write_(path, text, bytes) == PK_OK;
    free(text);
    return done || complain(text ? pk_error_message() : why);
}

static bool write_report(const pk_job_part_ *part, const reading *r)
{
    bool done = r->count > 1 || part->path[0]; /* one for stderr alone: it has its own report */
    if (done && part->path[0])
        done = write_as(r->report, part->path);
    if (done && part->to_stderr)
        done = write_as(r->report, NULL);
    return done;
}

/* ---- all ranks are there ---- */

/* Who is not in the report keeps its part. */
static bool reduce(const pk_job_part_ *part, int rank, int ranks)
{
    pki_mpi_gathered g = {.rank = rank, .ranks = ranks};
    reading r = {.ranks = ranks};
    if (rank == 0) {
        r.report = pki_mpi_report_begin(ranks);
        r.taken = calloc((size_t)ranks, sizeof *r.taken);
    }
    pki_mpi_gather(&g, part->text, part->bytes, patience, read_part, &r);
    if (rank == 0 && !write_report(part, &r) && r.taken)
        memset(r.taken, 0, (size_t)ranks * sizeof *r.taken);
    bool done = pki_mpi_gathered_answer(&g, r.taken, patience);
    pki_mpi_report_end(r.report);
    pki_mpi_gathered_finish(&g);
    return done;
}

/* ---- some are not ---- */

/* Others may have put something else there, a pipe that nobody writes to. */
static FILE *open_file(const char *path)
{
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    FILE *file = fstat(fd, &found) == 0 && S_ISREG(found.st_mode) ? fdopen(fd, "rb") : NULL;
    if (!file)
        close(fd);
    return file;
}

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = open_file(path);
    char *text = NULL;
    long size = -1;
    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size > 0 && size < PART_MOST && fseek(file, 0, SEEK_SET) == 0)
        text = malloc((size_t)size);
    if (text && fread(text, 1, (size_t)size, file) != (size_t)size) {
        free(text);
        text = NULL;
    }
    *bytes = text ? (size_t)size : 0;
    fclose(file);
    return text;
}

static void read_files(const char *path, reading *r)
{
    for (int rank = 0; rank < r->ranks; rank++) {
        char name[PATH_MAX];
        size_t bytes = 0;
        int n = snprintf(name, sizeof name, "%s.ranks/%d/%d.rank.json", path, rank / 1000, rank);
        char *text = n > 0 && n < (int)sizeof name ? read_file(name, &bytes) : NULL;
        if (text)
            read_part(r, rank, text, bytes);
        free(text);
    }
}

/* The ranks that wait have left their files (pk_job_save_); those that are missing are named in the
 * report. The files stay: whoever comes yet, and `pk job`, find them. */
static void report_of_files(const pk_job_part_ *part, int ranks)
{
    reading r = {.report = pki_mpi_report_begin(ranks), .ranks = ranks};
    if (part->path[0])
        read_files(part->path, &r);
    if (r.count)
        write_report(part, &r);
    pki_mpi_report_end(r.report);
}

static void miss(const pk_job_part_ *part, int rank, int ranks)
{
    char line[200];
    snprintf(line, sizeof line,
             "not all ranks have come to MPI_Finalize in time (PK_MPI_PATIENCE is %.0f s): their"
             " parts of the job's report are left in files",
             patience);
    pk_log_(PK_LOG_WARNING, line);
    pk_job_save_(); /* if it is the late one itself, it has not waited */
    if (rank == 0)
        report_of_files(part, ranks);
}

/* ---- who takes part ---- */

/* Launchers give all ranks the same environment, so who is asked by it expects the others, also
 * where its own session never began. */
static bool is_requested(bool there)
{
    const char *report = pki_mpi_text_of("PK_REPORT_PATH");
    return there || pki_mpi_text_of("PK_JOB_PATH") || (report && strcmp(report, "-") == 0);
}

static bool meet_and_reduce(const pk_job_part_ *part, bool there)
{
    int rank = 0, ranks = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    pki_mpi_met met = pki_mpi_meet(rank, ranks, there, patience);
    if (met == PKI_MPI_NOT_ALL && there && part->path[0])
        miss(part, rank, ranks);
    return met == PKI_MPI_ALL && reduce(part, rank, ranks);
}

void pki_mpi_job_end(void)
{
    pk_job_part_ part = {.size = sizeof part};
    bool reduced = false;
    if (!begun || patience <= 0)
        return;
    bool there = pk_job_take_(&part);
    if (is_requested(there)) {
        MPI_Errhandler programs;
        PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &programs);
        PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        reduced = meet_and_reduce(&part, there);
        PMPI_Comm_set_errhandler(MPI_COMM_WORLD, programs);
        PMPI_Errhandler_free(&programs);
    }
    pk_job_leave_(reduced);
    pk_job_hold_(0);
}

void pki_mpi_job_abort(void)
{
    pk_job_leave_(0);
    pk_job_hold_(0);
}
