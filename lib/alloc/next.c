#include "alloc/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"

/* ---- zeroed addresses of which only what is touched takes memory ---- */

/* It begins as a page, which is unlocked, and grows: what grows inherits that, as in base/memory.c.
 */
static void *reserve(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *seed = mmap(NULL, page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (seed == MAP_FAILED)
        return NULL;
    munlock(seed, page);
    void *room = mremap(seed, page, bytes, MREMAP_MAYMOVE);
    if (room != MAP_FAILED)
        return room;
    munmap(seed, page);
    return NULL;
}

void *pki_room_map(size_t bytes)
{
    int error = errno;
    void *room = reserve(bytes);
    errno = error;
    return room;
}

void pki_room_unmap(void *room, size_t bytes)
{
    int error = errno;
    munmap(room, bytes);
    errno = error;
}

/* ---- the allocator beneath: whatever would have been called without us ---- */

next_allocator pki_next;
int pki_next_state;
size_t pki_next_below;
int pki_next_gave;
bool pki_next_nests;
_Thread_local bool pki_next_within;

static const char *file, *why;
static _Thread_local bool searching, trying;

/* ---- what the search itself asks for ---- */

alignas(16) char pki_early[PKI_EARLY_BYTES];
static size_t early_used;

typedef struct early_head {
    size_t size, reserved;
} early_head;

void *pki_early_malloc(size_t bytes)
{
    size_t whole = sizeof(early_head) + ((bytes + 15) & ~(size_t)15);
    size_t at = bytes > PKI_EARLY_BYTES ? PKI_EARLY_BYTES
                                        : __atomic_fetch_add(&early_used, whole, __ATOMIC_SEQ_CST);
    __atomic_store_n(&pki_next_gave, PKI_NEXT_GAVE_SOME, __ATOMIC_SEQ_CST); /* see publish */
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

/* ---- functions behind us ---- */

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

/* ---- what blocks hold, where that is known before ---- */

uint16_t pki_next_holds[PKI_NEXT_KNOWN / 8 + 1];
bool pki_next_learns;
static size_t (*good_size)(size_t);    /* mimalloc's */
static size_t (*size_of)(size_t, int); /* jemalloc's */

/* Of that file: another library's function of the same name may mean something else. */
static void find_in(const char *of, const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);
    const char *from = file_of(found);
    if (!from || strcmp(from, of) != 0)
        found = NULL;
    memcpy(function, &found, sizeof found);
}

/* tcmalloc has nallocx, too, and does not keep to it for the blocks that it samples. What is not
 * found makes the loader allocate the words that say so, from the table that is known by now. */
static void find_sizes(void)
{
    void *jemalloc, *sized;
    find_in(file, "mallctl", &jemalloc);
    find_in(file, "mi_good_size", &good_size);
    if (jemalloc) {
        find_in(file, "nallocx", &size_of);
        find_in(file, "sdallocx", &sized);
        void (*next)(void *, size_t, int);
        memcpy(&next, &sized, sizeof next);
        pki_store(&pki_next.free_sized, next);
    }
    pki_store(&pki_next_learns, size_of || good_size);
}

static size_t promised(size_t asked)
{
    return size_of ? size_of(asked, 0) : good_size(asked);
}

/* What it promises holds for all eight sizes, as a block of the least of them proves: a debugging
 * allocator may guard what was not asked for. */
static bool is_so(size_t least, size_t holds)
{
    void *block = pki_next.malloc(least);
    bool so = block && pki_next.usable(block) == holds && promised(least) == holds;
    pki_next.free(block);
    return so;
}

size_t pki_next_learn(void *block, size_t asked)
{
    size_t row = (asked + 7) / 8, usable = pki_next.usable(block);
    static unsigned char tried[PKI_NEXT_KNOWN / 8 + 1];
    int error = errno;
    if (row && usable <= UINT16_MAX && usable == promised(asked) && !pki_load(&tried[row])) {
        pki_store(&tried[row], 1);
        if (is_so(row * 8 - 7, usable))
            pki_store(&pki_next_holds[row], (uint16_t)usable);
    }
    errno = error;
    return usable;
}

/* ---- whether it calls us ---- */

bool pki_next_is_counted_otherwise(size_t size)
{
    if (trying && pki_next_within)
        pki_store(&pki_next_nests, true);
    if (size < pki_load_acquire(&pki_next_below)) /* it has become known meanwhile */
        return true;
    return pki_load(&pki_next_nests) && !trying && !pki_next_within && size < PKI_NEXT_BELOW;
}

static void try_aligned(const next_allocator *n)
{
    void *block = NULL;
    if (n->memalign)
        n->free(n->memalign(64, 64));
    if (n->aligned_alloc)
        n->free(n->aligned_alloc(64, 64));
    if (n->posix_memalign && n->posix_memalign(&block, 64, 64) == 0)
        n->free(block);
}

/* All is passed on as yet. The first block is for what it prepares, which may allocate. */
static void try_nesting(const next_allocator *n)
{
    trying = true;
    n->free(n->malloc(1));
    pki_next_within = true;
    if (n->calloc)
        n->free(n->calloc(1, 1));
    try_aligned(n);
    pki_next_within = false;
    trying = false;
}

/* ---- whether some blocks stand for all ---- */

uint64_t pki_sample_bytes;
uint8_t pki_sample_pages[PKI_SAMPLE_PAGES];
_Thread_local uint64_t pki_sample_left;
_Thread_local bool pki_sample_drawn;

/* As libpk reads it, whose session refuses what is not understood. */
static uint64_t read_sample_bytes(void)
{
    const char *text = secure_getenv("PK_ALLOC_SAMPLE_BYTES");
    uint64_t n = 0;
    for (; text && *text >= '0' && *text <= '9' && n <= PKI_SAMPLE_MOST; text++)
        n = n * 10 + (uint64_t)(*text - '0');
    if (!text || n > PKI_SAMPLE_MOST)
        return 0;
    unsigned shift = *text == 'K' ? 10 : *text == 'M' ? 20 : *text == 'G' ? 30 : 0;
    bool whole = !text[shift != 0] && n <= PKI_SAMPLE_MOST >> shift;
    return whole && n << shift >= PKI_SAMPLE_LEAST ? n << shift : 0;
}

static void start_counting(void)
{
    uint64_t sample = read_sample_bytes();
    for (size_t i = 0; i < PKI_EARLY_BYTES; i += 4096) /* nobody may give these to the allocator */
        pki_store(pki_sample_page(pki_early + i), UINT8_MAX);
    pki_store(pki_sample_page(pki_early + PKI_EARLY_BYTES - 1), UINT8_MAX);
    /* pairs with the acquire in who asks whether it is counted, and whether some stand for all */
    pki_store_release(sample ? &pki_sample_bytes : &pki_next_below,
                      sample ? sample : PKI_NEXT_BELOW);
    if (sample)
        __atomic_store_n(&pki_next_gave, PKI_NEXT_GAVE_SAMPLED, __ATOMIC_SEQ_CST);
}

/* ---- the search ---- */

static void publish(const next_allocator *n, int state)
{
    pki_next = *n;
    pki_store_release(&pki_next_state, state); /* pairs with the acquire in pki_next_ready */
    /* a search on another thread can be given an early block before this or after it */
    __atomic_store_n(&pki_next_gave,
                     state == PKI_NEXT_COUNTED ? PKI_NEXT_GAVE_ALL : PKI_NEXT_GAVE_SOME,
                     __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&early_used, __ATOMIC_SEQ_CST))
        __atomic_store_n(&pki_next_gave, PKI_NEXT_GAVE_SOME, __ATOMIC_SEQ_CST);
}

bool pki_next_find(void)
{
    if (searching)
        return false;
    searching = true; /* of several threads that search all find the same */
    next_allocator n = {0};
    int error = errno;
    find("malloc", &n.malloc);
    find("free", &n.free);
    find("calloc", &n.calloc);
    find("realloc", &n.realloc);
    find("memalign", &n.memalign);
    find("aligned_alloc", &n.aligned_alloc);
    find("posix_memalign", &n.posix_memalign);
    find("malloc_usable_size", &n.usable);
    int state = judge(&n);
    publish(&n, state);
    if (state == PKI_NEXT_COUNTED)
        try_nesting(&n);
    if (state == PKI_NEXT_COUNTED && !pki_load(&pki_next_nests))
        start_counting();
    errno = error;
    searching = false;
    return true;
}

__attribute__((constructor)) static void find_at_the_start(void)
{
    if (pki_next_ready() && pki_next_state == PKI_NEXT_COUNTED)
        find_sizes();
    dlerror(); /* what is not there is no error of the program's */
}

const char *pki_next_file(const char **reason)
{
    *reason = why;
    return why ? NULL : file;
}

void *pki_next_function(const char *name, bool *of_library)
{
    void *found = dlsym(RTLD_NEXT, name);
    const char *from = file_of(found);
    dlerror(); /* what is not there is no error of the program's */
    *of_library = from && !(file && strcmp(from, file) == 0); /* else the allocator's own */
    return found;
}
