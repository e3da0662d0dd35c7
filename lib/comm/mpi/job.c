#include "comm/mpi/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/private.h>

#include "comm/mpi/gather.h"
#include "comm/mpi/glue.h"
#include "comm/mpi/clocks.h"
#include "comm/mpi/patience.h"
#include "comm/mpi/session.h"

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

/* ---- the file, by rank 0 ---- */

static bool complain(void)
{
    char line[400];
    snprintf(line, sizeof line, "there is no file of the job: %.300s", pk_error_message());
    pk_log_(PK_LOG_ERROR, line);
    pk_say_(0, line);
    return false;
}

/* Ranks' parts, one after the other. */
typedef struct writing {
    bool *added; /* by rank; NULL: without memory */
    int ranks;
} writing;

static void add_part(void *user, int32_t rank, const char *text, size_t bytes)
{
    writing *w = user;
    bool added = pk_job_file_add_(text, bytes) == PK_OK;
    if (w->added && rank >= 0 && rank < w->ranks)
        w->added[rank] = added;
}

/* ---- all ranks are there ---- */

/* Who is not in the file keeps its part. */
static bool gather(const pk_job_part_ *part, int rank, int ranks)
{
    pki_mpi_gathered g = {.rank = rank, .ranks = ranks};
    writing w = {.ranks = ranks};
    if (rank == 0) {
        w.added = calloc((size_t)ranks, sizeof *w.added);
        pk_job_file_begin_(part->path); /* what fails is answered at the end */
    }
    pki_mpi_gather(&g, part->text, part->bytes, patience, add_part, &w);
    if (rank == 0 && pk_job_file_end_(1) != PK_OK && !complain() && w.added)
        memset(w.added, 0, (size_t)ranks * sizeof *w.added);
    bool done = pki_mpi_gathered_answer(&g, w.added, patience);
    pki_mpi_gathered_finish(&g);
    return done;
}

/* ---- some are not ---- */

/* The ranks that wait have left their files (pk_job_save_). These stay: whoever comes yet, and
 * `pk job` of their folder, find them. */
static void write_left(const pk_job_part_ *part, int ranks)
{
    uint32_t added = 0;
    pk_job_file_begin_(part->path);
    for (int rank = 0; rank < ranks; rank++)
        added += pk_job_file_add_left_(rank);
    if (pk_job_file_end_(added > 0) != PK_OK)
        complain();
}

static void miss(const pk_job_part_ *part, int rank, int ranks)
{
    char line[200];
    snprintf(line, sizeof line,
             "not all ranks have come to MPI_Finalize in time (PK_MPI_PATIENCE is %.0f s): their"
             " parts of the job's file are left in files of their own",
             patience);
    pk_log_(PK_LOG_WARNING, line);
    pk_job_save_(); /* if it is the late one itself, it has not waited */
    if (rank == 0)
        write_left(part, ranks);
}

/* ---- who takes part ---- */

/* Launchers give all ranks the same environment, so who is asked by it expects the others, also
 * where its own session never began. */
static bool is_requested(bool there)
{
    return there || pki_mpi_text_of("PK_JOB_PATH");
}

static bool meet_and_gather(pk_job_part_ *part)
{
    int ranks = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &part->rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bool there = pk_job_take_(part);
    if (!is_requested(there))
        return false;
    pki_mpi_met met = pki_mpi_meet(part->rank, ranks, there, patience);
    if (met == PKI_MPI_NOT_ALL && there)
        miss(part, part->rank, ranks);
    return met == PKI_MPI_ALL && gather(part, part->rank, ranks);
}

void pki_mpi_job_end(void)
{
    pk_job_part_ part = {.size = sizeof part};
    MPI_Errhandler programs;
    if (!begun || patience <= 0)
        return;
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &programs);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    bool gathered = meet_and_gather(&part);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, programs);
    PMPI_Errhandler_free(&programs);
    pk_job_leave_(gathered);
    pk_job_hold_(0);
}

void pki_mpi_job_abort(void)
{
    pk_job_leave_(0);
    pk_job_hold_(0);
}
