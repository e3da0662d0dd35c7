#include "live/arena_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool arena_file_read(int fd, uint64_t offset, void *to, size_t bytes)
{
    char *at = to;
    if (offset > INT64_MAX - bytes)
        return false;
    while (bytes > 0) {
        ssize_t n = pread(fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* the end of the file has come nearer */
            return false;
        at += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return true;
}

bool arena_file_recognise(int fd)
{
    char magic[sizeof PKI_ARENA_MAGIC];
    return arena_file_read(fd, 0, magic, sizeof magic) &&
           memcmp(magic, PKI_ARENA_MAGIC, sizeof magic) == 0;
}

/* What stands before its lists. */
#define FIXED offsetof(pki_arena_header, clock.segments)

static bool check(const pki_arena_header *h, uint64_t bytes, complaint *why)
{
    if (memcmp(h->magic, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC) != 0)
        return complaint_set(why, "not an arena of perfkit");
    if (h->version == 0 || h->layout == 0)
        return complaint_set(why, "its process has just begun, or ended within pk_start");
    if (h->version != PKI_ARENA_VERSION || h->layout != pki_arena_layout())
        return complaint_set(why, "an arena of another perfkit: use the pk of the version that "
                                  "wrote it");
    if (h->clock.count == 0)
        return complaint_set(why, "its process has just begun, or ended within pk_start");
    if (h->clock.count > PKI_CLOCK_SEGMENTS || h->block_count > PKI_BLOCKS_MAX ||
        h->names > bytes || h->comms > bytes)
        return complaint_set(why, "damaged: its header makes no sense");
    return true;
}

static void end_texts(pki_arena_header *h)
{
    h->host[sizeof h->host - 1] = 0;
    h->program[sizeof h->program - 1] = 0;
    h->trace_name[sizeof h->trace_name - 1] = 0;
}

static bool read_list(int fd, pki_arena_header *h, const void *list, size_t bytes)
{
    size_t offset = (size_t)((const char *)list - (const char *)h);
    return arena_file_read(fd, offset, (char *)h + offset, bytes);
}

/* As it was, should it turn out to make no sense. */
static bool read_fixed(int fd, uint64_t bytes, pki_arena_header *h, complaint *why)
{
    char before[FIXED];
    memcpy(before, h, FIXED);
    bool whole = bytes >= sizeof *h && arena_file_read(fd, 0, h, FIXED);
    if (!whole)
        complaint_set(why, "cut off: shorter than an arena's header");
    if (whole && check(h, bytes, why))
        return true;
    memcpy(h, before, FIXED);
    return false;
}

bool arena_file_header(int fd, uint64_t bytes, pki_arena_header *header, complaint *why)
{
    if (!arena_file_recognise(fd))
        return complaint_set(why, "not an arena of perfkit");
    if (!read_fixed(fd, bytes, header, why))
        return false;
    end_texts(header);
    const pki_clock_map *clock = &header->clock;
    if (!read_list(fd, header, &header->live, sizeof header->live) ||
        !read_list(fd, header, &header->hang, sizeof header->hang) ||
        !read_list(fd, header, &header->stragglers, sizeof header->stragglers) ||
        !read_list(fd, header, clock->segments, clock->count * sizeof *clock->segments) ||
        !read_list(fd, header, header->blocks, header->block_count * sizeof *header->blocks))
        return complaint_set(why, "cut off: shorter than an arena's header");
    header->hang.words[sizeof header->hang.words - 1] = 0;
    header->stragglers.words[sizeof header->stragglers.words - 1] = 0;
    return true;
}
