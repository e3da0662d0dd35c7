#include "session/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "out/file.h"

static bool join(char *out, const char *a, const char *b)
{
    return snprintf(out, PATH_MAX, "%s%s", a, b) < PATH_MAX;
}

/* The process that holds the arena file at path, 0 if none does, -1 if there is no file. */
static pid_t holder(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    bool known = fcntl(fd, F_GETLK, &lock) == 0;
    close(fd);
    return !known || lock.l_type == F_UNLCK ? 0 : lock.l_pid > 0 ? lock.l_pid : 1;
}

/* run.json, run.json.arena -> run.json.prev, run.json.prev.arena: the pair that `pk recover`
 * expects. */
static void keep_previous(const pki_place *place)
{
    char trace[PATH_MAX], arena[PATH_MAX];
    if (!join(trace, place->trace, ".prev") || !join(arena, trace, ".arena"))
        return;
    if (rename(place->arena, arena) == 0 && (rename(place->trace, trace) == 0 || errno == ENOENT))
        pki_log(PK_LOG_WARNING,
                "%s is of a run that was killed: kept as %s; pk recover %s makes it whole",
                place->trace, trace, arena);
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

/* A path that nobody else is writing to at this moment. */
static pk_status settle(const pki_config *c, pki_place *place)
{
    memcpy(place->trace, c->trace, sizeof place->trace);
    if (!name_arena(c, place))
        return pki_fail(PK_EINVAL, "trace_path is longer than a path can be");
    pid_t pid = holder(place->arena);
    if (pid > 0) {
        if (!with_pid(place->trace, c->world.pid) || !name_arena(c, place) || c->arena[0])
            return pki_fail(PK_EACCES, "%s is in use by process %d", place->arena, (int)pid);
        pki_log(PK_LOG_WARNING,
                "process %d writes %s: this one writes %s (use %%r or %%p in trace_path)", (int)pid,
                c->trace, place->trace);
    } else if (pid == 0) {
        keep_previous(place);
    }
    return PK_OK;
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
    (void)fcntl(fd, F_SETLK,
                &lock); /* where locks do not work, two writers of one name are not noticed */
    if (pki_file_publish(temporary, path))
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
    pk_status s = settle(c, place);
    if (s)
        return s;
    int fd = make_file(place->arena);
    if (fd < 0 && errno == EXDEV) {
        pki_log(
            PK_LOG_INFO,
            "%s would lie behind a network: the arena stays in memory and does not survive a kill",
            place->arena);
        return memory_only(c, place, arena);
    }
    *arena = fd < 0 ? NULL : make_arena(c, fd);
    if (*arena)
        return PK_OK;
    int error = errno;
    if (fd >= 0) {
        unlink(place->arena);
        close(fd);
    }
    return pki_fail(pki_status_of_errno(error), "arena %s: %s", place->arena, strerror(error));
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
