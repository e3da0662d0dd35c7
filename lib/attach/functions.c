/* lib/attach/functions.c - functions of the program: their names, and calls of those that were
 * compiled with -finstrument-functions
 *
 * gcc and clang call the two functions at the end of this file as each function begins and ends
 * (GCC's manual, "Program Instrumentation Options"); the C library's do nothing. `pk run
 * --functions REGEX` says which become regions. They are found before main, in the tables of
 * symbols of the program and of those of its libraries that have such calls, so at a call an
 * address is looked up and nothing else. Libraries that come later are not looked at.
 */
#include "attach/attach.h"

#include <pk/private.h>
#include <pk/region.h>

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

typedef struct symbols {
    const ElfW(Sym) * symbols;
    const char *names;
    uint64_t count, names_size;
} symbols;

/* Of a type, SHT_SYMTAB or SHT_DYNSYM. No symbols: there is none. */
static symbols find_symbols(file f, unsigned type)
{
    const ElfW(Ehdr) *head = part(f, 0, sizeof *head);
    const ElfW(Shdr) *sections =
        head ? part(f, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections) : NULL;
    if (!sections || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        return (symbols){0};
    for (unsigned i = 0; i < head->e_shnum; i++) {
        const ElfW(Shdr) *s = &sections[i];
        if (s->sh_type != type || s->sh_link >= head->e_shnum)
            continue;
        const ElfW(Shdr) *texts = &sections[s->sh_link];
        symbols t = {part(f, s->sh_offset, s->sh_size), part(f, texts->sh_offset, texts->sh_size),
                     s->sh_size / sizeof(ElfW(Sym)), texts->sh_size};
        return t.names && t.symbols ? t : (symbols){0};
    }
    return (symbols){0};
}

static const char *name_of(const symbols *t, const ElfW(Sym) * s)
{
    bool whole =
        s->st_name < t->names_size && memchr(t->names + s->st_name, 0, t->names_size - s->st_name);
    return whole ? t->names + s->st_name : "";
}

static bool is_function(const ElfW(Sym) * s)
{
    return (s->st_info & 15) == STT_FUNC && s->st_shndx != SHN_UNDEF;
}

/* NULL: the file does not tell. offset: of the address from there. */
static const char *search_file(file f, uintptr_t code, uintptr_t base, uint64_t *offset)
{
    symbols t = find_symbols(f, SHT_SYMTAB);
    const ElfW(Ehdr) *head = part(f, 0, sizeof *head);
    uint64_t address = head && head->e_type == ET_DYN ? code - base : code;
    for (uint64_t i = 0; i < t.count; i++) {
        const ElfW(Sym) *s = &t.symbols[i];
        if (is_function(s) && address >= s->st_value && address - s->st_value < s->st_size &&
            *name_of(&t, s)) {
            *offset = address - s->st_value;
            return name_of(&t, s);
        }
    }
    return NULL;
}

/* {NULL, 0}: it cannot be read. name: the loader's; the program's own has no path. */
static file open_file(const char *name)
{
    struct stat s;
    int fd = open(name && strchr(name, '/') ? name : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    void *bytes = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &s) == 0 && s.st_size > 0)
        bytes = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    return bytes == MAP_FAILED ? (file){NULL, 0} : (file){bytes, (size_t)s.st_size};
}

static void close_file(file f)
{
    if (f.bytes)
        munmap((void *)(uintptr_t)f.bytes, f.size);
}

static bool name_by_file(const Dl_info *info, const void *code, char *out, size_t size)
{
    uint64_t offset = 0;
    bool named = false;
    file f = open_file(info->dli_fname);
    const char *name = search_file(f, (uintptr_t)code, (uintptr_t)info->dli_fbase, &offset);
    if (name)
        named =
            snprintf(out, size, offset ? "%s+0x%llx" : "%s", name, (unsigned long long)offset) > 0;
    close_file(f);
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

PK_API void __cyg_profile_func_enter(void *code, void *site);
PK_API void __cyg_profile_func_exit(void *code, void *site);

/* ---- those that are wanted: found before main, and read without a lock from then on ---- */

#define ENTER "__cyg_profile_func_enter"
#define MOST 100000u

typedef struct wanted {
    uintptr_t code; /* 0: none is here */
    const char *name;
    pk_region *region; /* NULL: it was not called yet */
} wanted;

static wanted *wanted_ones; /* hashed by where they are; NULL: none */
static uint64_t places;     /* a power of two, minus one */

static struct {
    regex_t pattern;
    wanted *list;
    size_t count, room, hooked; /* hooked: files that have calls of the two functions */
    bool own;                   /* the program has them itself */
} found;

/* Is there a symbol ENTER of this table that is defined, or is not? */
static bool has_enter(file f, unsigned type, bool defined)
{
    symbols t = find_symbols(f, type);
    for (uint64_t i = 0; i < t.count; i++)
        if ((t.symbols[i].st_shndx != SHN_UNDEF) == defined &&
            strcmp(name_of(&t, &t.symbols[i]), ENTER) == 0)
            return true;
    return false;
}

/* As the program's language has it, where that is C++. To be freed. */
static char *readable(const char *name)
{
    char *(*demangle)(const char *, char *, size_t *, int *) = NULL;
    void *symbol = strncmp(name, "_Z", 2) == 0 ? dlsym(RTLD_DEFAULT, "__cxa_demangle") : NULL;
    int status = 0;
    memcpy(&demangle, &symbol, sizeof symbol);
    char *out = demangle ? demangle(name, NULL, NULL, &status) : NULL;
    return out ? out : strdup(name);
}

static void want(uintptr_t code, const char *name)
{
    char *text = readable(name);
    bool is = text && found.count < MOST &&
              (regexec(&found.pattern, text, 0, NULL, 0) == 0 ||
               regexec(&found.pattern, name, 0, NULL, 0) == 0);
    if (is && found.count == found.room) {
        size_t room = found.room ? 2 * found.room : 64;
        wanted *more = realloc(found.list, room * sizeof *more);
        is = more != NULL;
        found.list = more ? more : found.list;
        found.room = more ? room : found.room;
    }
    if (is)
        found.list[found.count++] = (wanted){code, text, NULL};
    else
        free(text);
}

static int look_into(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    file f = open_file(object->dlpi_name);
    if (!*object->dlpi_name && has_enter(f, SHT_SYMTAB, true))
        found.own = true;
    if (has_enter(f, SHT_DYNSYM, false)) {
        symbols t = find_symbols(f, SHT_SYMTAB);
        if (!t.count)
            t = find_symbols(f, SHT_DYNSYM);
        found.hooked++;
        for (uint64_t i = 0; i < t.count; i++)
            if (is_function(&t.symbols[i]))
                want(object->dlpi_addr + t.symbols[i].st_value, name_of(&t, &t.symbols[i]));
    }
    close_file(f);
    return 0;
}

static wanted *place_of(wanted *table, uintptr_t code)
{
    uint64_t i = (code >> 4) * 0x9E3779B97F4A7C15u >> 20;
    while (table[i & places].code && table[i & places].code != code)
        i++;
    return &table[i & places];
}

static void make_table(void)
{
    places = 63;
    while (places < 2 * found.count)
        places = 2 * places + 1;
    wanted *table = found.count ? calloc(places + 1, sizeof *table) : NULL;
    for (size_t i = 0; table && i < found.count; i++)
        *place_of(table, found.list[i].code) = found.list[i]; /* of two names the last */
    free(found.list);
    __atomic_store_n(&wanted_ones, table, __ATOMIC_RELEASE); /* pairs with region_at */
}

/* NULL: nothing is wrong. */
static const char *find_functions(const char *pattern)
{
    if (regcomp(&found.pattern, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return "no such regular expression";
    dl_iterate_phdr(look_into, NULL);
    regfree(&found.pattern);
    make_table();
    if (found.own || dlsym(RTLD_DEFAULT, ENTER) != (void *)(uintptr_t)&__cyg_profile_func_enter)
        return "the program has a " ENTER " of its own";
    if (found.count)
        return wanted_ones ? NULL : "there is no memory";
    return found.hooked
               ? "no function that was compiled with -finstrument-functions has such a name"
               : "nothing here was compiled with -finstrument-functions";
}

__attribute__((constructor)) static void functions_begin(void)
{
    char line[200];
    bool listens = pki_attach_listens("functions"); /* by now it is known what was asked for */
    const char *pattern = pki_attach.folder ? pki_attach.functions : NULL;
    const char *wrong = pattern && listens ? find_functions(pattern) : NULL;
    if (!wrong || pki_attach.quiet || !pki_attach_is_first() ||
        (pki_attach.rank && atol(pki_attach.rank)))
        return;
    snprintf(line, sizeof line, "pk run: --functions: %s", wrong);
    pk_say_(0, line);
}

/* ---- what the compiler calls ---- */

static pk_region *region_at(void *code)
{
    wanted *table = __atomic_load_n(&wanted_ones, __ATOMIC_ACQUIRE); /* pairs with make_table */
    wanted *w = table ? place_of(table, (uintptr_t)code) : NULL;
    if (!w || !w->code)
        return NULL;
    pk_region *region = __atomic_load_n(&w->region, __ATOMIC_ACQUIRE);
    if (region)
        return region;
    int error = errno; /* a function that ends has perhaps just set it */
    region = pk_region_named(w->name);
    errno = error;
    /* pairs with the acquire: others store the same */
    __atomic_store_n(&w->region, region, __ATOMIC_RELEASE);
    return region;
}

void __cyg_profile_func_enter(void *code, void *site)
{
    pk_region *region = region_at(code);
    if (region)
        pki_attach_begin(region, site);
}

void __cyg_profile_func_exit(void *code, void *site)
{
    pk_region *region = region_at(code);
    (void)site;
    if (region)
        pk_region_end(region);
}
