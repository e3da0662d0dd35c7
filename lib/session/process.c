#include "session/process.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loader.h"
#include "base/log.h"
#include "base/files.h"
#include "comm/model/communicator.h"
#include "core/join.h"
#include "core/sampler.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/collector/collect.h"
#include "session/duplicates.h"
#include "session/collector/drain.h"
#include "session/job/job.h"
#include "session/stop.h"
#include "session/service.h"

/* The child has one thread and a copy of everything; the files, the arena and the collector are the
 * parent's. None of our locks was taken before the fork, but for that of base/loader.h, since that
 * could have meant waiting for a disk; so no state is trusted, it is made anew; what nobody held is
 * given back, what somebody did is not. */
static void in_child(void)
{
    pki_session *s = &pki_the_session;
    pki_services_each(after_fork, ());
    if (pki_session_after_fork()) {
        pki_drain_abandon(s);
        pki_activity_reset();
    } else if (s->open && s->writing) {
        pki_own_close(&s->file.own);
    }
    pki_dl_after_fork();
    pki_driver_after_fork();
    pki_backends_after_fork();
    pki_log_after_fork();
    pki_names_after_fork();
    pki_samplers_after_fork();
    pki_comms_after_fork();
    pki_fold_after_fork();
    pki_registry_after_fork(s->open ? NULL : s->arena);
    pki_join_after_fork();
    pki_collect_after_fork();
    pki_duplicates_release();
    memset(s, 0, sizeof *s);
}

static bool armed; /* exit() will come by */

static void stop_at_exit(void)
{
    pki_store(&armed, false);
    if (pki_the_session.open)
        pki_session_exit();
    else
        pki_job_exit(); /* nobody has taken it: MPI_Finalize was not called */
}

/* A library that is unloaded while our threads run in it takes the program down with it. */
static void stay_loaded(void)
{
    Dl_info self;
    if (dladdr((void *)(uintptr_t)&pki_the_session, &self) && self.dli_fname) {
        void *handle = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        if (handle)
            dlclose(handle); /* the flag stays */
    }
}

static void prepare(void)
{
    pthread_atfork(pki_dl_before_fork, pki_dl_after_fork_in_parent, in_child);
    stay_loaded();
}

void pki_process_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    pki_standard_check();
    if (!armed) /* again, if a function that exit() calls opens a session */
        armed = atexit(stop_at_exit) == 0;
}
