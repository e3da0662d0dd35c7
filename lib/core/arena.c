#include "core/arena.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "core/record.h"
#include "core/thread.h"

uint32_t pki_arena_layout(void)
{
    uint32_t h = 17;
    const size_t sizes[] = {
        sizeof(pki_arena_header),     sizeof(pki_thread), sizeof(pki_slot),       sizeof(pki_frame),
        sizeof(pki_record),           sizeof(void *),     sizeof(pki_comms_span), sizeof(pki_toll),
        offsetof(pki_thread, frames), sizeof(pki_commit), sizeof(pki_answer)};
    for (size_t i = 0; i < PKI_COUNT_OF(sizes); i++)
        h = h * 31 + (uint32_t)sizes[i];
    return h;
}

pki_arena *pki_arena_create(const pki_owned *file, size_t bytes)
{
    pki_arena *arena = pki_mem_private(sizeof *arena);
    if (!arena)
        return NULL;
    if (!pki_spans_map(&arena->spans, file, bytes, sizeof(pki_arena_header),
                       offsetof(pki_arena_header, used))) {
        pki_mem_unmap(arena, sizeof *arena);
        return NULL;
    }
    pki_arena_header *h = arena->header = (pki_arena_header *)(void *)arena->spans.start;
    memcpy(h->magic, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC);
    h->version = PKI_ARENA_VERSION;
    h->layout = pki_arena_layout();
    h->bytes = arena->spans.bytes;
    h->base = (uint64_t)(uintptr_t)h;
    return arena;
}

uint32_t pki_arena_pid(const char *path)
{
    struct stat file;
    char head[offsetof(pki_arena_header, pid) + sizeof(uint32_t)];
    uint32_t pid = 0;
    int fd = lstat(path, &file) == 0 && S_ISREG(file.st_mode) ? pki_fd_open(path, O_RDONLY, 0) : -1;
    if (fd < 0)
        return 0;
    if (pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
        memcmp(head, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC) == 0)
        memcpy(&pid, head + offsetof(pki_arena_header, pid), sizeof pid);
    close(fd);
    return pid;
}

void pki_arena_destroy(pki_arena *arena)
{
    if (!arena)
        return;
    pki_spans_unmap(&arena->spans);
    pki_mem_unmap(arena, sizeof *arena);
}

static bool add_names_span(pki_arena *arena)
{
    pki_names_span *span = pki_arena_claim(arena, PKI_NAMES_SPAN_BYTES);
    if (!span)
        return false;
    uint64_t offset = pki_arena_offset(arena, span);
    if (arena->last_names)
        pki_store_release(&arena->last_names->next, offset);
    else
        pki_store_release(&arena->header->names, offset);
    arena->last_names = span;
    return true;
}

static bool room_for(const pki_names_span *span, size_t bytes)
{
    return span && sizeof *span + span->used + bytes <= PKI_NAMES_SPAN_BYTES;
}

bool pki_arena_mirror_name(pki_arena *arena, uint32_t id)
{
    uint64_t *word = &arena->mirrored[id / 64], bit = (uint64_t)1 << (id % 64);
    const pki_name *n = pki_name_at(id);
    if (*word & bit)
        return true;
    size_t bytes = (sizeof(pki_names_entry) + n->length + n->key_length + 7u) & ~(size_t)7;
    if (!room_for(arena->last_names, bytes) && !add_names_span(arena))
        return false;
    pki_names_span *span = arena->last_names;
    pki_names_entry *e = (pki_names_entry *)((char *)(span + 1) + span->used);
    *e = (pki_names_entry){.id = n->id,
                           .kind = n->kind,
                           .bytes = (uint16_t)bytes,
                           .length = n->length,
                           .key_length = n->key_length,
                           .value = n->value};
    memcpy(e->text, n->name, n->length);
    if (n->key_length)
        memcpy(e->text + n->length, n->key, n->key_length);
    pki_store_release(&span->used, span->used + bytes);
    *word |= bit;
    return true;
}
