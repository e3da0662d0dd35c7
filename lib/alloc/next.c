#include "alloc/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

next_allocator pki_next;
int pki_next_state;

static const char *file, *why;
static _Thread_local bool searching;

/* ---- what the search itself asks for ---- */

alignas(16) char pki_early[PKI_EARLY_BYTES];
static size_t early_used;

typedef struct early_head {
    size_t size, reserved;
} early_head;

void *pki_early_malloc(size_t bytes)
{
    size_t whole = sizeof(early_head) + ((bytes + 15) & ~(size_t)15);
    size_t at = bytes > PKI_EARLY_BYTES ? PKI_EARLY_BYTES : pki_fetch_add(&early_used, whole);
    if (at > PKI_EARLY_BYTES - sizeof(early_head) || whole > PKI_EARLY_BYTES - at) {
        errno = ENOMEM;
        return NULL;
    }
    early_head head = {bytes, 0};
    memcpy(pki_early + at, &head, sizeof head);
    return pki_early + at + sizeof head;
}

size_t pki_early_size(const void *block)
{
    early_head head;
    memcpy(&head, (const char *)block - sizeof head, sizeof head);
    return head.size;
}

/* ---- the search ---- */

static const char *file_of(const void *function)
{
    Dl_info info;
    return function && dladdr(function, &info) ? info.dli_fname : NULL;
}

static void find(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

static void *address_of(const void *function)
{
    void *address;
    memcpy(&address, function, sizeof address);
    return address;
}

/* A program may bring an allocator that has not all of it; the rest is then the C library's, which
 * must not be asked about the other's blocks. */
static int judge(const next_allocator *n)
{
    const char *of_usable = file_of(address_of(&n->usable));
    const char *of_free = file_of(address_of(&n->free));
    file = file_of(address_of(&n->malloc));
    if (!file || !of_usable || !of_free || strcmp(file, of_free) != 0)
        why = "there is no whole allocator behind libpk_alloc";
    else if (strcmp(file, of_usable) != 0)
        why = "the allocator has no malloc_usable_size";
    return why ? PKI_NEXT_PASSED : PKI_NEXT_COUNTED;
}

bool pki_next_find(void)
{
    if (searching)
        return false;
    searching = true; /* of several threads that search all find the same */
    next_allocator n;
    int error = errno;
    find("malloc", &n.malloc);
    find("free", &n.free);
    find("calloc", &n.calloc);
    find("realloc", &n.realloc);
    find("memalign", &n.memalign);
    find("aligned_alloc", &n.aligned_alloc);
    find("posix_memalign", &n.posix_memalign);
    find("malloc_usable_size", &n.usable);
    pki_next = n;
    int state = judge(&n);
    /* pairs with the acquire in pki_next_ready */
    __atomic_store_n(&pki_next_state, state, __ATOMIC_RELEASE);
    errno = error;
    searching = false;
    return true;
}

__attribute__((constructor)) static void find_at_the_start(void)
{
    pki_next_ready();
}

const char *pki_next_file(void)
{
    return file;
}

const char *pki_next_why(void)
{
    return why;
}

/* A library that was opened for itself alone has its C++ library behind it and not behind us. */
static void *in_library(const char *name)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1"};
    void *found = NULL;
    for (size_t i = 0; i < PKI_COUNT_OF(libraries) && !found; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        found = library ? dlsym(library, name) : NULL;
    }
    return found;
}

void *pki_next_function(const char *name, bool *of_library)
{
    void *found = dlsym(RTLD_NEXT, name);
    found = found ? found : in_library(name);
    const char *from = file_of(found);
    *of_library = from && !(file && strcmp(from, file) == 0); /* else the allocator's own */
    return found;
}
