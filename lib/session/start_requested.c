/* lib/session/start_requested.c - a session that nobody in the program has asked for, so that
 * nobody there looks at how its start went. */
#include <pk/job.h>
#include <pk/region.h>
#include <pk/session.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/process.h"
#include "session/start.h"

static int32_t launched_rank(void)
{
    pki_world world;
    pki_world_detect(&world);
    return world.rank;
}

void pk_say_(int32_t rank, const char *sentence)
{
    int saved = errno;
    if ((rank < 0 ? launched_rank() : rank) == 0)
        pki_log_to_stderr(NULL, PK_LOG_INFO, sentence);
    errno = saved;
}

void pk_log_(pk_log_level level, const char *sentence)
{
    int saved = errno;
    pki_log(level, "%s", sentence);
    errno = saved;
}

static bool is_logged(void)
{
    const char *where = secure_getenv("PK_LOG");
    return where && (strcmp(where, "stderr") == 0 || strcmp(where, "off") == 0);
}

/* What is recorded goes into the session that is open: the program's. */
static bool is_recording(pk_status status)
{
    return status == PK_EBUSY && __atomic_load_n(&pk_gate_, __ATOMIC_RELAXED) != 0;
}

pk_status pk_start_asked_(const char *variable, const pk_options *options)
{
    pk_status status = pki_start_untold(options);
    char sentence[448];
    if (!status || is_logged() || is_recording(status))
        return status;
    snprintf(sentence, sizeof sentence, "%.32s=1, but nothing is recorded: %.320s (%s)", variable,
             pk_error_message(), pk_status_name(status));
    pk_say_(options && options->world_size ? options->rank : -1, sentence);
    return status;
}
