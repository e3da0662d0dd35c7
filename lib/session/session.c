#include "session/session.h"

#include <pk/version.h>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/files.h"
#include "base/loader.h"
#include "base/log.h"
#include "comm/live/progress.h"
#include "comm/model/communicator.h"
#include "core/frames.h"
#include "core/join.h"
#include "core/phase.h"
#include "core/events.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/collector/collect.h"
#include "session/collector/drain.h"
#include "session/control.h"
#include "session/job/job.h"

/* ---- the one session of the process, from pk_start to pk_stop ---- */

pki_session pki_the_session;
pthread_mutex_t pki_drain_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static bool abandoned;        /* exit() has given up on the session */
static pk_counts last_counts; /* of the session before, once it has ended */
static bool have_last_counts;

static bool is_free(pthread_mutex_t *mutex)
{
    return pthread_mutex_trylock(mutex) == 0 && pthread_mutex_unlock(mutex) == 0;
}

/* In the child of a fork. False if one of the locks was held: what it guards may be half of
 * something. */
static bool pki_session_after_fork(void)
{
    bool quiet = is_free(&control) && is_free(&pki_drain_lock);
    pthread_mutex_init(&control, NULL);
    pthread_mutex_init(&pki_drain_lock, NULL);
    have_last_counts = abandoned = false;
    return quiet;
}

pk_status pki_control_lock(void)
{
    if (pki_load(&abandoned))
        return pki_fail_unheard(PK_EOFF, "the process is ending");
    if (!pki_inside_enter())
        return pki_fail_inside();
    pthread_mutex_lock(&control);
    return PK_OK;
}

bool pki_control_lock_within(uint64_t ns)
{
    if (!pki_inside_enter())
        return false;
    bool locked = pki_lock_within(&control, ns);
    if (!locked)
        pki_inside_leave();
    return locked;
}

void pki_control_unlock(void)
{
    pthread_mutex_unlock(&control);
    pki_inside_leave();
}

void pki_session_abandon(bool yes)
{
    pki_store(&abandoned, yes);
    if (yes)
        pki_store(&pk_gate_, 0u);
}

void pki_session_set_last_counts(const pk_counts *counts)
{
    last_counts = *counts;
    have_last_counts = true;
}

bool pki_session_last_counts(pk_counts *counts)
{
    *counts = last_counts;
    return have_last_counts;
}

void pki_session_reset_log(void)
{
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
}

/* ---- service ---- */

extern const pki_service pki_service_activity, pki_service_tail, pki_service_captures,
    pki_service_states, pki_service_live, pki_service_stragglers, pki_service_thinning,
    pki_service_processors, pki_service_io, pki_service_io_steps, pki_service_energy,
    pki_service_events, pki_service_memory, pki_service_memory_steps, pki_service_gpu_memory,
    pki_service_gpu_load, pki_service_windows, pki_service_metrics, pki_service_goodput,
    pki_service_watchdog, pki_service_job;

/* Of layers that know no session. */
static const pki_service progress = {
    .name = "progress",
    .reset = pki_progress_reset,
    .folded = pki_progress_round,
    .after_fork = pki_progress_reset,
};
static const pki_service phases = {
    .name = "phases",
    .reset = pki_phases_reset,
    .after_fork = pki_phases_after_fork,
};

/* What measures stands before what tells of it: figures in files are then of the same round. */
const pki_service *const pki_services[] = {
    &pki_service_activity,
    &pki_service_tail,
    &progress,
    &phases,
    &pki_service_captures,
    &pki_service_states, /* behind it: what it tells belongs to the round */
    &pki_service_live,
    &pki_service_stragglers,
    &pki_service_thinning,
    &pki_service_processors,
    &pki_service_io,
    &pki_service_energy,
    &pki_service_events,
    &pki_service_memory,
    &pki_service_memory_steps,
    &pki_service_gpu_memory,
    &pki_service_gpu_load,
    &pki_service_windows,
    &pki_service_metrics,
    &pki_service_goodput,
    &pki_service_watchdog,
    &pki_service_job,
    &pki_service_io_steps, /* from here on what is read and written is the program's */
};
const size_t pki_service_count = PKI_COUNT_OF(pki_services);

pk_status pki_services_open(pki_session *s)
{
    pk_status status = PK_OK;
    for (size_t i = 0; i < pki_service_count && !status; i++)
        if (pki_services[i]->open)
            status = pki_services[i]->open(s);
    return status;
}

pk_status pki_services_status(void)
{
    pk_status status = PK_OK;
    for (size_t i = 0; i < pki_service_count && !status; i++)
        if (pki_services[i]->status)
            status = pki_services[i]->status();
    return status;
}

bool pki_services_summarise(const pki_session *s, pki_summary *out)
{
    bool done = true;
    for (size_t i = 0; i < pki_service_count && done; i++)
        done = !pki_services[i]->summarise || pki_services[i]->summarise(s, out);
    return done;
}

uint64_t pki_services_spent(void)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < pki_service_count; i++)
        ns += pki_services[i]->spent ? pki_services[i]->spent() : 0;
    return ns;
}

/* ---- other copies of perfkit in this process ---- */

#define OWNER "perfkit"

/* What copies know of each other. Other versions of perfkit read it: what is here stays. */
typedef struct copy {
    uint32_t open;    /* 1: has a session */
    uint32_t refused; /* meanwhile, so many starts of others */
    char version[16];
} copy;

/* An ELF note, which the linker keeps, --gc-sections or not. It is read-only and needs no
 * relocation, so it says how far away its copy is, in the same object. */
typedef struct note {
    uint32_t owner_bytes, bytes, layout;
    char owner[sizeof OWNER];
    int32_t distance; /* of the copy from here */
} note;

enum { LAYOUT = 1 };

extern copy pki_this_copy; /* with linkage, so that the note finds it after -flto, too */
__attribute__((used)) copy pki_this_copy;

__asm__(".pushsection .note.perfkit, \"a\", %note\n"
        ".balign 4\n"
        ".long 8, 4, 1\n" /* as the layout above */
        ".asciz \"" OWNER "\"\n"
        ".long pki_this_copy - .\n"
        ".popsection\n");
_Static_assert(sizeof OWNER == 8 && LAYOUT == 1 && sizeof(note) == 24, "as it is written here");

typedef struct other {
    char version[16];
    char where[160];
} other;

/* Is that much at this address of the object in memory, and may it be used like that? */
static bool is_there(const struct dl_phdr_info *object, uintptr_t at, size_t size, uint32_t flags)
{
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t from = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & flags) == flags && at >= from &&
            size <= segment->p_memsz && at - from <= segment->p_memsz - size)
            return true;
    }
    return false;
}

/* The copy that this is the note of, if it is one and has a session. */
static copy *open_copy(const struct dl_phdr_info *object, const note *n)
{
    if (n->owner_bytes != sizeof OWNER || n->bytes != sizeof n->distance || n->layout != LAYOUT ||
        memcmp(n->owner, OWNER, sizeof OWNER) != 0)
        return NULL;
    copy *c = (copy *)((uintptr_t)&n->distance + (uintptr_t)(intptr_t)n->distance);
    bool usable = c != &pki_this_copy && is_there(object, (uintptr_t)c, sizeof *c, PF_R | PF_W);
    return usable && __atomic_load_n(&c->open, __ATOMIC_SEQ_CST) ? c : NULL;
}

static uint64_t aligned(uint64_t size, uint64_t align)
{
    return (size + align - 1) & ~(align - 1);
}

static copy *search_notes(const struct dl_phdr_info *object, uintptr_t at, size_t size,
                          size_t align)
{
    while (size >= sizeof(note)) {
        const note *n = (const note *)at;
        copy *found = open_copy(object, n);
        uint64_t head = aligned(offsetof(note, owner) + (uint64_t)n->owner_bytes, align);
        uint64_t whole = aligned(head + n->bytes, align);
        if (found || whole >= size)
            return found;
        at += whole;
        size -= whole;
    }
    return NULL;
}

static copy *search_object(const struct dl_phdr_info *object)
{
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t at = object->dlpi_addr + part->p_vaddr;
        copy *found = NULL;
        if (part->p_type == PT_NOTE && at % 4 == 0 && is_there(object, at, part->p_filesz, PF_R))
            found = search_notes(object, at, part->p_filesz, part->p_align == 8 ? 8 : 4);
        if (found)
            return found;
    }
    return NULL;
}

static int find_other(struct dl_phdr_info *object, size_t size, void *result)
{
    other *o = result;
    copy *found = search_object(object);
    (void)size;
    if (!found)
        return 0;
    __atomic_fetch_add(&found->refused, 1, __ATOMIC_RELAXED);
    snprintf(o->version, sizeof o->version, "%.15s", found->version);
    snprintf(o->where, sizeof o->where, "%s",
             object->dlpi_name[0] ? object->dlpi_name : "the program");
    return 1;
}

/* Within a round through the objects the loader's lock is held (and may be taken again), so of two
 * copies that start at once the second one sees the first. musl's loader holds none here: there
 * both may give way. */
static int claim(struct dl_phdr_info *object, size_t size, void *result)
{
    (void)object;
    (void)size;
    __atomic_store_n(&pki_this_copy.open, 1, __ATOMIC_SEQ_CST);
    if (dl_iterate_phdr(find_other, result))
        __atomic_store_n(&pki_this_copy.open, 0, __ATOMIC_RELAXED);
    return 1;
}

pk_status pki_duplicates_claim(void)
{
    other o = {"", ""};
    snprintf(pki_this_copy.version, sizeof pki_this_copy.version, "%s", pk_version());
    __atomic_store_n(&pki_this_copy.refused, 0, __ATOMIC_RELAXED);
    pki_dl_each(claim, &o);
    if (!o.where[0])
        return PK_OK;
    return pki_fail(PK_EBUSY,
                    "another copy of perfkit (%s, in %s) has a session in this process: link all of"
                    " the process with one libpk.so",
                    o.version, o.where);
}

void pki_duplicates_release(void)
{
    __atomic_store_n(&pki_this_copy.open, 0, __ATOMIC_RELEASE);
}

uint32_t pki_duplicates_refused(void)
{
    return __atomic_load_n(&pki_this_copy.refused, __ATOMIC_RELAXED);
}

/* ---- fork, exit, and being unloaded ---- */

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
