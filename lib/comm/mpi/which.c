#include "comm/mpi/which.h"

#include <mpi.h>

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <pk/session.h>

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
