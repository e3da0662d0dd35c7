#include "comm/mpi/job.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/job.h>

#include "comm/mpi/gather.h"
#include "comm/mpi/glue.h"
#include "comm/mpi/patience.h"
#include "comm/mpi/settings.h"

#define SAVE_AFTER_SECONDS 1.0
#define MOMENT_SECONDS 0.5    /* twice at most, so 1 s in all */
#define AGREE_SECONDS 5.0     /* from the last to come to all know of it, at most */
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

/* path NULL: on stderr. */
static bool write_as(const pki_job_piece *pieces, size_t count, int ranks, const char *path)
{
    char why[300];
    size_t bytes = 0;
    bool json = path && ends_with(path, ".json");
    char *text = pki_job_report(pieces, count, ranks, json, &bytes, why);
    bool done = text && pk_job_write_(path, text, bytes) == PK_OK;
    free(text);
    return done || complain(text ? pk_error_message() : why);
}

static bool write_report(const pk_job_part_ *part, const pki_job_piece *pieces, size_t count,
                         int ranks)
{
    bool done = count > 1 || part->path[0]; /* one for stderr alone: it has its own report */
    if (done && part->path[0])
        done = write_as(pieces, count, ranks, part->path);
    if (done && part->to_stderr)
        done = write_as(pieces, count, ranks, NULL);
    return done;
}

/* ---- all ranks are there ---- */

static bool reduce(const pk_job_part_ *part, int rank, int ranks)
{
    pki_mpi_gathered g = {.rank = rank, .ranks = ranks};
    bool done = false;
    pki_mpi_gather(&g, part->text, part->bytes, patience);
    if (rank == 0) {
        size_t count = 0;
        pki_job_piece *pieces = pki_mpi_gathered_pieces(&g, &count);
        done = pieces && write_report(part, pieces, count, ranks);
        free(pieces);
    }
    done = pki_mpi_gathered_tell(&g, done, patience);
    pki_mpi_gathered_finish(&g);
    return done;
}

/* ---- some are not ---- */

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rbe");
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

static size_t read_files(const char *path, int ranks, pki_job_piece *pieces)
{
    size_t count = 0;
    for (int rank = 0; rank < ranks; rank++) {
        char name[PATH_MAX];
        size_t bytes = 0;
        int n = snprintf(name, sizeof name, "%s.ranks/%d/%d.rank.json", path, rank / 1000, rank);
        char *text = n > 0 && n < (int)sizeof name ? read_file(name, &bytes) : NULL;
        if (text)
            pieces[count++] = (pki_job_piece){rank, text, bytes};
    }
    return count;
}

/* The ranks that wait have left their files (pk_job_save_); those that are missing are named in the
 * report. The files stay: whoever comes yet, and `pk job`, find them. */
static void report_of_files(const pk_job_part_ *part, int ranks)
{
    pki_job_piece *pieces = calloc((size_t)ranks, sizeof *pieces);
    size_t count = pieces && part->path[0] ? read_files(part->path, ranks, pieces) : 0;
    if (count)
        write_report(part, pieces, count, ranks);
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)pieces[i].text);
    free(pieces);
}

static void miss(const pk_job_part_ *part, int rank, int ranks)
{
    char line[200];
    snprintf(line, sizeof line,
             "not all ranks have come to MPI_Finalize in time (PK_MPI_PATIENCE is %.0f s): their"
             " parts of the job's report are left in files",
             patience);
    pk_log_(PK_LOG_WARNING, line);
    if (rank == 0)
        report_of_files(part, ranks);
}

/* ---- agreeing ---- */

typedef enum agreed { NOT_ALL, NOBODY, ALL } agreed;

static bool any_of(const int *mine, int *any, MPI_Request *request)
{
    return PMPI_Iallreduce(mine, any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, request) == MPI_SUCCESS;
}

static bool come(MPI_Request *request, double seconds)
{
    double grace = fmin(seconds, SAVE_AFTER_SECONDS);
    if (pki_mpi_wait(request, MPI_STATUS_IGNORE, grace))
        return true;
    pk_job_save_();
    return pki_mpi_wait(request, MPI_STATUS_IGNORE, seconds - grace);
}

/* First that all have come; then that none of them had given up before. Who gives up says so at
 * once, so the second answer is there soon after the first, and is the same for all. What is asked
 * and what is said outlive requests that are given up. */
static agreed agree(bool there, int rank, double seconds)
{
    static int gathers, any_gathers, gave_up, any_gave_up;
    MPI_Request all_came, all_stayed;
    gathers = there && rank == 0;
    if (!any_of(&gathers, &any_gathers, &all_came))
        return NOT_ALL;
    gave_up = !come(&all_came, seconds);
    if (!any_of(&gave_up, &any_gave_up, &all_stayed) || gave_up ||
        !pki_mpi_wait(&all_stayed, MPI_STATUS_IGNORE, fmin(seconds, AGREE_SECONDS)) || any_gave_up)
        return NOT_ALL;
    return any_gathers ? ALL : NOBODY;
}

/* Only who was asked for the job's report is patient. A rank without a session, or with a report
 * for stderr, answers, so that others need not wait for it, and waits itself for a moment alone. */
static double patience_of(const pk_job_part_ *part, bool there)
{
    bool asked = (there && (part->path[0] || part->to_stderr == PK_JOB_STDERR_ASKED_)) ||
                 pki_mpi_text_of("PK_JOB_PATH");
    return asked ? patience : fmin(patience, MOMENT_SECONDS);
}

void pki_mpi_job_end(void)
{
    pk_job_part_ part = {.size = sizeof part};
    int rank = 0, ranks = 0;
    bool reduced = false;
    if (!begun || patience <= 0)
        return;
    bool there = pk_job_take_(&part);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* nobody else uses it any more */
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    agreed all = ranks > 1 || there ? agree(there, rank, patience_of(&part, there)) : NOBODY;
    if (all == ALL)
        reduced = reduce(&part, rank, ranks);
    else if (all == NOT_ALL && there && part.path[0])
        miss(&part, rank, ranks);
    pk_job_leave_(reduced);
    pk_job_hold_(0);
}

void pki_mpi_job_abort(void)
{
    pk_job_leave_(0);
    pk_job_hold_(0);
}
