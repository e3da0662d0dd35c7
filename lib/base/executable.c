#include "base/executable.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

#define SECTIONS_MOST 1024
#define CONTENT_MOST 1024
#define SECTIONS_AT_ONCE 32u
#define NAMES_AT_ONCE 1024u

typedef ElfW(Ehdr) header;
typedef ElfW(Shdr) section;
typedef ElfW(Nhdr) note;

static bool read_at(int fd, void *out, size_t size, uint64_t at)
{
    return at < INT64_MAX && pread(fd, out, size, (off_t)at) == (ssize_t)size;
}

static bool read_header(int fd, header *h)
{
    return read_at(fd, h, sizeof *h, 0) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
           h->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           h->e_shentsize == sizeof(section) && h->e_shnum <= SECTIONS_MOST;
}

/* What is read of it lies together, so a few reads do. */
typedef struct file {
    int fd;
    header header;
    section sections[SECTIONS_AT_ONCE];
    unsigned first, count; /* of those */
    section names;
    char text[NAMES_AT_ONCE]; /* the names' beginning */
    size_t length;
} file;

static const section *section_at(file *f, unsigned i)
{
    if (i >= f->header.e_shnum)
        return NULL;
    if (i < f->first || i >= f->first + f->count) {
        f->first = i;
        f->count = PKI_MIN(SECTIONS_AT_ONCE, f->header.e_shnum - i);
        if (!read_at(f->fd, f->sections, f->count * sizeof(section),
                     f->header.e_shoff + (uint64_t)i * sizeof(section)))
            f->count = 0;
    }
    return f->count ? &f->sections[i - f->first] : NULL;
}

static bool read_names(file *f)
{
    const section *names = section_at(f, f->header.e_shstrndx);
    if (!names)
        return false;
    f->names = *names;
    f->length = PKI_MIN((size_t)names->sh_size, sizeof f->text);
    if (!read_at(f->fd, f->text, f->length, names->sh_offset))
        f->length = 0;
    return true;
}

/* A name as far as it is needed to tell it. */
static bool is_named(const file *f, const section *s, const char *name)
{
    char found[24] = "";
    size_t n = strlen(name) + 1;
    if (s->sh_name < f->length && n <= f->length - s->sh_name)
        return memcmp(f->text + s->sh_name, name, n) == 0;
    return s->sh_name < f->names.sh_size &&
           read_at(f->fd, found, n, f->names.sh_offset + s->sh_name) && memcmp(found, name, n) == 0;
}

static void read_build_id(const char *content, size_t size, pki_executable *e)
{
    note n;
    if (size < sizeof n)
        return;
    memcpy(&n, content, sizeof n);
    size_t name = (n.n_namesz + 3u) & ~(size_t)3, most = (sizeof e->build_id - 1) / 2;
    if (n.n_type != NT_GNU_BUILD_ID || n.n_namesz > size || sizeof n + name >= size)
        return;
    const unsigned char *id = (const unsigned char *)content + sizeof n + name;
    size_t length = PKI_MIN(PKI_MIN((size_t)n.n_descsz, size - sizeof n - name), most);
    for (size_t i = 0; i < length; i++)
        snprintf(e->build_id + 2 * i, 3, "%02x", id[i]);
}

/* Texts with a 0 behind each; of each the first time. */
static void read_comment(const char *content, size_t size, pki_executable *e)
{
    for (size_t at = 0; at < size; at += strnlen(content + at, size - at) + 1) {
        const char *text = content + at;
        size_t used = strlen(e->compiler), n = strnlen(text, size - at);
        if (n == 0 || n + 3 > sizeof e->compiler - used || memmem(e->compiler, used, text, n))
            continue;
        snprintf(e->compiler + used, sizeof e->compiler - used, "%s%.*s", used ? "; " : "", (int)n,
                 text);
    }
}

static void read_sections(file *f, pki_executable *e)
{
    const section *s;
    char content[CONTENT_MOST];
    if (!read_names(f))
        return;
    for (unsigned i = 0; (s = section_at(f, i)); i++) {
        size_t size = PKI_MIN((size_t)s->sh_size, sizeof content);
        bool comment = s->sh_type == SHT_PROGBITS && is_named(f, s, ".comment");
        bool id = s->sh_type == SHT_NOTE && is_named(f, s, ".note.gnu.build-id");
        if ((!comment && !id) || !read_at(f->fd, content, size, s->sh_offset))
            continue;
        if (comment)
            read_comment(content, size, e);
        else
            read_build_id(content, size, e);
    }
}

void pki_executable_read(const char *path, pki_executable *e)
{
    file f = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    memset(e, 0, sizeof *e);
    if (f.fd < 0)
        return;
    if (read_header(f.fd, &f.header))
        read_sections(&f, e);
    close(f.fd);
}
