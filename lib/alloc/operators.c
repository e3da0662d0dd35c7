/* lib/alloc/operators.c - C++'s new and delete.
 *
 * The C++ library's call malloc and free, and so does a program that brings its own, sooner or
 * later: they are called on as they are, which keeps to all that the program replaces. An allocator
 * that brings them (jemalloc, mimalloc) does not call malloc, and its sized delete would be told a
 * size without the tag. So its part is done here, by malloc and free; where there is no memory the
 * C++ library is asked after all, since handlers and exceptions are its part.
 */
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/next.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- a function of the C++ library, wherever that has come from ---- */

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

/* NULL: none is loaded, or it has no such function. It does not wait for the loader, as dlsym does:
 * that has a lock as long as a library's constructors run, which may wait for who asks. */
static void *pki_loaded_function(const char *name)
{
    search s = {name, NULL};
    dl_iterate_phdr(search_object, &s);
    return s.found;
}

typedef struct function {
    const char *name;
    uint32_t sought;
    bool of_library;
    void *address; /* NULL: there is none */
} function;

static PKI_COLD void *seek(function *f)
{
    bool of_library;
    pki_next_ready();
    void *found = pki_next_function(f->name, &of_library);
    pki_store(&f->of_library, of_library || pki_next_state != PKI_NEXT_COUNTED);
    pki_store(&f->address, found);
    pki_store_release(&f->sought, 1);
    return found;
}

/* Once, as we are loaded, or for who comes before that: dlsym waits for whoever runs the
 * constructors of a library, and that may wait for us. What is opened later is not called on: its
 * new and delete are ours, all of them, and they are malloc and free. */
static inline void *next_of(function *f)
{
    /* pairs with the release in seek */
    return PKI_LIKELY(pki_load_acquire(&f->sought)) ? pki_load(&f->address) : seek(f);
}

/* No memory: handlers and exceptions are the C++ library's part, whenever that has come. mimalloc's
 * own operators end the process. */
static PKI_COLD void *behind(const function *f)
{
    void *found = pki_loaded_function(f->name);
    return found ? found : f->address;
}

#define FUNCTION(symbol)                                                                           \
    static function f_##symbol = {.name = #symbol};                                                \
    __attribute__((constructor)) static void find_##symbol(void)                                   \
    {                                                                                              \
        next_of(&f_##symbol);                                                                      \
    }

#define CALL(type, address)                                                                        \
    __typeof__(type) next;                                                                         \
    void *at = address;                                                                            \
    memcpy(&next, &at, sizeof next)

/* By malloc, or by the function behind, which throws or answers NULL when there is no memory. */
#define NEW(symbol, parameters, arguments, allocate)                                               \
    FUNCTION(symbol)                                                                               \
    static PKI_COLD void *without_memory_##symbol parameters                                       \
    {                                                                                              \
        CALL(void *(*)parameters, behind(&f_##symbol));                                            \
        return next ? next arguments : NULL;                                                       \
    }                                                                                              \
    EXPORT void *symbol parameters;                                                                \
    void *symbol parameters                                                                        \
    {                                                                                              \
        CALL(void *(*)parameters, next_of(&f_##symbol));                                           \
        if (next && f_##symbol.of_library)                                                         \
            return next arguments;                                                                 \
        void *block = allocate;                                                                    \
        return PKI_LIKELY(block) ? block : without_memory_##symbol arguments;                      \
    }

#define DELETE(symbol, parameters, arguments)                                                      \
    FUNCTION(symbol)                                                                               \
    EXPORT void symbol parameters;                                                                 \
    void symbol parameters                                                                         \
    {                                                                                              \
        CALL(void(*) parameters, next_of(&f_##symbol));                                            \
        if (next && f_##symbol.of_library)                                                         \
            next arguments;                                                                        \
        else                                                                                       \
            free(block);                                                                           \
    }

/* new, new[]; without exceptions; aligned; aligned and without exceptions */
NEW(_Znwm, (size_t size), (size), malloc(size))
NEW(_Znam, (size_t size), (size), malloc(size))
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), (size, tag), malloc(size))
NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), (size, tag), malloc(size))
NEW(_ZnwmSt11align_val_t, (size_t size, size_t by), (size, by), memalign(by, size))
NEW(_ZnamSt11align_val_t, (size_t size, size_t by), (size, by), memalign(by, size))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t by, const void *tag), (size, by, tag),
    memalign(by, size))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t by, const void *tag), (size, by, tag),
    memalign(by, size))

/* delete, delete[]; with the size; without exceptions; aligned, and those again */
DELETE(_ZdlPv, (void *block), (block))
DELETE(_ZdaPv, (void *block), (block))
DELETE(_ZdlPvm, (void *block, size_t size), (block, size))
DELETE(_ZdaPvm, (void *block, size_t size), (block, size))
DELETE(_ZdlPvRKSt9nothrow_t, (void *block, const void *tag), (block, tag))
DELETE(_ZdaPvRKSt9nothrow_t, (void *block, const void *tag), (block, tag))
DELETE(_ZdlPvSt11align_val_t, (void *block, size_t by), (block, by))
DELETE(_ZdaPvSt11align_val_t, (void *block, size_t by), (block, by))
DELETE(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t by), (block, size, by))
DELETE(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t by), (block, size, by))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t by, const void *tag),
       (block, by, tag))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t by, const void *tag),
       (block, by, tag))
