#include "comm/mpi/job.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pk/job.h>

#include "comm/mpi/gather.h"
#include "comm/mpi/glue.h"
#include "comm/mpi/patience.h"
#include "comm/mpi/settings.h"

#define SAVE_AFTER_SECONDS 1.0
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
    bool done = count > 0;
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

static void miss(const pk_job_part_ *part, bool there, int rank, int ranks)
{
    char line[200];
    snprintf(line, sizeof line,
             "not all ranks have come to MPI_Finalize within %.0f s (PK_MPI_PATIENCE): their parts"
             " of the job's report are left in files",
             patience);
    pk_log_(PK_LOG_WARNING, line);
    if (there && rank == 0)
        report_of_files(part, ranks);
}

/* ---- agreeing ---- */

typedef enum agreed { NOT_ALL, NOBODY, ALL } agreed;

static double real_seconds(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* All that have an answer have the same one. A rank that comes when others have given up is told so
 * by when they came. What is said outlives a request that is given up. */
static agreed agree(bool there, int rank)
{
    static double mine[3], all[3]; /* rank 0 has a part; latest and earliest to come */
    MPI_Request request;
    double grace = patience < SAVE_AFTER_SECONDS ? patience : SAVE_AFTER_SECONDS;
    mine[0] = there && rank == 0;
    mine[1] = real_seconds();
    mine[2] = -mine[1];
    if (PMPI_Iallreduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request) != MPI_SUCCESS)
        return NOT_ALL;
    if (!pki_mpi_wait(&request, MPI_STATUS_IGNORE, grace)) {
        pk_job_save_();
        if (!pki_mpi_wait(&request, MPI_STATUS_IGNORE, patience - grace))
            return NOT_ALL;
    }
    if (all[1] + all[2] > patience - fmin(patience / 2, AGREE_SECONDS))
        return NOT_ALL;
    return all[0] > 0 ? ALL : NOBODY;
}

/* A rank that has nothing to do with perfkit does not wait for anybody. */
static bool takes_part(bool there)
{
    pk_counts counts = {.size = sizeof counts};
    return there || pk_get_counts(&counts) == PK_OK || pki_mpi_text_of("PK_JOB_PATH");
}

void pki_mpi_job_end(void)
{
    pk_job_part_ part = {.size = sizeof part};
    int rank = 0, ranks = 0;
    bool there = begun && patience > 0 && pk_job_take_(&part), reduced = false;
    if (!begun || patience <= 0 || !takes_part(there))
        return;
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* nobody else uses it any more */
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    agreed all = agree(there, rank);
    if (all == ALL)
        reduced = reduce(&part, rank, ranks);
    else if (all == NOT_ALL)
        miss(&part, there, rank, ranks);
    pk_job_leave_(reduced);
    pk_job_hold_(0);
}

void pki_mpi_job_abort(void)
{
    pk_job_leave_(0);
    pk_job_hold_(0);
}
