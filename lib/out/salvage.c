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

/* The bytes from there on; what is no longer in the file stays zero. */
static void read_extent(int fd, char *base, off_t at, off_t end)
{
    while (at < end) {
        ssize_t n = pread(fd, base + at, (size_t)(end - at), at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        at += n;
    }
}

/* Holes of the file stay holes. Where the file system does not tell them, all is read. */
static void read_extents(int fd, char *base, off_t bytes)
{
    for (off_t at = 0, end; at < bytes; at = end) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return;
        end = data < 0 ? bytes : lseek(fd, data, SEEK_HOLE);
        end = end > at && end < bytes ? end : bytes;
        read_extent(fd, base, data < 0 ? at : data, end);
    }
}

/* A copy: others may change the file meanwhile, or cut it off, which in a mapping of it would be a
 * value that is another one when it is read again, or a signal. */
static bool copy(pki_salvage *s, int fd)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return fail(s, "%s", strerror(errno));
    if (!S_ISREG(file.st_mode) || (size_t)file.st_size < sizeof(pki_arena_header))
        return fail(s, "not an arena of perfkit: too short");
    char *base = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return fail(s, "no memory");
    read_extents(fd, base, file.st_size);
    s->base = base;
    s->bytes = (size_t)file.st_size;
    s->header = (const pki_arena_header *)(const void *)base;
    return true;
}

static bool read_file(pki_salvage *s, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail(s, "%s", strerror(errno));
    bool done = copy(s, fd);
    close(fd);
    return done;
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
    if (!read_file(s, path) || !check_header(s) || !read_names(s))
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
