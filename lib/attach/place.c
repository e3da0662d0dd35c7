#include "attach/attach.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a file's table of symbols, static functions among them: what the loader does not map ---- */

typedef struct file {
    const char *bytes;
    size_t size;
} file;

static const void *part(file f, uint64_t offset, uint64_t size)
{
    return offset <= f.size && size <= f.size - offset ? f.bytes + offset : NULL;
}

/* NULL: the file does not tell. offset: of the address from there. */
static const char *search_table(file f, const ElfW(Shdr) * table, const ElfW(Shdr) * texts,
                                uint64_t address, uint64_t *offset)
{
    const ElfW(Sym) *all = part(f, table->sh_offset, table->sh_size);
    const char *names = part(f, texts->sh_offset, texts->sh_size);
    for (size_t i = 0; all && names && i < table->sh_size / sizeof *all; i++) {
        const ElfW(Sym) *s = &all[i];
        if ((s->st_info & 15) == STT_FUNC && address >= s->st_value &&
            address - s->st_value < s->st_size && s->st_name < texts->sh_size &&
            memchr(names + s->st_name, 0, texts->sh_size - s->st_name)) {
            *offset = address - s->st_value;
            return names + s->st_name;
        }
    }
    return NULL;
}

static const char *search_file(file f, uintptr_t code, uintptr_t base, uint64_t *offset)
{
    const ElfW(Ehdr) *head = part(f, 0, sizeof *head);
    const ElfW(Shdr) *sections =
        head ? part(f, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections) : NULL;
    const char *found = NULL;
    if (!sections || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        return NULL;
    uint64_t address = head->e_type == ET_DYN ? code - base : code;
    for (unsigned i = 0; i < head->e_shnum && !found; i++)
        if (sections[i].sh_type == SHT_SYMTAB && sections[i].sh_link < head->e_shnum)
            found = search_table(f, &sections[i], &sections[sections[i].sh_link], address, offset);
    return found;
}

static bool name_by_file(const Dl_info *info, const void *code, char *out, size_t size)
{
    struct stat s;
    uint64_t offset = 0;
    bool named = false;
    const char *last = strrchr(info->dli_fname, '/');
    int fd = open(last ? info->dli_fname : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &s) != 0 || s.st_size <= 0)
        return fd >= 0 && close(fd) && false;
    void *bytes = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    const char *name = search_file((file){bytes, (size_t)s.st_size}, (uintptr_t)code,
                                   (uintptr_t)info->dli_fbase, &offset);
    if (name)
        named =
            snprintf(out, size, offset ? "%s+0x%llx" : "%s", name, (unsigned long long)offset) > 0;
    munmap(bytes, (size_t)s.st_size);
    return named;
}

const char *pki_attach_place(const void *code, char *out, size_t size)
{
    Dl_info info;
    if (!dladdr(code, &info) || !info.dli_fname) {
        snprintf(out, size, "%p", code);
        return out;
    }
    if (name_by_file(&info, code, out, size))
        return out;
    const char *last = strrchr(info.dli_fname, '/');
    const char *object = last ? last + 1 : info.dli_fname;
    const void *from = info.dli_sname ? info.dli_saddr : info.dli_fbase;
    snprintf(out, size, "%s+0x%llx", info.dli_sname ? info.dli_sname : object,
             (unsigned long long)((uintptr_t)code - (uintptr_t)from));
    return out;
}
