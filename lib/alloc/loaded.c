#include "alloc/loaded.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/* What a loaded library says of itself. */
typedef struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash; /* DT_GNU_HASH */
    size_t name;          /* among the strings */
} tables;

typedef struct search {
    const char *name;
    void *found;
} search;

static uint32_t hash_of(const char *name)
{
    uint32_t h = 5381;
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        h = h * 33 + *at;
    return h;
}

/* glibc's loader has made addresses of these, musl's leaves them as they are in the file. */
static const void *address_in(const struct dl_phdr_info *info, ElfW(Addr) value)
{
    return (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value : value);
}

static tables read_tables(const struct dl_phdr_info *info, ElfW(Addr) dynamic)
{
    tables t = {0};
    for (const ElfW(Dyn) *d = address_in(info, dynamic); d->d_tag != DT_NULL; d++) {
        const void *address = address_in(info, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            t.symbols = address;
        else if (d->d_tag == DT_STRTAB)
            t.strings = address;
        else if (d->d_tag == DT_GNU_HASH)
            t.hash = address;
        else if (d->d_tag == DT_SONAME)
            t.name = d->d_un.d_val;
    }
    return t;
}

static bool is_of_cxx(const tables *t)
{
    static const char *const libraries[] = {"libstdc++.so.", "libc++.so.", "libc++abi.so."};
    for (size_t i = 0; t->symbols && t->strings && t->hash && i < PKI_COUNT_OF(libraries); i++)
        if (strncmp(t->strings + t->name, libraries[i], strlen(libraries[i])) == 0)
            return true;
    return false;
}

static const ElfW(Sym) * look_up(const tables *t, const char *name)
{
    const uint32_t count = t->hash[0], first = t->hash[1], words = t->hash[2];
    const uint32_t *buckets = t->hash + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chains = buckets + count, wanted = hash_of(name);
    uint32_t at = count ? buckets[wanted % count] : 0;
    if (at < first || !at)
        return NULL;
    for (;; at++) {
        const ElfW(Sym) *symbol = &t->symbols[at];
        uint32_t hash = chains[at - first]; /* its last bit ends the bucket */
        if ((hash | 1) == (wanted | 1) && symbol->st_shndx != SHN_UNDEF &&
            strcmp(t->strings + symbol->st_name, name) == 0)
            return symbol;
        if (hash & 1)
            return NULL;
    }
}

static int search_object(struct dl_phdr_info *info, size_t size, void *of)
{
    search *s = of;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        tables t = read_tables(info, info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        const ElfW(Sym) *symbol = is_of_cxx(&t) ? look_up(&t, s->name) : NULL;
        if (symbol)
            s->found = (void *)(info->dlpi_addr + symbol->st_value);
    }
    return s->found != NULL;
}

void *pki_loaded_function(const char *name)
{
    search s = {name, NULL};
    dl_iterate_phdr(search_object, &s);
    return s.found;
}
