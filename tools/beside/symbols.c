/* tools/beside/symbols.c - functions by their places in files, with elfutils' libdw */
#include "beside/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

#ifdef PK_LIBDW

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <sys/stat.h>
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

static char *function_at(symbols *s, const char *path, uint64_t offset, const char *build)
{
    GElf_Addr address;
    Dwfl_Module *m = path[0] == '/' && build[0] ? open_file(s, path) : NULL;
    if (!m || !is_build(m, build) || !address_of(m, offset, &address))
        return NULL;
    const char *name = dwfl_module_addrname(m, address);
    return name ? demangled(name) : NULL;
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
    free(s->names);
    table_finish(&s->known);
    *s = (symbols){0};
}
