/* lib/attach/kokkos.c - what Kokkos tells tools: kernels, regions, fences, copies, memory
 *
 * The interface is Kokkos Tools' (github.com/kokkos/kokkos-tools, "Kokkos Tools hooks", interface
 * version 20150628 to 20211015): Kokkos opens the library that KOKKOS_TOOLS_LIBS names, looks for
 * functions of these names, and calls those that are there. A kernel's begin gives a number back,
 * which its end is told: here the region's address.
 *
 * Of a kernel on a device the region is the launch, unless Kokkos waits for it.
 */
#include "attach/attach.h"

#include <pk/counter.h>
#include <pk/region.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct space {
    char name[64];
} space;

/* Of the settings that Kokkos has for a tool the first is whether it is to wait for devices around
 * each kernel; the others are room. */
typedef struct settings {
    bool waits, more[255];
} settings;

/* ---- kernels and fences ---- */

static void begin_of(pk_kind kind, const char *name, uint64_t *number)
{
    pk_region *region = pk_region_named_of(kind, name);
    *number = (uint64_t)(uintptr_t)region;
    pki_attach_begin(region, NULL);
}

static void end_of(uint64_t number)
{
    if (number)
        pk_region_end((pk_region *)(uintptr_t)number);
}

#define PAIR(what, kind)                                                                           \
    PK_API void kokkosp_begin_##what(const char *name, uint32_t device, uint64_t *number);         \
    PK_API void kokkosp_end_##what(uint64_t number);                                               \
    void kokkosp_begin_##what(const char *name, uint32_t device, uint64_t *number)                 \
    {                                                                                              \
        (void)device;                                                                              \
        begin_of(kind, name, number);                                                              \
    }                                                                                              \
    void kokkosp_end_##what(uint64_t number)                                                       \
    {                                                                                              \
        end_of(number);                                                                            \
    }

PAIR(parallel_for, PK_COMPUTE)
PAIR(parallel_reduce, PK_COMPUTE)
PAIR(parallel_scan, PK_COMPUTE)
PAIR(fence, PK_WAIT)

/* ---- regions ---- */

#define DEEPEST 64

static _Thread_local pk_region *open[DEEPEST];
static _Thread_local unsigned depth;

PK_API void kokkosp_push_profile_region(const char *name);
PK_API void kokkosp_pop_profile_region(void);
PK_API void kokkosp_profile_event(const char *name);

void kokkosp_push_profile_region(const char *name)
{
    pk_region *region = pk_region_named(name);
    if (depth < DEEPEST) {
        open[depth] = region;
        pki_attach_begin(region, NULL);
    }
    depth++;
}

void kokkosp_pop_profile_region(void)
{
    if (depth > 0 && --depth < DEEPEST)
        pk_region_end(open[depth]);
}

void kokkosp_profile_event(const char *name)
{
    pk_region_mark(pk_region_named(name));
}

/* ---- copies ---- */

static _Thread_local pk_region *copying;
static _Thread_local uint64_t copied;

PK_API void kokkosp_begin_deep_copy(space to, const char *to_name, const void *to_data, space from,
                                    const char *from_name, const void *from_data, uint64_t bytes);
PK_API void kokkosp_end_deep_copy(void);

void kokkosp_begin_deep_copy(space to, const char *to_name, const void *to_data, space from,
                             const char *from_name, const void *from_data, uint64_t bytes)
{
    static _Thread_local space last_to, last_from;
    static _Thread_local pk_region *last;
    char name[160];
    (void)to_name, (void)to_data, (void)from_name, (void)from_data;
    if (!last || strncmp(to.name, last_to.name, sizeof to.name) != 0 ||
        strncmp(from.name, last_from.name, sizeof from.name) != 0) {
        snprintf(name, sizeof name, "Kokkos deep copy %.60s to %.60s", from.name, to.name);
        last = pk_region_named_of(PK_DATA, name);
        last_to = to;
        last_from = from;
    }
    copying = last;
    copied = bytes;
    pki_attach_begin(copying, NULL);
}

void kokkosp_end_deep_copy(void)
{
    if (!copying)
        return;
    pk_region_add(copying, copied, 0);
    pk_region_end(copying);
    copying = NULL;
}

/* ---- memory: what each space holds ---- */

#define SPACES 16

static struct {
    char name[64];
    pk_counter *counter;
    int64_t bytes;
    int state; /* 0: free, 1: being filled, 2: there */
} spaces[SPACES];

static void add(const space *s, int64_t bytes)
{
    char name[96];
    for (size_t i = 0; i < SPACES; i++) {
        int none = 0;
        if (__atomic_compare_exchange_n(&spaces[i].state, &none, 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_ACQUIRE)) {
            snprintf(spaces[i].name, sizeof spaces[i].name, "%.63s", s->name);
            snprintf(name, sizeof name, "Kokkos memory %.63s", s->name);
            spaces[i].counter = pk_counter_named(name, "bytes");
            __atomic_store_n(&spaces[i].state, 2, __ATOMIC_RELEASE); /* pairs with the acquires */
        }
        while (__atomic_load_n(&spaces[i].state, __ATOMIC_ACQUIRE) != 2)
            ;
        if (strncmp(spaces[i].name, s->name, sizeof spaces[i].name) != 0)
            continue;
        int64_t now = __atomic_add_fetch(&spaces[i].bytes, bytes, __ATOMIC_RELAXED);
        pk_counter_set(spaces[i].counter, (double)now);
        return;
    }
}

PK_API void kokkosp_allocate_data(space s, const char *label, const void *data, uint64_t bytes);
PK_API void kokkosp_deallocate_data(space s, const char *label, const void *data, uint64_t bytes);

void kokkosp_allocate_data(space s, const char *label, const void *data, uint64_t bytes)
{
    (void)label, (void)data;
    add(&s, (int64_t)bytes);
}

void kokkosp_deallocate_data(space s, const char *label, const void *data, uint64_t bytes)
{
    (void)label, (void)data;
    add(&s, -(int64_t)bytes);
}

/* ---- beginning and end ---- */

PK_API void kokkosp_init_library(int number, uint64_t version, uint32_t count, void *devices);
PK_API void kokkosp_finalize_library(void);
PK_API void kokkosp_request_tool_settings(uint32_t count, settings *wanted);

void kokkosp_init_library(int number, uint64_t version, uint32_t count, void *devices)
{
    (void)number, (void)version, (void)count, (void)devices;
}

void kokkosp_finalize_library(void) {}

/* Nothing waits for us. */
void kokkosp_request_tool_settings(uint32_t count, settings *wanted)
{
    (void)count;
    wanted->waits = false;
}
