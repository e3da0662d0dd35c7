#include "comm/mpi/session.h"

#include <pk/private.h>
#include <pk/session.h>

#include <errno.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mpi/clocks.h"
#include "comm/mpi/glue.h"
#include "comm/mpi/job.h"
#include "comm/mpi/stragglers.h"

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

/* ---- is the MPI in this process the one that this library was compiled for? ---- */

typedef enum family { OF_OPEN_MPI, OF_MPICH, OF_ANOTHER } family;

#if defined(OPEN_MPI)
#define COMPILED_FOR OF_OPEN_MPI
#elif defined(MPICH_VERSION)
#define COMPILED_FOR OF_MPICH
#else
#define COMPILED_FOR OF_ANOTHER
#endif

pki_mpi_which pki_mpi_found;

static const char *const names[] = {"Open MPI", "MPICH", "another MPI"};
static const char *const libraries[] = {" (libpk_mpi-openmpi is for that)",
                                        " (libpk_mpi-mpich is for that)", ""};

/* By what MPIs say of themselves. Those of one family have the same handles: MPICH's are bound to
 * it by its ABI compatibility initiative. */
static family family_of(const char *version)
{
    static const struct {
        const char *says;
        family is;
    } known[] = {
        {"Open MPI", OF_OPEN_MPI}, {"Spectrum MPI", OF_OPEN_MPI}, {"MPICH", OF_MPICH},
        {"MVAPICH", OF_MPICH},     {"Intel(R) MPI", OF_MPICH},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(version, known[i].says))
            return known[i].is;
    return OF_ANOTHER;
}

static void log_mismatch(const char *version)
{
    char line[256];
    size_t n = strcspn(version, ",\n"); /* what follows is how it was configured */
    snprintf(
        line, sizeof line,
        "MPI calls are not recorded: this libpk_mpi is for %s, and the program runs with %.*s%s",
        names[COMPILED_FOR], (int)(n < 80 ? n : 80), version, libraries[family_of(version)]);
    for (char *c = line; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    pk_say_(-1, line);
}

/* PMPI_Get_library_version is the one function that may be called at any time, even before
 * MPI_Init, and has the same parameters in all MPIs. The longest answer, MPICH's, takes up to 8192
 * bytes. */
static pki_mpi_which identify(char version[16384])
{
    int n = 0;
    version[0] = 0;
    PMPI_Get_library_version(version, &n);
    return COMPILED_FOR == OF_ANOTHER || family_of(version) == COMPILED_FOR ? PKI_MPI_OURS
                                                                            : PKI_MPI_OTHER;
}

bool pki_mpi_check_library(void)
{
    pki_mpi_which unseen = PKI_MPI_UNSEEN,
                  found = __atomic_load_n(&pki_mpi_found, __ATOMIC_RELAXED);
    char version[16384];
    int saved = errno;
    if (found != PKI_MPI_UNSEEN)
        return found == PKI_MPI_OTHER;
    found = identify(version);
    if (__atomic_compare_exchange_n(&pki_mpi_found, &unseen, found, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED) &&
        found == PKI_MPI_OTHER)
        log_mismatch(version);
    errno = saved;
    return found == PKI_MPI_OTHER;
}

/* ---- the beginning and the end of MPI ---- */

/* PK_MPI_START=1 makes MPI_Init start perfkit, with PK_TRACE_PATH and its like, and MPI_Finalize
 * stop it: for programs that know nothing of perfkit. Without it nothing is started or stopped; a
 * session of the program's is flushed at MPI_Finalize and MPI_Abort, since not every launcher lets
 * its processes live for long after that. */

static bool is_ours; /* the session */

static void start(void)
{
    const char *wanted = secure_getenv("PK_MPI_START");
    int rank = 0, size = 0;
    if (is_ours || !wanted || strcmp(wanted, "1") != 0)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    is_ours =
        pk_start_asked_("PK_MPI_START", pk_options(.rank = rank, .world_size = size)) == PK_OK;
}

static void finish(void)
{
    if (is_ours)
        pk_stop();
    else if (pki_mpi_is_on())
        pk_flush();
    is_ours = false;
}

#define INIT(NAME, PARAMS, ARGS)                                                                   \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        pk_region_begin(&region);                                                                  \
        int status = PMPI_##NAME ARGS;                                                             \
        pk_region_end(&region);                                                                    \
        if (status == MPI_SUCCESS) {                                                               \
            start();                                                                               \
            pki_mpi_job_begin();                                                                   \
            pki_mpi_clocks_begin();                                                                \
            pki_mpi_stragglers_begin();                                                            \
        }                                                                                          \
        return status;                                                                             \
    }

INIT(Init, (int *argc, char ***argv), (argc, argv))
INIT(Init_thread, (int *argc, char ***argv, int required, int *provided),
     (argc, argv, required, provided))

PKI_MPI_CALL(Finalize)(void)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Finalize");
    pki_mpi_stragglers_end();
    pki_mpi_clocks_end();
    finish();
    pki_mpi_job_end();
    pk_region_begin(&region);
    int status = PMPI_Finalize();
    pk_region_end(&region);
    return status;
}

PKI_MPI_CALL(Abort)(MPI_Comm comm, int code)
{
    finish();
    pki_mpi_job_abort();
    return PMPI_Abort(comm, code);
}
