/* lib/comm/mpi/ranks.c - what libpk_mpi's own variables say, and waiting for other ranks */
#include <pk/private.h>
#include <pk/session.h>

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "comm/mpi/ranks.h"

/* ---- variables that libpk_mpi itself reads ---- */

const char *pki_mpi_text_of(const char *variable)
{
    const char *text = secure_getenv(variable);
    return text && *text ? text : NULL;
}

void pki_mpi_refuse(const char *variable, const char *value, const char *sentence)
{
    char line[256];
    snprintf(line, sizeof line, "%.40s=%.60s is %.120s", variable, value, sentence);
    pk_log_(PK_LOG_WARNING, line);
}

long pki_mpi_setting_of(const pki_mpi_setting *s)
{
    const char *text = pki_mpi_text_of(s->variable);
    char *end = NULL, sentence[96];
    int saved = errno;
    if (!text)
        return s->otherwise;
    errno = 0;
    long value = strtol(text, &end, 10);
    bool valid = *text >= '0' && *text <= '9' && !*end && !errno;
    errno = saved;
    if (valid && value >= s->least && value <= s->most)
        return value;
    snprintf(sentence, sizeof sentence, "no number from %ld to %ld; it is %ld", s->least, s->most,
             s->otherwise);
    pki_mpi_refuse(s->variable, text, sentence);
    return s->otherwise;
}

/* ---- waiting for other ranks, but not for ever ---- */

#define PATIENCE_SECONDS 10 /* PK_MPI_PATIENCE */

double pki_mpi_seconds(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const pki_mpi_pace pki_mpi_brisk = {3, 1 / 8., 50e-6, 2e-3},
                   pki_mpi_idle = {0, 1 / 4., 1e-3, 16e-3};

typedef struct waiting {
    pki_mpi_pace pace;
    double since, until;
    int looks;
} waiting;

static waiting wait_for(pki_mpi_pace pace, double seconds)
{
    double now = pki_mpi_seconds();
    return (waiting){pace, now, now + seconds, 0};
}

/* Before the next look. False: it is too late for one. */
static bool sleep_a_little(waiting *w)
{
    double now = pki_mpi_seconds();
    if (now > w->until)
        return false;
    if (w->looks++ < w->pace.looks) {
        sched_yield();
        return true;
    }
    double nap = fmin(fmax((now - w->since) * w->pace.share, w->pace.least), w->pace.most);
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * nap)}, NULL);
    return true;
}

bool pki_mpi_wait(MPI_Request *request, MPI_Status *status, double seconds)
{
    waiting w = wait_for(pki_mpi_brisk, seconds);
    int there = 0;
    while (PMPI_Test(request, &there, status) == MPI_SUCCESS)
        if (there || !sleep_a_little(&w))
            return there;
    return false;
}

bool pki_mpi_wait_for(int from, int tag, MPI_Message *message, MPI_Status *status,
                      pki_mpi_pace pace, double seconds)
{
    waiting w = wait_for(pace, seconds);
    int there = 0;
    while (PMPI_Improbe(from, tag, MPI_COMM_WORLD, &there, message, status) == MPI_SUCCESS)
        if (there || !sleep_a_little(&w))
            return there;
    return false;
}

double pki_mpi_patience(void)
{
    static const pki_mpi_setting setting = {"PK_MPI_PATIENCE", 0, 86400, PATIENCE_SECONDS};
    return (double)pki_mpi_setting_of(&setting);
}
