#include "session/trace/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "out/file.h"
#include "session/captures/capture_file.h"

#define ATTEMPTS 10        /* at a name that others are after, too */
#define OF_ADDRESS_SPACE 8 /* an eighth of it */

static bool join(char *out, const char *a, const char *b)
{
    return snprintf(out, PATH_MAX, "%s%s", a, b) < PATH_MAX;
}

typedef enum found {
    NOTHING,   /* that would be an arena */
    LEFT_OVER, /* by a run that was killed; locked by us until it is closed */
    IN_USE,    /* by another process */
    MOVED      /* away, just now, by somebody else */
} found;

static found examine(const char *path, pki_owned *own)
{
    struct stat file;
    *own = (pki_owned){.fd = -1};
    if (lstat(path, &file) != 0 || !S_ISREG(file.st_mode) ||
        !pki_own_adopt(own, pki_fd_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0)))
        return NOTHING;
    /* Where locks do not work, nobody is noticed. */
    if (pki_own_lock(own) || (errno != EAGAIN && errno != EACCES))
        return pki_own_is_at(own, path) ? LEFT_OVER : MOVED;
    return IN_USE;
}

pk_status pki_paths_fail(const char *what, const char *path, int error, const char *nothing)
{
    return pki_fail(pki_status_of_errno(error), "%s %s: %s", what, path,
                    pki_target_why(path, error, &(pki_target_hints){nothing, NULL}).text);
}

pk_status pki_paths_trace_error(const char *trace, int error)
{
    return pki_paths_fail("trace", trace, error, "leave trace_path empty for statistics only");
}

static pk_status arena_error(const char *arena, int error)
{
    return pki_paths_fail(
        "arena", arena, error,
        "\"none\" in arena_path leaves the arena in memory, where it does not survive a kill");
}

/* Before anything is opened or moved away. */
static pk_status check(const pki_paths *paths)
{
    if (paths->trace[0] && !pki_target_is_free(paths->trace))
        return pki_paths_trace_error(paths->trace, errno);
    return pki_target_is_free(paths->arena) ? PK_OK : arena_error(paths->arena, errno);
}

/* run.json, run.json.arena -> run.json.prev, run.json.prev.arena: the pair that `pk recover`
 * expects. An arena that has a path of its own stays there. */
static pk_status rename_previous(const pki_paths *paths)
{
    char trace[PATH_MAX], arena[PATH_MAX];
    size_t before = strlen(paths->arena) - (pki_ends_with(paths->arena, ".arena") ? 6 : 0);
    int n = snprintf(arena, sizeof arena, "%.*s.prev.arena", (int)before, paths->arena);
    if (n < 0 || (size_t)n >= sizeof arena || !join(trace, paths->trace, ".prev"))
        return pki_fail(PK_EINVAL, "trace_path is longer than a path can be");
    if (paths->trace[0] && !pki_target_is_free(trace))
        return pki_paths_trace_error(trace, errno);
    if (!pki_target_is_free(arena))
        return arena_error(arena, errno);
    /* The arena last: while it is there, and locked by us, nobody else takes the trace's name. */
    bool with_trace = paths->trace[0] && rename(paths->trace, trace) == 0;
    if (rename(paths->arena, arena) != 0) {
        int error = errno;
        if (with_trace)
            rename(trace, paths->trace);
        return error == ENOENT ? PK_OK : arena_error(paths->arena, error);
    }
    pki_log(PK_LOG_WARNING, "%s is left from a killed run: renamed to %s; pk recover completes it",
            with_trace ? paths->trace : paths->arena, with_trace ? trace : arena);
    return PK_OK;
}

/* run.json -> run.1234.json, keeping the ending, which names the format. */
static bool with_pid(char *path, uint32_t pid)
{
    char before[PATH_MAX];
    const char *name = pki_base_name(path);
    const char *ending =
        pki_ends_with(path, ".json.gz") ? path + strlen(path) - 8 : strrchr(name, '.');
    if (!ending)
        ending = path + strlen(path);
    int n = snprintf(before, sizeof before, "%.*s.%u%s", (int)(ending - path), path, pid, ending);
    if (n < 0 || (size_t)n >= sizeof before)
        return false;
    memcpy(path, before, (size_t)n + 1);
    return true;
}

static bool name_arena(const pki_config *c, pki_paths *paths)
{
    if (!c->arena[0])
        return join(paths->arena, paths->trace, ".arena");
    return join(paths->arena, c->arena, "");
}

/* What the arena lies beside: the trace, or what `pk recover` makes of a history without one. */
static const char *base_of(const pki_config *c)
{
    return c->trace[0] || c->arena[0] ? c->trace : c->history;
}

/* Away from the name that another process is writing to. The kernel does not say whose a lock is;
 * the arena does. */
static pk_status use_another_name(const pki_config *c, pki_paths *paths, bool arena_too)
{
    char writer[32] = "another process";
    bool again = strcmp(paths->trace, base_of(c)) != 0;
    uint32_t pid = arena_too ? pki_arena_pid(paths->arena) : 0;
    if (pid)
        snprintf(writer, sizeof writer, "process %u", pid);
    if ((arena_too && c->arena[0]) || again || !with_pid(paths->trace, c->world.pid))
        return pki_fail(PK_EACCES, "%s is in use by %s", arena_too ? paths->arena : paths->trace,
                        writer);
    paths->renamed = true;
    pki_log(PK_LOG_WARNING, "%s writes %s: this one writes %s (use %%r or %%p in %s)", writer,
            base_of(c), paths->trace, c->trace[0] ? "trace_path" : "arena_path");
    return PK_OK;
}

/* A path that nobody else is writing to at this moment. */
static pk_status choose_paths(const pki_config *c, pki_paths *paths)
{
    memcpy(paths->trace, base_of(c), sizeof paths->trace);
    for (int i = 0; i < ATTEMPTS; i++) {
        pki_owned own;
        if (!name_arena(c, paths))
            return pki_fail(PK_EINVAL, "trace_path is longer than a path can be");
        pk_status status = check(paths);
        if (status)
            return status;
        found what = examine(paths->arena, &own);
        bool live = what == IN_USE || pki_file_is_locked(paths->trace);
        if (what == LEFT_OVER && !live)
            status = rename_previous(paths);
        pki_own_close(&own);
        if (live)
            status = use_another_name(c, paths, what == IN_USE);
        if (status || (!live && what != MOVED))
            return status;
    }
    return PK_OK; /* whose turn it is, make_file says */
}

/* The same where no file of an arena lies beside the trace. */
static pk_status choose_trace(const pki_config *c, pki_paths *paths)
{
    pk_status status = PK_OK;
    memcpy(paths->trace, c->trace, sizeof paths->trace);
    while (!status && pki_file_is_locked(paths->trace))
        status = use_another_name(c, paths, false);
    return status;
}

/* Gives a fresh file its name, but not over one that has it: of two processes that start at once
 * one gets it. Where there are no hard links both do. */
static bool claim_name(const char *temporary, const char *path)
{
    if (link(temporary, path) == 0) {
        unlink(temporary);
        return true;
    }
    if (errno != EEXIST)
        return pki_file_publish(temporary, path);
    unlink(temporary);
    errno = EEXIST;
    return false;
}

/* The file of an arena that outlives us. False and errno. Private whatever the umask: who could
 * write into it would write into the memory of the running program. */
static bool make_file(const char *path, pki_owned *own)
{
    char temporary[PATH_MAX];
    if (!pki_own_adopt(own, pki_file_fresh(path, PKI_FILE_PRIVATE, temporary, sizeof temporary)))
        return false;
    if (pki_mem_is_remote(own->fd)) {
        unlink(temporary);
        pki_own_close(own);
        errno = EXDEV;
        return false;
    }
    (void)pki_own_lock(own); /* before anybody can find it */
    if (claim_name(temporary, path))
        return true;
    pki_own_close(own);
    return false;
}

/* The usual, or a share of what a limit (ulimit -v, a batch system's) leaves: most of that is the
 * program's, which may ask for it later. */
static uint64_t default_bytes(void)
{
    uint64_t share = pki_mem_address_space_left() / OF_ADDRESS_SPACE & ~(uint64_t)(PKI_PAGE - 1);
    return PKI_MAX(PKI_MIN(PKI_MEMORY_DEFAULT, share), PKI_MEMORY_LEAST);
}

/* What the bound allows, or, when none was given, what the process may have. */
static pki_arena *make_arena(const pki_config *c, const pki_owned *own)
{
    uint64_t bytes = c->memory_bytes ? c->memory_bytes : default_bytes();
    pki_arena *arena = pki_arena_create(own, bytes);
    while (!arena && !c->memory_bytes && errno != ENOSPC && bytes / 2 >= PKI_MEMORY_LEAST) {
        bytes /= 2;
        arena = pki_arena_create(own, bytes);
    }
    return arena;
}

static pk_status memory_only(const pki_config *c, pki_paths *paths, pki_arena **arena)
{
    pki_owned own;
    paths->arena[0] = 0;
    *arena = pki_mem_file(&own, "perfkit") ? make_arena(c, &own) : NULL;
    if (*arena)
        return PK_OK;
    int error = errno;
    pki_own_close(&own);
    return pki_fail(PK_ENOMEM, "recording memory: %s", strerror(error));
}

static void remove_ours(const char *path, const pki_owned *own)
{
    if (pki_own_is_at(own, path))
        unlink(path);
}

static pk_status in_file(const pki_config *c, pki_paths *paths, pki_arena **arena)
{
    pki_owned own;
    bool made = false;
    errno = EEXIST;
    for (int i = 0; i < ATTEMPTS && !made && errno == EEXIST; i++) {
        pk_status s = choose_paths(c, paths);
        if (s)
            return s;
        made = make_file(paths->arena, &own);
    }
    if (!made && errno == EXDEV) {
        pki_log(
            PK_LOG_INFO,
            "%s would lie behind a network: the arena stays in memory and does not survive a kill",
            paths->arena);
        return memory_only(c, paths, arena);
    }
    *arena = made ? make_arena(c, &own) : NULL;
    if (*arena) {
        pki_paths_anchor(paths->arena);
        return PK_OK;
    }
    int error = errno;
    if (made) {
        remove_ours(paths->arena, &own);
        pki_own_close(&own);
    }
    return arena_error(paths->arena, error);
}

void pki_paths_anchor(char path[PATH_MAX])
{
    char folder[PATH_MAX], whole[PATH_MAX];
    if (!path[0] || path[0] == '/' || !getcwd(folder, sizeof folder))
        return;
    int n = snprintf(whole, sizeof whole, "%s/%s", folder, path);
    if (n > 0 && (size_t)n < sizeof whole)
        memcpy(path, whole, (size_t)n + 1);
}

/* No file was asked for by name, so the program goes on without. */
static pk_status beside_history(const pki_config *c, pki_paths *paths, pki_arena **arena)
{
    pk_status status = in_file(c, paths, arena);
    paths->trace[0] = 0;
    if (!status)
        return status;
    pki_log(PK_LOG_WARNING, "the history stays in memory and does not survive a kill");
    return memory_only(c, paths, arena);
}

static pk_status open_paths(const pki_config *c, pki_paths *paths, pki_arena **arena)
{
    bool to_memory = strcmp(c->arena, "none") == 0 || (!c->arena[0] && !base_of(c)[0]);
    if (!to_memory && base_of(c) == c->history)
        return beside_history(c, paths, arena);
    if (!to_memory)
        return in_file(c, paths, arena);
    pk_status status = choose_trace(c, paths);
    if (!status && paths->trace[0] && !pki_target_is_free(paths->trace))
        status = pki_paths_trace_error(paths->trace, errno);
    return status ? status : memory_only(c, paths, arena);
}

/* Two that would have written one trace do not write each other's captures either. */
static pk_status choose_captures(const pki_config *c, pki_paths *paths)
{
    memcpy(paths->capture, c->capture_path, sizeof paths->capture);
    if (paths->renamed && paths->capture[0] && !with_pid(paths->capture, c->world.pid))
        return pki_fail(PK_EINVAL, "capture_path is longer than a path can be");
    pki_capture_path_anchor(paths->capture);
    return PK_OK;
}

pk_status pki_paths_open(const pki_config *c, pki_paths *paths, pki_arena **arena)
{
    memset(paths, 0, sizeof *paths);
    pk_status status = open_paths(c, paths, arena);
    return status ? status : choose_captures(c, paths);
}

pki_arena *pki_paths_undo(const pki_paths *paths, pki_arena **arena)
{
    pki_arena *was = *arena;
    pki_store(arena, NULL);
    pki_paths_end(paths, was, false);
    return was;
}

void pki_paths_end(const pki_paths *paths, const pki_arena *arena, bool keep)
{
    if (keep)
        pki_own_unlock(&arena->spans.file);
    else if (paths->arena[0])
        remove_ours(paths->arena, &arena->spans.file);
}
