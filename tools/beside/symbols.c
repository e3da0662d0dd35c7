/* tools/beside/symbols.c - functions by their places in files, with elfutils' libdw */
#include "beside/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "memory.h"
#include "out/chrome/events.h"

#ifdef PK_LIBDW

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <unistd.h>

/* ---- files ---- */

static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                         .find_debuginfo = dwfl_standard_find_debuginfo,
                                         .section_address = dwfl_offline_section_address};

static bool is_build(Dwfl_Module *m, const char *build)
{
    const unsigned char *bits;
    GElf_Addr at;
    char text[129] = "";
    int n = dwfl_module_build_id(m, &bits, &at);
    for (int i = 0; i < n && i < 64; i++)
        snprintf(text + 2 * (size_t)i, 3, "%02x", bits[i]);
    return build[0] && strncmp(text, build, strlen(build)) == 0;
}

typedef struct search {
    const char *path;
    Dwfl_Module *found;
} search;

static int find(Dwfl_Module *m, void **user, const char *name, Dwarf_Addr start, void *to)
{
    search *s = to;
    const char *path = NULL;
    (void)user, (void)name, (void)start;
    dwfl_module_info(m, NULL, NULL, NULL, NULL, NULL, &path, NULL);
    s->found = path && strcmp(path, s->path) == 0 ? m : s->found;
    return s->found ? DWARF_CB_ABORT : DWARF_CB_OK;
}

/* A new one each time that no file is added to is what libdw asks for. NULL: not to be read. */
static Dwfl_Module *open_file(symbols *s, const char *path)
{
    search by = {.path = path};
    struct stat is;
    if (stat(path, &is) != 0 || !S_ISREG(is.st_mode))
        return NULL; /* it comes out of a file that somebody may have made */
    if (!s->files) {
        unsetenv("DEBUGINFOD_URLS"); /* nothing is asked of other machines */
        s->files = dwfl_begin(&callbacks);
    }
    if (!s->files)
        return NULL;
    dwfl_getmodules(s->files, find, &by, 0);
    if (by.found)
        return by.found;
    dwfl_report_begin_add(s->files);
    Dwfl_Module *m = dwfl_report_offline(s->files, path, path, -1);
    dwfl_report_end(s->files, NULL, NULL);
    return m;
}

/* Of an offset in the file where libdw has it. */
static bool address_of(Dwfl_Module *m, uint64_t offset, GElf_Addr *out)
{
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(m, &bias);
    size_t count = 0;
    if (!elf || elf_getphdrnum(elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr p;
        if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || offset < p.p_offset ||
            offset - p.p_offset >= p.p_filesz)
            continue;
        *out = offset - p.p_offset + p.p_vaddr + bias;
        return true;
    }
    return false;
}

/* ---- names ---- */

/* C++'s own function for it, where its library is there. */
static char *demangled(const char *name)
{
    typedef char *demangler(const char *, char *, size_t *, int *);
    static demangler *call;
    static bool looked;
    int status = -1;
    if (!looked) {
        void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
        void *at = library ? dlsym(library, "__cxa_demangle") : NULL;
        memcpy(&call, &at, sizeof call);
        looked = true;
    }
    char *text = call && strncmp(name, "_Z", 2) == 0 ? call(name, NULL, NULL, &status) : NULL;
    return text ? text : memory_copy(name);
}

typedef struct names {
    char text[1600];
    size_t length;
} names;

/* "memset" of glibc's "__memset_avx2_unaligned_erms": one of several for different processors. */
static void shorten(char *name)
{
    static const char *const processors[] = {"_avx", "_evex", "_sse", "_erms", "_ssse"};
    for (size_t i = 0; i < PKI_COUNT_OF(processors) && strncmp(name, "__", 2) == 0; i++) {
        char *at = strstr(name + 2, processors[i]);
        if (!at)
            continue;
        *at = 0;
        memmove(name, name + 2, strlen(name + 2) + 1);
    }
}

static void add_name(names *to, const char *name)
{
    char *plain = demangled(name);
    shorten(plain);
    size_t left = sizeof to->text - to->length;
    int n =
        snprintf(to->text + to->length, left, "%s%.500s", to->length ? SYMBOLS_APART : "", plain);
    to->length += PKI_MIN((size_t)PKI_MAX(n, 0), left - 1);
    free(plain);
}

/* C++ has its name for the linker, which says more, at the function that was inlined. */
static const char *name_of_scope(Dwarf_Die *scope)
{
    Dwarf_Attribute a;
    const char *name = dwarf_formstring(dwarf_attr_integrate(scope, DW_AT_linkage_name, &a));
    return name ? name : dwarf_diename(scope);
}

/* By the file's debug information, if it has some. */
static void add_inlined(Dwfl_Module *m, GElf_Addr address, names *to)
{
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = dwfl_module_addrdie(m, address, &bias), *scopes = NULL, *chain = NULL;
    int count = unit ? dwarf_getscopes(unit, address - bias, &scopes) : 0;
    int n = count > 0 ? dwarf_getscopes_die(&scopes[0], &chain) : 0;
    for (int i = 0; i < n; i++) {
        int tag = dwarf_tag(&chain[i]);
        if (tag == DW_TAG_subprogram)
            break;
        const char *name = tag == DW_TAG_inlined_subroutine ? name_of_scope(&chain[i]) : NULL;
        if (name)
            add_name(to, name);
    }
    free(chain);
    free(scopes);
}

static char *function_at(symbols *s, const char *path, uint64_t offset, const char *build)
{
    GElf_Addr address;
    names all = {.length = 0};
    Dwfl_Module *m = path[0] == '/' && build[0] ? open_file(s, path) : NULL;
    if (!m || !is_build(m, build) || !address_of(m, offset, &address))
        return NULL;
    const char *name = dwfl_module_addrname(m, address);
    if (!name)
        return NULL;
    add_inlined(m, address, &all);
    add_name(&all, name);
    return memory_copy(all.text);
}

static void finish_files(symbols *s)
{
    if (s->files)
        dwfl_end(s->files);
}

#else

static char *function_at(symbols *s, const char *path, uint64_t offset, const char *build)
{
    (void)s, (void)path, (void)offset, (void)build;
    return NULL;
}

static void finish_files(symbols *s)
{
    (void)s;
}

#endif

/* ---- code that a process made while it ran ---- */

#define MAP_MOST 1000000u

typedef struct map_line {
    uint64_t from, bytes;
    char *name;
} map_line;

static int by_address(const void *a, const void *b)
{
    const map_line *l = a, *m = b;
    return (l->from > m->from) - (l->from < m->from);
}

static void read_map(symbols *s, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0 && s->map_count < MAP_MOST) {
        char *end, *behind;
        uint64_t from = strtoull(line, &end, 16), bytes = strtoull(end, &behind, 16);
        if (end == line || behind == end || *behind != ' ')
            continue;
        behind[1 + strcspn(behind + 1, "\n")] = 0;
        memory_fit(&s->map, &s->map_room, s->map_count + 1, sizeof *s->map);
        s->map[s->map_count++] = (map_line){from, bytes, memory_copy(behind + 1)};
    }
    free(line);
    if (s->map_count)
        qsort(s->map, s->map_count, sizeof *s->map, by_address);
}

/* Another program may have made a file of that name: it has names, and is not believed more. */
static void open_map(symbols *s, const char *process)
{
    char path[64];
    struct stat is;
    unsigned long pid = strtoul(process, NULL, 10);
    snprintf(path, sizeof path, "/tmp/perf-%lu.map", pid);
    FILE *file = stat(path, &is) == 0 && S_ISREG(is.st_mode) ? fopen(path, "re") : NULL;
    s->map_read = true;
    if (!file)
        return;
    read_map(s, file);
    fclose(file);
}

const char *symbols_of_address(symbols *s, const char *process, uint64_t address)
{
    size_t low = 0, high;
    if (!s->map_read)
        open_map(s, process);
    for (high = s->map_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (s->map[middle].from <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const map_line *l = low ? &s->map[low - 1] : NULL;
    return l && address - l->from < l->bytes ? l->name : PKI_SAMPLE_ANYWHERE;
}

/* ---- places ---- */

/* Without symbols the addresses of a file are one. */
static char *name_of(symbols *s, const char *place, const char *build)
{
    const char *plus = strrchr(place, '+');
    if (!plus)
        return memory_copy(place);
    char *path = strndup(place, (size_t)(plus - place));
    memory_needed(path != NULL);
    char *name = function_at(s, path, strtoull(plus + 1, NULL, 16), build);
    if (!name)
        name = memory_copy(strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    free(path);
    return name;
}

const char *symbols_of(symbols *s, const char *place, const char *build)
{
    char key[600];
    uint32_t known = s->known.count;
    snprintf(key, sizeof key, "%.400s %.100s", place, build);
    uint32_t id = table_add(&s->known, key);
    if (id == known) {
        memory_fit(&s->names, &s->room, id + (size_t)1, sizeof *s->names);
        s->names[id] = name_of(s, place, build);
    }
    return s->names[id];
}

void symbols_finish(symbols *s)
{
    finish_files(s);
    for (uint32_t i = 0; i < s->known.count; i++)
        free(s->names[i]);
    for (size_t i = 0; i < s->map_count; i++)
        free(s->map[i].name);
    free(s->map);
    free(s->names);
    table_finish(&s->known);
    *s = (symbols){0};
}
