#include "comm/mpi/matched.h"

#define WINDOW 16 /* places that are looked at, from the hash on */
#define EMPTY UINT64_C(0)
#define BUSY UINT64_C(1) /* being read or written */

static uint64_t keys[PKI_MPI_MATCHED + WINDOW];
static pki_mpi_matched kept[PKI_MPI_MATCHED + WINDOW];
static uint32_t count;

static uint64_t key_of(MPI_Message message)
{
    uint64_t key = (uint64_t)(uintptr_t)message;
    return key > BUSY ? key : key + 2;
}

static uint32_t slot_of(uint64_t key)
{
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) % PKI_MPI_MATCHED;
}

/* The first place whose key was this one, which is busy now; PKI_MPI_UNKNOWN: there is none. */
static uint32_t seize(uint64_t key, uint64_t from)
{
    for (uint32_t i = slot_of(key), end = i + WINDOW; i < end; i++) {
        uint64_t found = from;
        if (__atomic_load_n(&keys[i], __ATOMIC_RELAXED) == from &&
            __atomic_compare_exchange_n(&keys[i], &found, BUSY, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return i;
    }
    return PKI_MPI_UNKNOWN;
}

static void release(uint32_t i, uint64_t key)
{
    __atomic_store_n(&keys[i], key, __ATOMIC_RELEASE); /* pairs with seize */
}

bool pki_mpi_matched_insert(MPI_Message message, const pki_mpi_matched *found)
{
    uint64_t key = key_of(message);
    uint32_t i = seize(key, EMPTY);
    if (i == PKI_MPI_UNKNOWN)
        return false;
    kept[i] = *found;
    __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    release(i, key);
    return true;
}

pki_mpi_matched pki_mpi_matched_remove(MPI_Message message)
{
    pki_mpi_matched taken = {.waited = 0};
    uint64_t key = key_of(message);
    bool any = __atomic_load_n(&count, __ATOMIC_RELAXED) != 0;
    uint32_t i = any ? seize(key, key) : PKI_MPI_UNKNOWN;
    if (i == PKI_MPI_UNKNOWN)
        return taken;
    taken = kept[i];
    release(i, EMPTY);
    __atomic_sub_fetch(&count, 1, __ATOMIC_RELAXED);
    return taken;
}
