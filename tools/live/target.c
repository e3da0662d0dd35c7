#include "live/target.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live/arena_file.h"

/* ---- reading ---- */

bool target_read(const target *t, uint64_t offset, void *to, size_t bytes)
{
    if (offset > t->bytes || bytes > t->bytes - offset)
        return false;
    return arena_file_read(t->fd, offset, to, bytes);
}

/* Is the file still locked by the one that writes it? A memory file has no lock, and needs none. */
static bool is_written(const target *t)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(t->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static target_state state_of(const target *t)
{
    bool there = t->in_memory ? t->process_state != 0 : is_written(t);
    if (!t->header->running)
        return TARGET_ENDED;
    if (!there)
        return TARGET_GONE;
    return t->process_state == 'T' || t->process_state == 't' ? TARGET_STOPPED : TARGET_RUNNING;
}

bool target_refresh(target *t)
{
    struct stat file;
    complaint why = {""};
    if (fstat(t->fd, &file) != 0 || file.st_size < 0)
        return false;
    t->bytes = (uint64_t)file.st_size;
    bool sound = arena_file_header(t->fd, t->bytes, t->header, &why);
    t->process_state = process_state(&t->process);
    t->state = state_of(t);
    return sound;
}

int target_reopen(const target *t, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", t->fd);
    return open(path, flags | O_CLOEXEC);
}

uint64_t target_now_ns(const target *t)
{
    const pki_clock_map *clock = &t->header->clock;
    uint64_t now = pki_monotonic_ns();
    bool alive = t->state == TARGET_RUNNING || t->state == TARGET_STOPPED;
    if (alive && now > clock->origin_ns)
        return now - clock->origin_ns;
    uint64_t checked = clock->last.ns > clock->origin_ns ? clock->last.ns - clock->origin_ns : 0;
    uint64_t taken = pki_clock_ns(clock, t->header->commit[t->header->generation & 1].ticks);
    return PKI_MAX(checked, taken);
}

/* ---- words ---- */

const char *target_state_text(target_state state)
{
    static const char *const texts[] = {"running", "stopped", "gone", "ended"};
    return (size_t)state < PKI_COUNT_OF(texts) ? texts[state] : "?";
}

void target_describe(const target *t, char text[TARGET_TEXT])
{
    const pki_arena_header *h = t->header;
    char rank[32] = "";
    if (h->world_size > 0)
        snprintf(rank, sizeof rank, "rank %d, ", h->rank);
    snprintf(text, TARGET_TEXT, "%spid %u on %.*s (%.*s)", rank,
             t->process.pid ? (unsigned)t->process.pid : h->pid,
             (int)strnlen(h->host, sizeof h->host), h->host,
             (int)strnlen(h->program, sizeof h->program), h->program);
    for (char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
}
