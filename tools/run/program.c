#include "run/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- the file that a shell would start ---- */

static bool is_regular(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

/* 0, 126 or 127 and errno. */
static int try_path(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return errno == EACCES ? 126 : 127;
    if (S_ISREG(s.st_mode) && access(path, X_OK) == 0)
        return 0;
    errno = S_ISDIR(s.st_mode) ? EISDIR : EACCES;
    return 126;
}

int program_take(const char *path, program *p)
{
    memset(p, 0, sizeof *p);
    if (snprintf(p->path, sizeof p->path, "%s", path) >= PATH_MAX)
        return errno = ENAMETOOLONG, 127;
    return try_path(p->path);
}

int program_find(const char *word, program *p)
{
    const char *folders = getenv("PATH"), *end;
    int status = 127, seen_errno = ENOENT;
    if (strchr(word, '/'))
        return program_take(word, p);
    memset(p, 0, sizeof *p);
    for (const char *at = folders ? folders : "/bin:/usr/bin"; *word; at = end + 1) {
        end = at + strcspn(at, ":");
        int n = snprintf(p->path, sizeof p->path, "%.*s%s%s", (int)(end - at), at,
                         end > at ? "/" : "./", word);
        int tried = n < PATH_MAX ? try_path(p->path) : 127;
        if (tried == 0)
            return 0;
        if (tried == 126 && is_regular(p->path))
            status = 126, seen_errno = errno;
        if (!*end)
            break;
    }
    errno = seen_errno;
    return status;
}

/* ---- a file in memory: each costs page faults, so only those whose tables are read ---- */

typedef struct image {
    const char *bytes;
    size_t size;
} image;

/* -1: there is no such file. */
static int open_file(const char *path, struct stat *s)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || (fstat(fd, s) == 0 && S_ISREG(s->st_mode)))
        return fd;
    close(fd);
    return -1;
}

/* What a file begins with, in `room`. */
static image read_head(const char *path, char *room, size_t size)
{
    struct stat s;
    int fd = open_file(path, &s);
    ssize_t n = fd >= 0 ? pread(fd, room, size, 0) : 0;
    if (fd >= 0)
        close(fd);
    return n > 0 ? (image){room, (size_t)n} : (image){NULL, 0};
}

static image map(const char *path)
{
    struct stat s;
    image i = {NULL, 0};
    int fd = open_file(path, &s);
    if (fd >= 0 && s.st_size > 0) {
        void *at = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED)
            i = (image){at, (size_t)s.st_size};
    }
    if (fd >= 0)
        close(fd);
    return i;
}

static void unmap(image i)
{
    if (i.bytes)
        munmap((void *)(uintptr_t)i.bytes, i.size);
}

static const void *at(image i, uint64_t offset, uint64_t size)
{
    return offset <= i.size && size <= i.size - offset ? i.bytes + offset : NULL;
}

/* A text at this place that ends within the file. */
static const char *text_at(image i, uint64_t offset)
{
    return offset < i.size && memchr(i.bytes + offset, 0, i.size - offset) ? i.bytes + offset
                                                                           : NULL;
}

/* ---- ELF files of this machine ---- */

typedef struct object {
    image file;
    const ElfW(Ehdr) * head;
    const ElfW(Phdr) * parts;
    const ElfW(Dyn) * entries;
    size_t entry_count;
    uint64_t texts; /* place of the dynamic section's texts in the file */
} object;

/* Of this very program's file: by that it is known what a native one is. */
static const unsigned char *own_identity(uint16_t *machine)
{
    static ElfW(Ehdr) own;
    if (!own.e_machine) /* EM_NONE: it cannot be read */
        read_head("/proc/self/exe", (char *)&own, sizeof own);
    *machine = own.e_machine;
    return own.e_ident;
}

static bool is_elf(image i)
{
    return at(i, 0, EI_NIDENT) && memcmp(i.bytes, ELFMAG, SELFMAG) == 0;
}

static bool is_native(image i)
{
    uint16_t machine;
    const unsigned char *own = own_identity(&machine);
    const ElfW(Ehdr) *head = at(i, 0, sizeof *head);
    return head && memcmp(head->e_ident, own, EI_VERSION) == 0 && head->e_machine == machine;
}

static const ElfW(Phdr) * part_of(const object *o, uint32_t type)
{
    for (unsigned n = 0; n < o->head->e_phnum; n++)
        if (o->parts[n].p_type == type)
            return &o->parts[n];
    return NULL;
}

/* As the loader maps it. */
static uint64_t bytes_of(const object *o)
{
    uint64_t first = UINT64_MAX, end = 0;
    for (unsigned n = 0; n < o->head->e_phnum; n++) {
        const ElfW(Phdr) *part = &o->parts[n];
        if (part->p_type != PT_LOAD)
            continue;
        first = part->p_vaddr < first ? part->p_vaddr : first;
        end = part->p_vaddr + part->p_memsz > end ? part->p_vaddr + part->p_memsz : end;
    }
    return end > first ? end - first : 0;
}

/* Where in the file an address of memory is; UINT64_MAX: not there. */
static uint64_t place_of(const object *o, uint64_t address)
{
    for (unsigned n = 0; n < o->head->e_phnum; n++) {
        const ElfW(Phdr) *part = &o->parts[n];
        if (part->p_type == PT_LOAD && address >= part->p_vaddr &&
            address - part->p_vaddr < part->p_filesz)
            return part->p_offset + (address - part->p_vaddr);
    }
    return UINT64_MAX;
}

static uint64_t value_of(const object *o, int64_t tag)
{
    for (size_t n = 0; n < o->entry_count && o->entries[n].d_tag != DT_NULL; n++)
        if (o->entries[n].d_tag == tag)
            return o->entries[n].d_un.d_val;
    return UINT64_MAX;
}

static const char *text_of(const object *o, uint64_t offset)
{
    return offset == UINT64_MAX || o->texts == UINT64_MAX ? NULL
                                                          : text_at(o->file, o->texts + offset);
}

/* False: the file is none of this machine's. */
static bool open_object(const char *path, object *o)
{
    *o = (object){.file = map(path)};
    if (o->file.bytes && is_elf(o->file) && is_native(o->file)) {
        o->head = at(o->file, 0, sizeof *o->head);
        o->parts = at(o->file, o->head->e_phoff, (uint64_t)o->head->e_phnum * sizeof *o->parts);
    }
    if (!o->parts)
        return unmap(o->file), false;
    const ElfW(Phdr) *dynamic = part_of(o, PT_DYNAMIC);
    o->entries = dynamic ? at(o->file, dynamic->p_offset, dynamic->p_filesz) : NULL;
    o->entry_count = o->entries ? dynamic->p_filesz / sizeof *o->entries : 0;
    o->texts = place_of(o, value_of(o, DT_STRTAB));
    return true;
}

/* perfkit's note: each of its libraries, and a program linked with one of the static ones, has it
 * (lib/session/copies.c). */
static bool has_perfkit(const object *o)
{
    static const char owner[] = "perfkit";
    for (unsigned n = 0; n < o->head->e_phnum; n++) {
        const ElfW(Phdr) *part = &o->parts[n];
        const char *notes =
            part->p_type == PT_NOTE ? at(o->file, part->p_offset, part->p_filesz) : NULL;
        if (notes && memmem(notes, part->p_filesz, owner, sizeof owner))
            return true;
    }
    return false;
}

/* ---- where a library lies that is needed by its name ---- */

/* The loader's cache, as ldconfig writes it since glibc 2.2: a head, entries, texts; places are
 * counted from the head on, behind which an older table may stand before it. */

typedef struct cache_head {
    char magic[20]; /* glibc-ld.so.cache1.1 */
    uint32_t entries, text_bytes, more[5];
} cache_head;

typedef struct cache_entry {
    int32_t flags;
    uint32_t name, path, system;
    uint64_t capabilities;
} cache_entry;

_Static_assert(sizeof(cache_head) == 48 && sizeof(cache_entry) == 24, "as ldconfig writes them");

static bool is_object(const char *path)
{
    ElfW(Ehdr) head;
    image i = read_head(path, (char *)&head, sizeof head);
    return is_elf(i) && is_native(i);
}

static bool find_in_cache(const char *name, char path[PATH_MAX])
{
    static image whole;
    static bool looked;
    if (!looked)
        whole = map("/etc/ld.so.cache");
    looked = true;
    const char *start =
        whole.bytes ? memmem(whole.bytes, whole.size, "glibc-ld.so.cache1.1", 20) : NULL;
    if (!start)
        return false;
    image table = {start, whole.size - (size_t)(start - whole.bytes)};
    const cache_head *head = at(table, 0, sizeof *head);
    const cache_entry *e = head ? at(table, sizeof *head, head->entries * sizeof *e) : NULL;
    for (uint32_t n = 0; e && n < head->entries; n++) {
        const char *key = text_at(table, e[n].name), *file = text_at(table, e[n].path);
        if (key && file && strcmp(key, name) == 0 && is_object(file))
            return snprintf(path, PATH_MAX, "%s", file) < PATH_MAX;
    }
    return false;
}

/* A folder of a list, with $ORIGIN in it. */
static bool find_in_folder(const char *folder, size_t n, const char *origin, const char *name,
                           char path[PATH_MAX])
{
    static const char *const words[] = {"$ORIGIN", "${ORIGIN}"};
    char start[PATH_MAX] = "";
    for (size_t w = 0; w < 2; w++) {
        size_t length = strlen(words[w]);
        if (n >= length && strncmp(folder, words[w], length) == 0) {
            snprintf(start, sizeof start, "%.*s", (int)(strrchr(origin, '/') - origin), origin);
            folder += length;
            n -= length;
            break;
        }
    }
    return snprintf(path, PATH_MAX, "%s%.*s/%s", start, (int)n, folder, name) < PATH_MAX &&
           is_object(path);
}

static bool find_in_list(const char *list, const char *origin, const char *name,
                         char path[PATH_MAX])
{
    for (const char *end; list && *list; list = *end ? end + 1 : end) {
        end = list + strcspn(list, ":;");
        if (end > list && find_in_folder(list, (size_t)(end - list), origin, name, path))
            return true;
    }
    return false;
}

/* In the order of ld.so(8). Of who needs it the path is `origin`, and of the program `first`. */
static bool find_library(const object *o, const char *origin, const char *first_path,
                         const char *first, const char *name, char path[PATH_MAX])
{
    const char *runpath = text_of(o, value_of(o, DT_RUNPATH));
    if (strchr(name, '/'))
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && is_object(path);
    return (!runpath && find_in_list(text_of(o, value_of(o, DT_RPATH)), origin, name, path)) ||
           (!runpath && find_in_list(first_path, first, name, path)) ||
           find_in_list(getenv("LD_LIBRARY_PATH"), origin, name, path) ||
           find_in_list(runpath, origin, name, path) || find_in_cache(name, path) ||
           find_in_list("/lib64:/usr/lib64:/lib:/usr/lib", origin, name, path);
}

/* ---- all libraries that a program needs ---- */

#define LIBRARIES 1024

typedef struct library {
    char *name, *path;
} library;

typedef struct looking {
    program *p;
    library all[LIBRARIES];
    size_t count;
    const char *first_path; /* DT_RPATH of the program, which holds for what it needs, too */
    bool open_pal, mpi, mpich;
} looking;

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* By their files' names: MPI, and what an Open MPI of any name needs and no other one has. */
static void take_name(looking *l, const char *name, const char *path)
{
    program *p = l->p;
    bool mpich = begins(name, "libmpich") || begins(name, "libmpi_cray") ||
                 begins(name, "libmpi_gnu") || begins(name, "libmpi.so.12") ||
                 begins(name, "libmpi_intel") || begins(name, "libmpi_nvidia");
    bool mpi = mpich || begins(name, "libmpi.so") || begins(name, "libmpi_ibm.so") ||
               begins(name, "libmpi_abi.so") || begins(name, "libmsmpi");
    if (!strstr(name, ".so"))
        return;
    l->open_pal |= begins(name, "libopen-pal.so") || begins(name, "libopen-rte.so");
    l->mpich |= mpich;
    l->mpi |= mpi;
    if (mpi && !p->mpi_library[0])
        snprintf(p->mpi_library, sizeof p->mpi_library, "%.255s", path);
}

static void add(looking *l, const object *o, const char *origin, const char *name)
{
    char path[PATH_MAX];
    for (size_t n = 0; n < l->count; n++)
        if (strcmp(l->all[n].name, name) == 0)
            return;
    bool found =
        l->count < LIBRARIES && find_library(o, origin, l->first_path, l->p->binary, name, path);
    if (!found)
        return;
    library *next = &l->all[l->count];
    *next = (library){strdup(name), strdup(path)};
    if (!next->name || !next->path) {
        free(next->name);
        free(next->path);
        return;
    }
    l->count++;
    const char *last = strrchr(name, '/');
    take_name(l, last ? last + 1 : name, path);
}

static void add_needed(looking *l, const object *o, const char *origin)
{
    for (size_t n = 0; n < o->entry_count && o->entries[n].d_tag != DT_NULL; n++) {
        const char *name =
            o->entries[n].d_tag == DT_NEEDED ? text_of(o, o->entries[n].d_un.d_val) : NULL;
        if (name)
            add(l, o, origin, name);
    }
    if (l->p->bar == PROGRAM_OPEN && has_perfkit(o)) {
        l->p->bar = PROGRAM_USES;
        snprintf(l->p->detail, sizeof l->p->detail, "%.255s", origin);
    }
}

static void add_preloaded(looking *l, const object *o, const char *list)
{
    char name[PATH_MAX];
    for (const char *end; list && *list; list = *end ? end + 1 : end) {
        end = list + strcspn(list, " :");
        if (end > list && snprintf(name, sizeof name, "%.*s", (int)(end - list), list) < PATH_MAX)
            add(l, o, l->p->binary, name);
    }
}

static void look_at_libraries(program *p, const object *o, const char *preloaded)
{
    looking *l = calloc(1, sizeof *l);
    object each;
    if (!l)
        return;
    l->p = p;
    if (value_of(o, DT_RUNPATH) == UINT64_MAX)
        l->first_path = text_of(o, value_of(o, DT_RPATH));
    p->bytes = bytes_of(o);
    add_needed(l, o, p->binary);
    add_preloaded(l, o, preloaded);
    for (size_t n = 0; n < l->count; n++) {
        if (open_object(l->all[n].path, &each)) {
            add_needed(l, &each, l->all[n].path);
            p->bytes += bytes_of(&each);
            unmap(each.file);
        }
    }
    if (l->mpi)
        p->mpi = l->open_pal && !begins(p->mpi_library, "libmpich") ? MPI_OPEN
                 : l->mpich                                         ? MPI_MPICH
                                                                    : MPI_STRANGE;
    for (size_t n = 0; n < l->count; n++) {
        free(l->all[n].name);
        free(l->all[n].path);
    }
    free(l);
}

/* ---- a program ---- */

/* The program behind "#!", in out. False: it is none. */
static bool read_script(image i, char out[PATH_MAX])
{
    if (!at(i, 0, 2) || memcmp(i.bytes, "#!", 2) != 0)
        return false;
    size_t from = 2;
    while (from < i.size && (i.bytes[from] == ' ' || i.bytes[from] == '\t'))
        from++;
    size_t end = from;
    while (end < i.size && !memchr(" \t\r\n", i.bytes[end], 4))
        end++;
    return end > from &&
           snprintf(out, PATH_MAX, "%.*s", (int)(end - from), i.bytes + from) < PATH_MAX;
}

/* As shells see it: no 0 among the first bytes. */
static bool is_text(image i)
{
    return !i.bytes || !memchr(i.bytes, 0, i.size < 128 ? i.size : 128);
}

/* The ELF file behind the path; scripts' interpreters may be scripts. */
static void find_binary(program *p)
{
    char next[PATH_MAX], head[PATH_MAX + 64];
    if (!realpath(p->path, p->binary))
        memcpy(p->binary, p->path, sizeof p->binary);
    for (int depth = 0; depth < 5; depth++) {
        image i = read_head(p->binary, head, sizeof head);
        bool script = i.bytes && read_script(i, next);
        bool headless = !script && is_text(i);
        p->headless |= headless;
        if (headless)
            snprintf(next, sizeof next, "/bin/sh");
        if ((!script && !headless) || !realpath(next, p->binary))
            return;
    }
}

static bool is_privileged(const char *path)
{
    struct stat s;
    char value[64];
    if (stat(path, &s) != 0)
        return false;
    return ((s.st_mode & S_ISUID) && s.st_uid != getuid()) ||
           ((s.st_mode & S_ISGID) && s.st_gid != getgid()) ||
           getxattr(path, "security.capability", value, sizeof value) > 0;
}

static program_bar bar_of(program *p, const object *o)
{
    const ElfW(Phdr) *loader = part_of(o, PT_INTERP);
    const char *name = loader ? text_at(o->file, loader->p_offset) : NULL;
    if (!name)
        return PROGRAM_STATIC;
    const char *last = strrchr(name, '/');
    snprintf(p->detail, sizeof p->detail, "%.255s", name);
    if (!begins(last ? last + 1 : name, "ld-linux") && !begins(last ? last + 1 : name, "ld64") &&
        !begins(last ? last + 1 : name, "ld.so"))
        return PROGRAM_MUSL;
    return is_privileged(p->binary) ? PROGRAM_PRIVILEGED : PROGRAM_OPEN;
}

void program_look(program *p, const char *preloaded)
{
    object o;
    ElfW(Ehdr) head;
    uint16_t machine;
    find_binary(p);
    image i = read_head(p->binary, (char *)&head, sizeof head);
    bool elf = is_elf(i), native = elf && is_native(i);
    if (!native || !open_object(p->binary, &o)) {
        own_identity(&machine);
        p->bar = !elf ? PROGRAM_STRANGE : machine == EM_NONE ? PROGRAM_UNKNOWN : PROGRAM_FOREIGN;
        return;
    }
    p->bar = bar_of(p, &o);
    if (p->bar == PROGRAM_OPEN)
        look_at_libraries(p, &o, preloaded);
    unmap(o.file);
}
