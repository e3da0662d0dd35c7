#include "merge/pids.h"

#include "memory.h"

#include <stdbool.h>
#include <stdlib.h>

#define FIRST_ROOM 256
#define FIRST_NEW                                                                                  \
    1000000000 /* no kernel gives such numbers; below 2^31, where perfkit's devices begin */

static size_t slot_of(const pids *p, uint32_t process, uint64_t pid)
{
    uint64_t hash = (pid * UINT64_C(0x9E3779B97F4A7C15)) ^ (process * UINT64_C(0xC2B2AE3D27D4EB4F));
    size_t i = (size_t)(hash >> 20) & (p->room - 1);
    while (p->table[i].process && !(p->table[i].process == process && p->table[i].pid == pid))
        i = (i + 1) & (p->room - 1);
    return i;
}

static void grow(pids *p)
{
    pids wider = {.room = p->room ? 2 * p->room : FIRST_ROOM, .count = p->count, .next = p->next};
    wider.table = memory_zeroed(wider.room, sizeof *wider.table);
    for (size_t i = 0; i < p->room; i++)
        if (p->table[i].process)
            wider.table[slot_of(&wider, p->table[i].process, p->table[i].pid)] = p->table[i];
    free(p->table);
    *p = wider;
}

/* Rare: once for each process. */
static bool is_used(const pids *p, uint64_t number)
{
    for (size_t i = 0; i < p->room; i++)
        if (p->table[i].process && p->table[i].becomes == number)
            return true;
    return false;
}

static uint32_t number_for(pids *p, uint64_t pid)
{
    if (pid > 0 && pid <= UINT32_MAX && !is_used(p, pid))
        return (uint32_t)pid;
    p->next = p->next ? p->next : FIRST_NEW;
    while (is_used(p, p->next))
        p->next++;
    return p->next++;
}

static uint32_t ordinal_of(const pids *p, uint32_t process)
{
    uint32_t n = 0;
    for (size_t i = 0; i < p->room; i++)
        n += p->table[i].process == process;
    return n;
}

const pid_entry *pids_of(pids *p, uint32_t process, uint64_t pid)
{
    process++;
    if (p->last && p->last->process == process && p->last->pid == pid)
        return p->last;
    if (2 * (p->count + 1) > p->room)
        grow(p);
    pid_entry *e = &p->table[slot_of(p, process, pid)];
    if (!e->process) {
        pid_entry made = {process, ordinal_of(p, process), pid, number_for(p, pid)};
        *e = made;
        p->count++;
    }
    p->last = e;
    return e;
}

void pids_free(pids *p)
{
    free(p->table);
}
