#include "out/salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/registry.h"
#include "out/file.h"

static bool fail(pki_salvage *s, const char *format, ...) PKI_PRINTF(2, 3);

static bool fail(pki_salvage *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->why, sizeof s->why, format, args);
    va_end(args);
    pki_salvage_close(s);
    return false;
}

/* ---- opening ---- */

static bool map(pki_salvage *s, const char *path)
{
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &file) != 0) {
        if (fd >= 0)
            close(fd);
        return fail(s, "%s", strerror(errno));
    }
    void *base = MAP_FAILED;
    if (S_ISREG(file.st_mode) && (size_t)file.st_size >= sizeof(pki_arena_header))
        base = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (base == MAP_FAILED)
        return fail(s, "not an arena of perfkit: too short");
    s->base = base;
    s->bytes = (size_t)file.st_size;
    s->header = base;
    return true;
}

/* In the order in which pk_start fills it in. */
static bool is_unfinished(const pki_arena_header *h)
{
    if (h->version == 0 || h->layout == 0)
        return true;
    bool ours = h->version == PKI_ARENA_VERSION && h->layout == pki_arena_layout();
    bool headless = h->trace_name[0] && h->commit[h->generation & 1].file_bytes == 0;
    return ours && (h->clock.count == 0 || headless);
}

static bool check_header(pki_salvage *s)
{
    const pki_arena_header *h = s->header;
    if (memcmp(h->magic, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC) != 0)
        return fail(s, "not an arena of perfkit");
    if (is_unfinished(h))
        return fail(s, "%s", PKI_SALVAGE_UNFINISHED);
    if (h->version != PKI_ARENA_VERSION || h->layout != pki_arena_layout())
        return fail(s, "an arena of another perfkit: use the pk of the version that wrote it");
    if (h->block_count > PKI_BLOCKS_MAX || h->clock.count == 0 ||
        h->clock.count > PKI_CLOCK_SEGMENTS)
        return fail(s, "damaged: its header makes no sense");
    return true;
}

static bool entry_is_whole(const pki_names_entry *e, uint64_t left)
{
    return left >= sizeof *e && e->bytes >= sizeof *e && e->bytes <= left && e->bytes % 8 == 0 &&
           e->id < PKI_NAMES_MAX && sizeof *e + e->length + e->key_length <= e->bytes &&
           e->length <= PKI_NAME_BYTES && e->key_length <= PKI_NAME_BYTES &&
           !memchr(e->text, 0, e->length + (size_t)e->key_length); /* names have none */
}

static void read_names_span(pki_salvage *s, const pki_names_span *span)
{
    const char *p = (const char *)(span + 1);
    uint64_t left = PKI_MIN(span->used, PKI_NAMES_SPAN_BYTES - sizeof *span);
    while (left > 0) {
        const pki_names_entry *e = (const pki_names_entry *)p;
        if (!entry_is_whole(e, left))
            return;
        s->names[e->id] = e;
        p += e->bytes;
        left -= e->bytes;
    }
}

static bool read_names(pki_salvage *s)
{
    s->names = calloc(PKI_NAMES_MAX, sizeof *s->names);
    if (!s->names)
        return fail(s, "no memory");
    uint64_t offset = s->header->names;
    for (unsigned i = 0; offset && i < PKI_NAMES_MAX;
         i++) { /* a damaged list may go round in circles */
        const pki_names_span *span =
            offset % 8 == 0 ? pki_salvage_at(s, offset, PKI_NAMES_SPAN_BYTES) : NULL;
        if (!span)
            break;
        read_names_span(s, span);
        offset = span->next;
    }
    return true;
}

static pki_chrome_name name_of(void *user, uint32_t id)
{
    const pki_salvage *s = user;
    const pki_names_entry *e = id < PKI_NAMES_MAX ? s->names[id] : NULL;
    if (!e)
        return (pki_chrome_name){.name = "(unknown)", .key = "", .length = 9, .kind = UINT32_MAX};
    return (pki_chrome_name){e->text, e->text + e->length, e->length, e->key_length, e->kind,
                             e->value};
}

bool pki_salvage_open(pki_salvage *s, const char *path)
{
    memset(s, 0, sizeof *s);
    if (!map(s, path) || !check_header(s) || !read_names(s))
        return false;
    s->generation = s->header->generation & 1;
    s->commit = s->header->commit[s->generation];
    s->counts = s->header->ended;
    s->counts.steps = s->header->steps;
    pki_chrome_init(&s->chrome, &s->header->clock, s->header->pid, name_of, s);
    pki_chrome_set_rank(&s->chrome, s->header->rank, s->header->world_size);
    return true;
}

void pki_salvage_close(pki_salvage *s)
{
    pki_chrome_finish(&s->chrome);
    free(s->names);
    if (s->base)
        munmap((void *)(uintptr_t)s->base, s->bytes);
    s->names = NULL;
    s->base = NULL;
}

int pki_salvage_writer(const char *path)
{
    if (!pki_file_is_locked(path))
        return 0;
    uint32_t pid = pki_arena_pid(path);
    return pid ? (int)pid : -1;
}

const char *pki_salvage_buffer(const pki_salvage *s, size_t *bytes)
{
    bool sound = s->commit.buffered <= s->header->output_bytes;
    const char *buffer = sound ? pki_salvage_at(s, s->header->output, s->commit.buffered) : NULL;
    *bytes = buffer ? (size_t)s->commit.buffered : 0;
    return buffer;
}
