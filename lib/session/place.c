#include "session/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "out/file.h"
#include "out/target.h"

#define ATTEMPTS 10 /* at a name that others are after, too */

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

static found look(const char *path, pki_owned *own)
{
    struct stat file;
    *own = (pki_owned){.fd = -1};
    if (lstat(path, &file) != 0 || !S_ISREG(file.st_mode) ||
        !pki_own_take(own, pki_fd_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0)))
        return NOTHING;
    /* Where locks do not work, nobody is noticed. */
    if (pki_own_lock(own) || (errno != EAGAIN && errno != EACCES))
        return pki_own_is_at(own, path) ? LEFT_OVER : MOVED;
    return IN_USE;
}

pk_status pki_place_trace_trouble(const char *trace, int error)
{
    static const pki_target_hints hints = {"leave trace_path empty for statistics only", NULL};
    return pki_fail(pki_status_of_errno(error), "trace %s: %s", trace,
                    pki_target_why(trace, error, &hints).text);
}

static pk_status arena_trouble(const char *arena, int error)
{
    static const pki_target_hints hints = {
        "\"none\" in arena_path leaves the arena in memory, where it does not survive a kill",
        NULL};
    return pki_fail(pki_status_of_errno(error), "arena %s: %s", arena,
                    pki_target_why(arena, error, &hints).text);
}

/* Before anything is opened or moved away. */
static pk_status check(const pki_place *place)
{
    if (place->trace[0] && !pki_target_is_free(place->trace))
        return pki_place_trace_trouble(place->trace, errno);
    return pki_target_is_free(place->arena) ? PK_OK : arena_trouble(place->arena, errno);
}

/* run.json, run.json.arena -> run.json.prev, run.json.prev.arena: the pair that `pk recover`
 * expects. An arena that has a path of its own stays there. */
static pk_status keep_previous(const pki_place *place)
{
    char trace[PATH_MAX], arena[PATH_MAX];
    size_t before = strlen(place->arena) - (pki_ends_with(place->arena, ".arena") ? 6 : 0);
    int n = snprintf(arena, sizeof arena, "%.*s.prev.arena", (int)before, place->arena);
    if (n < 0 || (size_t)n >= sizeof arena || !join(trace, place->trace, ".prev"))
        return pki_fail(PK_EINVAL, "trace_path is longer than a path can be");
    if (place->trace[0] && !pki_target_is_free(trace))
        return pki_place_trace_trouble(trace, errno);
    if (!pki_target_is_free(arena))
        return arena_trouble(arena, errno);
    /* The arena last: while it is there, and locked by us, nobody else takes the trace's name. */
    bool with_trace = place->trace[0] && rename(place->trace, trace) == 0;
    if (rename(place->arena, arena) != 0) {
        int error = errno;
        if (with_trace)
            rename(trace, place->trace);
        return error == ENOENT ? PK_OK : arena_trouble(place->arena, error);
    }
    pki_log(PK_LOG_WARNING, "%s is of a run that was killed: kept as %s; pk recover makes it whole",
            with_trace ? place->trace : place->arena, with_trace ? trace : arena);
    return PK_OK;
}

/* run.json -> run.1234.json, keeping what tells the format. */
static bool with_pid(char *path, uint32_t pid)
{
    char before[PATH_MAX];
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
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

static bool name_arena(const pki_config *c, pki_place *place)
{
    if (!c->arena[0])
        return join(place->arena, place->trace, ".arena");
    return join(place->arena, c->arena, "");
}

/* Away from the name that another process is writing to. The kernel does not say whose a lock is;
 * the arena does. */
static pk_status give_way(const pki_config *c, pki_place *place, bool arena_too)
{
    char writer[32] = "another process";
    bool again = strcmp(place->trace, c->trace) != 0;
    uint32_t pid = arena_too ? pki_arena_pid(place->arena) : 0;
    if (pid)
        snprintf(writer, sizeof writer, "process %u", pid);
    if ((arena_too && c->arena[0]) || again || !with_pid(place->trace, c->world.pid))
        return pki_fail(PK_EACCES, "%s is in use by %s", arena_too ? place->arena : place->trace,
                        writer);
    pki_log(PK_LOG_WARNING, "%s writes %s: this one writes %s (use %%r or %%p in trace_path)",
            writer, c->trace, place->trace);
    return PK_OK;
}

/* A path that nobody else is writing to at this moment. */
static pk_status settle(const pki_config *c, pki_place *place)
{
    memcpy(place->trace, c->trace, sizeof place->trace);
    for (int i = 0; i < ATTEMPTS; i++) {
        pki_owned own;
        if (!name_arena(c, place))
            return pki_fail(PK_EINVAL, "trace_path is longer than a path can be");
        pk_status status = check(place);
        if (status)
            return status;
        found what = look(place->arena, &own);
        bool live = what == IN_USE || pki_file_is_locked(place->trace);
        if (what == LEFT_OVER && !live)
            status = keep_previous(place);
        pki_own_close(&own);
        if (live)
            status = give_way(c, place, what == IN_USE);
        if (status || (!live && what != MOVED))
            return status;
    }
    return PK_OK; /* whose turn it is, make_file says */
}

/* The same where no file of an arena lies beside the trace. */
static pk_status settle_trace(const pki_config *c, pki_place *place)
{
    pk_status status = PK_OK;
    memcpy(place->trace, c->trace, sizeof place->trace);
    while (!status && pki_file_is_locked(place->trace))
        status = give_way(c, place, false);
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

/* The file of an arena that outlives us. False and errno. Private whatever the umask: who could write
 * into it would write into the memory of the running program. */
static bool make_file(const char *path, pki_owned *own)
{
    char temporary[PATH_MAX];
    if (!pki_own_take(own, pki_file_fresh(path, PKI_FILE_PRIVATE, temporary, sizeof temporary)))
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

/* What the bound allows, or, when none was given, what the process may have. */
static pki_arena *make_arena(const pki_config *c, const pki_owned *own)
{
    uint64_t bytes = c->memory_bytes ? c->memory_bytes : PKI_MEMORY_DEFAULT;
    pki_arena *arena = pki_arena_create(own, bytes);
    while (!arena && !c->memory_bytes && errno != ENOSPC && bytes / 2 >= PKI_MEMORY_LEAST) {
        bytes /= 2;
        arena = pki_arena_create(own, bytes);
    }
    return arena;
}

static pk_status memory_only(const pki_config *c, pki_place *place, pki_arena **arena)
{
    pki_owned own;
    place->arena[0] = 0;
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

static pk_status in_file(const pki_config *c, pki_place *place, pki_arena **arena)
{
    pki_owned own;
    bool made = false;
    errno = EEXIST;
    for (int i = 0; i < ATTEMPTS && !made && errno == EEXIST; i++) {
        pk_status s = settle(c, place);
        if (s)
            return s;
        made = make_file(place->arena, &own);
    }
    if (!made && errno == EXDEV) {
        pki_log(
            PK_LOG_INFO,
            "%s would lie behind a network: the arena stays in memory and does not survive a kill",
            place->arena);
        return memory_only(c, place, arena);
    }
    *arena = made ? make_arena(c, &own) : NULL;
    if (*arena) {
        pki_place_anchor(place->arena);
        return PK_OK;
    }
    int error = errno;
    if (made) {
        remove_ours(place->arena, &own);
        pki_own_close(&own);
    }
    return arena_trouble(place->arena, error);
}

void pki_place_anchor(char path[PATH_MAX])
{
    char folder[PATH_MAX], whole[PATH_MAX];
    if (!path[0] || path[0] == '/' || !getcwd(folder, sizeof folder))
        return;
    int n = snprintf(whole, sizeof whole, "%s/%s", folder, path);
    if (n > 0 && (size_t)n < sizeof whole)
        memcpy(path, whole, (size_t)n + 1);
}

pk_status pki_place_open(const pki_config *c, pki_place *place, pki_arena **arena)
{
    memset(place, 0, sizeof *place);
    bool to_memory = strcmp(c->arena, "none") == 0 || (!c->arena[0] && !c->trace[0]);
    if (!to_memory)
        return in_file(c, place, arena);
    pk_status status = settle_trace(c, place);
    if (!status && place->trace[0] && !pki_target_is_free(place->trace))
        status = pki_place_trace_trouble(place->trace, errno);
    return status ? status : memory_only(c, place, arena);
}

pki_arena *pki_place_undo(const pki_place *place, pki_arena **arena)
{
    pki_arena *was = *arena;
    pki_store(arena, NULL);
    pki_place_end(place, was, false);
    return was;
}

void pki_place_end(const pki_place *place, const pki_arena *arena, bool keep)
{
    if (keep)
        pki_own_unlock(&arena->file);
    else if (place->arena[0])
        remove_ours(place->arena, &arena->file);
}
