/* lib/base/perf.h - what the processor and the kernel count of a thread (perf_event_open(2)).
 *
 * A group of events counts together: all of it is on the processor, or none. It is read through the
 * pages that the kernel maps for it, without a system call, where the kernel and the processor let
 * a program (x86: rdpmc; arm64: kernel.perf_user_access), and by read(2) otherwise. Which way a
 * page is read: linux/perf_event.h, struct perf_event_mmap_page; a writer (the kernel, on this
 * processor) makes its `lock` odd or changes it, so a reading between two equal ones is whole.
 *
 * Where several groups share the processor's counters, each is on it in turns. What was counted
 * then stands for the whole time by enabled / running; who takes the difference of two readings
 * scales it by the differences of both.
 *
 * A descriptor may be closed by the program, and its number be another file's: each reading by
 * read(2) looks before (pki_own_check and the kernel's number of the event). A page goes on working
 * then, since a mapping keeps its event.
 *
 * By the thread that is counted, but for pki_perf_close.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/own.h"

#define PKI_PERF_EVENTS 4                   /* of a group... */
#define PKI_PERF_MOST (PKI_PERF_EVENTS + 1) /* ...and one more that leads it, and is no figure */

typedef struct pki_perf_event {
    const char *name;
    uint32_t type;
    uint64_t config;
    bool of_kernel; /* it happens in the kernel alone: nothing is left where that is not counted */
} pki_perf_event;

/* In this order: instructions, cycles, cache misses, branch misses; time on a processor (ns), page
 * faults, context switches, migrations to another processor. */
extern const pki_perf_event pki_perf_hardware[PKI_PERF_EVENTS];
extern const pki_perf_event pki_perf_software[PKI_PERF_EVENTS];

/* All zero: nothing is open. */
typedef struct pki_perf_group {
    unsigned count;               /* events that are open... */
    uint8_t which[PKI_PERF_MOST]; /* ...and which of those asked for */
    int error;                    /* of those that are not: the last errno */
    uint64_t id[PKI_PERF_MOST];   /* the kernel's: all events are one inode */
    pki_owned own[PKI_PERF_MOST];
    void *page[PKI_PERF_MOST]; /* NULL: not mapped */
} pki_perf_group;

typedef struct pki_perf_reading {
    uint64_t value[PKI_PERF_MOST]; /* by what was asked for; 0: not open */
    uint64_t enabled, running;     /* ns; not set if... */
    bool direct; /* ...it was read without a system call, as what has been on the processor all the
                    time */
} pki_perf_reading;

/* How the kernel is asked; for tests, which set another one. */
typedef struct pki_perf_calls {
    int (*open)(void *attr, int group_fd); /* of the calling thread, on any processor; errno */
    bool (*id)(int fd, uint64_t *id);
    bool (*turn)(int fd, bool on);
    long (*read)(int fd, void *to, size_t size);
    void *(*map)(int fd); /* its page; NULL */
    void (*unmap)(void *page);
    uint64_t (*counter)(uint32_t index); /* the processor's, from 0 */
} pki_perf_calls;

extern const pki_perf_calls *pki_perf_system;

/* Opens what can be had of them, on: they count; else they wait to be turned on. As one group, in
 * user mode alone where the kernel allows no more. PKI_PERF_MOST events: the last of them has to
 * lead the group, so it is opened first, and nothing is without it. False if none can be had:
 * errno. */
bool pki_perf_open(pki_perf_group *group, const pki_perf_event *events, unsigned count, bool on);

/* Those that are open, a bit each; a leader that is no figure has none. */
uint32_t pki_perf_mask(const pki_perf_group *group);

void pki_perf_turn(const pki_perf_group *group, bool on);

/* False if it cannot be read any more. read(2) gives pki_perf_read_size bytes where it is not
 * direct: to the kernel that is I/O of the program. */
bool pki_perf_read(const pki_perf_group *group, pki_perf_reading *reading);

size_t pki_perf_read_size(const pki_perf_group *group);

/* What has been counted between two readings, by what was asked for, scaled. False if the group was
 * on no processor in between, or that cannot be told. */
bool pki_perf_between(const pki_perf_reading *from, const pki_perf_reading *to,
                      double value[PKI_PERF_EVENTS]);

void pki_perf_close(pki_perf_group *group);

/* Closes only what it has open, and leaves pages alone, which a child of fork() does not have. */
void pki_perf_after_fork(pki_perf_group *group);

/* In one sentence without its full stop, why there is none, by errno. */
void pki_perf_explain(int error, char *text, size_t size);
