/* lib/comm/nccl/communicator_calls.c - making and ending communicators: each call is a region,
 * since it may take seconds, and says what the communicator is.
 *
 * PK_NCCL_START=1 makes the first of them start perfkit, with PK_TRACE_PATH and its like, for
 * programs that know nothing of perfkit; it stops as they exit. Without it nothing is started. */
#include <pk/session.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comm/nccl/communicator.h"

static void start(void)
{
    const char *wanted = secure_getenv("PK_NCCL_START");
    if (wanted && strcmp(wanted, "1") == 0)
        pk_start_asked_("PK_NCCL_START", pk_options());
}

static void start_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved = errno;
    pthread_once(&once, start);
    errno = saved;
}

/* The call as a region; what it answers. */
#define IN_REGION(NAME, ARGS)                                                                      \
    (__extension__({                                                                               \
        static pk_region region = PK_REGION_OF(PK_COMM, "nccl" #NAME);                             \
        pk_region_begin(&region);                                                                  \
        pki_wrap_result result_ = pki_wrap_real.NAME ARGS;                                         \
        pk_region_end(&region);                                                                    \
        result_;                                                                                   \
    }))

#define NEED(NAME)                                                                                 \
    do                                                                                             \
        if (!PKI_WRAP_REAL(NAME))                                                                  \
            return PKI_WRAP_INVALID_USAGE;                                                         \
    while (0)

#define DEFINE(NAME, PARAMS)                                                                       \
    PKI_WRAP_API pki_wrap_result nccl##NAME PARAMS;                                                \
    PKI_WRAP_API pki_wrap_result nccl##NAME PARAMS

DEFINE(CommInitRank, (pki_wrap_comm * newcomm, int ranks, pki_wrap_id id, int rank))
{
    NEED(CommInitRank);
    start_once();
    pki_wrap_result result = IN_REGION(CommInitRank, (newcomm, ranks, id, rank));
    pki_wrap_identity identity = pki_wrap_identify(&id, NULL);
    pki_wrap_made(newcomm, &identity, result);
    return result;
}

DEFINE(CommInitRankConfig,
       (pki_wrap_comm * newcomm, int ranks, pki_wrap_id id, int rank, pki_wrap_config_arg *config))
{
    NEED(CommInitRankConfig);
    start_once();
    pki_wrap_result result = IN_REGION(CommInitRankConfig, (newcomm, ranks, id, rank, config));
    pki_wrap_identity identity = pki_wrap_identify(&id, config);
    pki_wrap_made(newcomm, &identity, result);
    return result;
}

/* The first of the ids is the one that NCCL knows the communicator by. */
DEFINE(CommInitRankScalable, (pki_wrap_comm * newcomm, int ranks, int rank, int count,
                              pki_wrap_id *ids, pki_wrap_config_arg *config))
{
    NEED(CommInitRankScalable);
    start_once();
    pki_wrap_result result =
        IN_REGION(CommInitRankScalable, (newcomm, ranks, rank, count, ids, config));
    pki_wrap_identity identity = pki_wrap_identify(count > 0 ? ids : NULL, config);
    pki_wrap_made(newcomm, &identity, result);
    return result;
}

/* All ranks are here, and their unique id is NCCL's secret. */
DEFINE(CommInitAll, (pki_wrap_comm * newcomms, int devices, const int *list))
{
    NEED(CommInitAll);
    start_once();
    pki_wrap_result result = IN_REGION(CommInitAll, (newcomms, devices, list));
    pki_wrap_identity identity = pki_wrap_identify(NULL, NULL);
    for (int i = 0; newcomms && i < devices; i++)
        pki_wrap_made(&newcomms[i], &identity, result);
    return result;
}

DEFINE(CommSplit, (pki_wrap_comm comm, int color, int key, pki_wrap_comm *newcomm,
                   pki_wrap_config_arg *config))
{
    NEED(CommSplit);
    start_once();
    pki_wrap_identity identity = pki_wrap_identify_child(comm, color, config);
    pki_wrap_result result = IN_REGION(CommSplit, (comm, color, key, newcomm, config));
    if (color != PKI_WRAP_NO_COLOR)
        pki_wrap_made(newcomm, &identity, result);
    return result;
}

DEFINE(CommShrink, (pki_wrap_comm comm, int *excluded, int count, pki_wrap_comm *newcomm,
                    pki_wrap_config_arg *config, int flags))
{
    NEED(CommShrink);
    start_once();
    pki_wrap_identity identity = pki_wrap_identify_child(comm, count, config);
    pki_wrap_result result = IN_REGION(CommShrink, (comm, excluded, count, newcomm, config, flags));
    pki_wrap_made(newcomm, &identity, result);
    return result;
}

DEFINE(CommFinalize, (pki_wrap_comm comm))
{
    NEED(CommFinalize);
    return IN_REGION(CommFinalize, (comm));
}

/* It is forgotten first: as soon as NCCL is done another one may have its handle. */
DEFINE(CommDestroy, (pki_wrap_comm comm))
{
    NEED(CommDestroy);
    pki_wrap_forget(comm);
    return IN_REGION(CommDestroy, (comm));
}

DEFINE(CommAbort, (pki_wrap_comm comm))
{
    NEED(CommAbort);
    pk_nccl_abort(pki_wrap_comm_met(comm));
    pki_wrap_forget(comm);
    return IN_REGION(CommAbort, (comm));
}

/* In-flight operations are stopped, and the communicator stays until it is destroyed. */
DEFINE(CommRevoke, (pki_wrap_comm comm, int flags))
{
    NEED(CommRevoke);
    pk_nccl_abort(pki_wrap_comm_met(comm));
    return IN_REGION(CommRevoke, (comm, flags));
}

/* Those who were in it know the other communicator, and those who join the unique id, which only
 * one of the others has: nothing that all ranks know makes a number, so it has none. */
DEFINE(CommGrow, (pki_wrap_comm comm, int ranks, const pki_wrap_id *id, int rank,
                  pki_wrap_comm *newcomm, pki_wrap_config_arg *config))
{
    NEED(CommGrow);
    start_once();
    pki_wrap_result result = IN_REGION(CommGrow, (comm, ranks, id, rank, newcomm, config));
    pki_wrap_identity identity = pki_wrap_identify(NULL, config);
    pki_wrap_made(newcomm, &identity, result);
    return result;
}

/* The first success after an operation that was in progress: it has come into its stream. */
DEFINE(CommGetAsyncError, (pki_wrap_comm comm, pki_wrap_result *state))
{
    NEED(CommGetAsyncError);
    pki_wrap_result result = pki_wrap_real.CommGetAsyncError(comm, state);
    if (result == PKI_WRAP_SUCCESS && state && *state != PKI_WRAP_IN_PROGRESS && pki_wrap_is_on())
        pk_nccl_async(pki_wrap_comm_met(comm), *state);
    return result;
}
