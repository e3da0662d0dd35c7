#include "session/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "out/file.h"

#define ATTEMPTS 10 /* at a name that others are after, too */

static bool join(char *out, const char *a, const char *b)
{
    return snprintf(out, PATH_MAX, "%s%s", a, b) < PATH_MAX;
}

/* Is that still what the path names? */
static bool is_at(const char *path, const struct stat *file)
{
    struct stat there;
    return lstat(path, &there) == 0 && there.st_dev == file->st_dev && there.st_ino == file->st_ino;
}

typedef enum found {
    NOTHING,   /* that would be an arena */
    LEFT_OVER, /* by a run that was killed; locked by us until fd is closed */
    IN_USE,    /* by process pid, if that can be told */
    MOVED      /* away, just now, by somebody else */
} found;

static found look(const char *path, int *fd, pid_t *pid)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat file;
    *fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 || fstat(*fd, &file) != 0 || !S_ISREG(file.st_mode))
        return NOTHING;
    /* Where locks do not work, nobody is noticed. */
    if (fcntl(*fd, F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES))
        return is_at(path, &file) ? LEFT_OVER : MOVED;
    *pid = fcntl(*fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
    return IN_USE;
}

/* run.json, run.json.arena -> run.json.prev, run.json.prev.arena: the pair that `pk recover`
 * expects. An arena that has a path of its own stays there. */
static void keep_previous(const pki_place *place)
{
    char trace[PATH_MAX], arena[PATH_MAX];
    size_t before = strlen(place->arena) - (pki_ends_with(place->arena, ".arena") ? 6 : 0);
    int n = snprintf(arena, sizeof arena, "%.*s.prev.arena", (int)before, place->arena);
    if (n < 0 || (size_t)n >= sizeof arena || !join(trace, place->trace, ".prev"))
        return;
    /* The arena last: while it is there, and locked by us, nobody else takes the trace's name. */
    bool with_trace = place->trace[0] && rename(place->trace, trace) == 0;
    if (rename(place->arena, arena) != 0) {
        if (with_trace)
            rename(trace, place->trace);
        return;
    }
    pki_log(PK_LOG_WARNING, "%s is of a run that was killed: kept as %s; pk recover makes it whole",
            with_trace ? place->trace : place->arena, with_trace ? trace : arena);
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

/* Away from the name that process pid is writing to. */
static pk_status give_way(const pki_config *c, pki_place *place, pid_t pid)
{
    bool again = strcmp(place->trace, c->trace) != 0;
    if (c->arena[0] || again || !with_pid(place->trace, c->world.pid))
        return pki_fail(PK_EACCES, "%s is in use by process %d", place->arena, (int)pid);
    pki_log(PK_LOG_WARNING,
            "process %d writes %s: this one writes %s (use %%r or %%p in trace_path)", (int)pid,
            c->trace, place->trace);
    return PK_OK;
}

/* A path that nobody else is writing to at this moment. */
static pk_status settle(const pki_config *c, pki_place *place)
{
    memcpy(place->trace, c->trace, sizeof place->trace);
    for (int i = 0; i < ATTEMPTS; i++) {
        int fd;
        pid_t pid = 0;
        if (!name_arena(c, place))
            return pki_fail(PK_EINVAL, "trace_path is longer than a path can be");
        found what = look(place->arena, &fd, &pid);
        if (what == LEFT_OVER)
            keep_previous(place);
        if (fd >= 0)
            close(fd);
        pk_status status = what == IN_USE ? give_way(c, place, pid) : PK_OK;
        if (status || what == NOTHING || what == LEFT_OVER)
            return status;
    }
    return PK_OK; /* whose turn it is, make_file says */
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

/* The file of an arena that outlives us; -1 and errno. */
static int make_file(const char *path)
{
    char temporary[PATH_MAX];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = pki_file_fresh(path, temporary, sizeof temporary);
    if (fd < 0)
        return -1;
    if (pki_mem_is_remote(fd)) {
        unlink(temporary);
        close(fd);
        errno = EXDEV;
        return -1;
    }
    (void)fcntl(fd, F_SETLK, &lock); /* before anybody can find it */
    if (claim_name(temporary, path))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* What the bound allows, or, when none was given, what the process may have. */
static pki_arena *make_arena(const pki_config *c, int fd)
{
    uint64_t bytes = c->memory_bytes ? c->memory_bytes : PKI_MEMORY_DEFAULT;
    pki_arena *arena = pki_arena_create(fd, bytes);
    while (!arena && !c->memory_bytes && errno != ENOSPC && bytes / 2 >= PKI_MEMORY_LEAST) {
        bytes /= 2;
        arena = pki_arena_create(fd, bytes);
    }
    return arena;
}

static pk_status memory_only(const pki_config *c, pki_place *place, pki_arena **arena)
{
    place->arena[0] = 0;
    int fd = pki_mem_file("perfkit");
    *arena = fd < 0 ? NULL : make_arena(c, fd);
    if (*arena)
        return PK_OK;
    int error = errno;
    if (fd >= 0)
        close(fd);
    return pki_fail(PK_ENOMEM, "recording memory: %s", strerror(error));
}

static pk_status in_file(const pki_config *c, pki_place *place, pki_arena **arena)
{
    int fd = -1;
    errno = EEXIST;
    for (int i = 0; i < ATTEMPTS && fd < 0 && errno == EEXIST; i++) {
        pk_status s = settle(c, place);
        if (s)
            return s;
        fd = make_file(place->arena);
    }
    if (fd < 0 && errno == EXDEV) {
        pki_log(
            PK_LOG_INFO,
            "%s would lie behind a network: the arena stays in memory and does not survive a kill",
            place->arena);
        return memory_only(c, place, arena);
    }
    *arena = fd < 0 ? NULL : make_arena(c, fd);
    if (*arena) {
        pki_place_anchor(place->arena);
        return PK_OK;
    }
    int error = errno;
    if (fd >= 0) {
        unlink(place->arena);
        close(fd);
    }
    return pki_fail(pki_status_of_errno(error), "arena %s: %s", place->arena, strerror(error));
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
    memcpy(place->trace, c->trace, sizeof place->trace);
    return memory_only(c, place, arena);
}

void pki_place_remove_arena(const pki_place *place)
{
    if (place->arena[0])
        unlink(place->arena);
}
