/* lib/alloc/operators.c - C++'s new and delete.
 *
 * The C++ library's call malloc and free, and so does a program that brings its own, sooner or
 * later: they are called on as they are, which keeps to all that the program replaces. An allocator
 * that brings them (jemalloc, mimalloc) does not call malloc, and its sized delete would be told a
 * size without the tag. So its part is done here, by malloc and free; where there is no memory it
 * is asked after all, since handlers and exceptions are its part, too.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/next.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct function {
    void *address; /* NULL: not looked for yet, or not found */
    bool of_library;
    uint32_t missed; /* calls since it was not found: a search takes locks, and looks for files */
} function;

static PKI_COLD void look_for(function *f, const char *name)
{
    bool of_library;
    void *found = pki_next_function(name, &of_library);
    pki_store(&f->of_library, of_library || pki_next_state != PKI_NEXT_COUNTED);
    __atomic_store_n(&f->address, found, __ATOMIC_RELEASE);
}

static inline void *next_of(function *f, const char *name)
{
    void *address = __atomic_load_n(&f->address, __ATOMIC_ACQUIRE); /* as above */
    if (PKI_LIKELY(address))
        return address;
    if (pki_load(&f->missed) % 1024 == 0) {
        pki_next_ready();
        look_for(f, name);
        address = pki_load(&f->address);
    }
    if (!address)
        pki_fetch_add(&f->missed, 1u);
    return address;
}

/* What is there already is found before there are threads: dlsym waits for whoever runs the
 * constructors of a library, and that may wait for us. */
#define FIND(symbol)                                                                               \
    static function f_##symbol;                                                                    \
    __attribute__((constructor)) static void find_##symbol(void)                                   \
    {                                                                                              \
        if (pki_next_ready() && dlsym(RTLD_NEXT, #symbol))                                         \
            look_for(&f_##symbol, #symbol);                                                        \
        dlerror();                                                                                 \
    }

#define NEXT(type, symbol)                                                                         \
    __typeof__(type) next;                                                                         \
    void *address = next_of(&f_##symbol, #symbol);                                                 \
    memcpy(&next, &address, sizeof next)

/* By malloc, or by the function behind, which throws or answers NULL when there is no memory. */
#define NEW(symbol, parameters, arguments, allocate)                                               \
    FIND(symbol)                                                                                   \
    EXPORT void *symbol parameters;                                                                \
    void *symbol parameters                                                                        \
    {                                                                                              \
        NEXT(void *(*)parameters, symbol);                                                         \
        if (next && f_##symbol.of_library)                                                         \
            return next arguments;                                                                 \
        void *block = allocate;                                                                    \
        return block || !next ? block : next arguments;                                            \
    }

#define DELETE(symbol, parameters, arguments)                                                      \
    FIND(symbol)                                                                                   \
    EXPORT void symbol parameters;                                                                 \
    void symbol parameters                                                                         \
    {                                                                                              \
        NEXT(void(*) parameters, symbol);                                                          \
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
NEW(_ZnwmSt11align_val_t, (size_t size, size_t by), (size, by), aligned_alloc(by, size))
NEW(_ZnamSt11align_val_t, (size_t size, size_t by), (size, by), aligned_alloc(by, size))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t by, const void *tag), (size, by, tag),
    aligned_alloc(by, size))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t by, const void *tag), (size, by, tag),
    aligned_alloc(by, size))

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
