/* lib/alloc/operators.c - C++'s new and delete.
 *
 * The C++ library's call malloc and free, and so does a program that brings its own, sooner or
 * later: they are called on as they are, which keeps to all that the program replaces. An allocator
 * that brings them (jemalloc, mimalloc) does not call malloc, and its sized delete would be told a
 * size without the tag. So its part is done here, by malloc and free; where there is no memory the
 * C++ library is asked after all, since handlers and exceptions are its part.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/next.h"

#define EXPORT __attribute__((visibility("default")))

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
