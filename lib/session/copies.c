/* lib/session/copies.c - other copies of perfkit in this process */
#include <pk/version.h>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loader.h"
#include "base/log.h"
#include "session/session.h"

/* ---- other copies of perfkit in this process ---- */

#define OWNER "perfkit"

/* What copies know of each other. Other versions of perfkit read it: what is here stays. */
typedef struct copy {
    uint32_t open;    /* 1: has a session */
    uint32_t refused; /* meanwhile, so many starts of others */
    char version[16];
} copy;

/* An ELF note, which the linker keeps, --gc-sections or not. It is read-only and needs no
 * relocation, so it says how far away its copy is, in the same object. */
typedef struct note {
    uint32_t owner_bytes, bytes, layout;
    char owner[sizeof OWNER];
    int32_t distance; /* of the copy from here */
} note;

enum { LAYOUT = 1 };

extern copy pki_this_copy; /* with linkage, so that the note finds it after -flto, too */
__attribute__((used)) copy pki_this_copy;

__asm__(".pushsection .note.perfkit, \"a\", %note\n"
        ".balign 4\n"
        ".long 8, 4, 1\n" /* as the layout above */
        ".asciz \"" OWNER "\"\n"
        ".long pki_this_copy - .\n"
        ".popsection\n");
_Static_assert(sizeof OWNER == 8 && LAYOUT == 1 && sizeof(note) == 24, "as it is written here");

typedef struct other {
    char version[16];
    char where[160];
} other;

/* Is that much at this address of the object in memory, and may it be used like that? */
static bool is_there(const struct dl_phdr_info *object, uintptr_t at, size_t size, uint32_t flags)
{
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t from = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & flags) == flags && at >= from &&
            size <= segment->p_memsz && at - from <= segment->p_memsz - size)
            return true;
    }
    return false;
}

/* The copy that this is the note of, if it is one and has a session. */
static copy *open_copy(const struct dl_phdr_info *object, const note *n)
{
    if (n->owner_bytes != sizeof OWNER || n->bytes != sizeof n->distance || n->layout != LAYOUT ||
        memcmp(n->owner, OWNER, sizeof OWNER) != 0)
        return NULL;
    copy *c = (copy *)((uintptr_t)&n->distance + (uintptr_t)(intptr_t)n->distance);
    bool usable = c != &pki_this_copy && is_there(object, (uintptr_t)c, sizeof *c, PF_R | PF_W);
    return usable && __atomic_load_n(&c->open, __ATOMIC_SEQ_CST) ? c : NULL;
}

static uint64_t aligned(uint64_t size, uint64_t align)
{
    return (size + align - 1) & ~(align - 1);
}

static copy *search_notes(const struct dl_phdr_info *object, uintptr_t at, size_t size,
                          size_t align)
{
    while (size >= sizeof(note)) {
        const note *n = (const note *)at;
        copy *found = open_copy(object, n);
        uint64_t head = aligned(offsetof(note, owner) + (uint64_t)n->owner_bytes, align);
        uint64_t whole = aligned(head + n->bytes, align);
        if (found || whole >= size)
            return found;
        at += whole;
        size -= whole;
    }
    return NULL;
}

static copy *search_object(const struct dl_phdr_info *object)
{
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t at = object->dlpi_addr + part->p_vaddr;
        copy *found = NULL;
        if (part->p_type == PT_NOTE && at % 4 == 0 && is_there(object, at, part->p_filesz, PF_R))
            found = search_notes(object, at, part->p_filesz, part->p_align == 8 ? 8 : 4);
        if (found)
            return found;
    }
    return NULL;
}

static int find_other(struct dl_phdr_info *object, size_t size, void *result)
{
    other *o = result;
    copy *found = search_object(object);
    (void)size;
    if (!found)
        return 0;
    __atomic_fetch_add(&found->refused, 1, __ATOMIC_RELAXED);
    snprintf(o->version, sizeof o->version, "%.15s", found->version);
    snprintf(o->where, sizeof o->where, "%s",
             object->dlpi_name[0] ? object->dlpi_name : "the program");
    return 1;
}

/* Within a round through the objects the loader's lock is held (and may be taken again), so of two
 * copies that start at once the second one sees the first. musl's loader holds none here: there
 * both may give way. */
static int claim(struct dl_phdr_info *object, size_t size, void *result)
{
    (void)object;
    (void)size;
    __atomic_store_n(&pki_this_copy.open, 1, __ATOMIC_SEQ_CST);
    if (dl_iterate_phdr(find_other, result))
        __atomic_store_n(&pki_this_copy.open, 0, __ATOMIC_RELAXED);
    return 1;
}

pk_status pki_duplicates_claim(void)
{
    other o = {"", ""};
    snprintf(pki_this_copy.version, sizeof pki_this_copy.version, "%s", pk_version());
    __atomic_store_n(&pki_this_copy.refused, 0, __ATOMIC_RELAXED);
    pki_dl_each(claim, &o);
    if (!o.where[0])
        return PK_OK;
    return pki_fail(PK_EBUSY,
                    "another copy of perfkit (%s, in %s) has a session in this process: link all of"
                    " the process with one libpk.so",
                    o.version, o.where);
}

void pki_duplicates_release(void)
{
    __atomic_store_n(&pki_this_copy.open, 0, __ATOMIC_RELEASE);
}

uint32_t pki_duplicates_refused(void)
{
    return __atomic_load_n(&pki_this_copy.refused, __ATOMIC_RELAXED);
}
