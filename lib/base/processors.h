/* lib/base/processors.h - processors: their files, events and slots */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files.h"

/* ---- what the kernel's files say of processors and of who had them ---- */

/* `root` stands before each path, "" for the machine itself: tests have trees of their own. What a
 * file does not say, or is not there, is 0 or false. Each call reads some small files. */

#define PKI_CPUS_MOST 1024u
#define PKI_NODES_MOST 64u

/* Processors, by number. */
typedef struct pki_cpus {
    uint64_t bits[PKI_CPUS_MOST / 64];
} pki_cpus;

/* "0-3,8" */
pki_cpus pki_cpus_in(const char *list);
unsigned pki_cpus_count(const pki_cpus *set);
bool pki_cpus_have(const pki_cpus *set, unsigned number);
void pki_cpus_add(pki_cpus *into, const pki_cpus *more);
bool pki_cpus_meet(const pki_cpus *a, const pki_cpus *b);

/* What a thread of this process had, since it began. */
typedef struct pki_thread_cpu {
    uint64_t running, ready; /* ns on a processor; ready to run and without one */
    uint64_t forced, own;    /* switches away from it: taken from it, and given up by itself */
    pki_cpus allowed;
} pki_thread_cpu;

/* with_status: forced, own and allowed, too. */
bool pki_thread_cpu_read(const char *root, uint32_t tid, bool with_status, pki_thread_cpu *out);

/* The process's threads; how many of them have found room. */
size_t pki_thread_ids(const char *root, uint32_t *tids, size_t room);

/* The tightest bound on CPU time of the cgroups that the process is in, version 1 or 2. */
typedef struct pki_quota {
    double processors;           /* 0: there is none */
    uint64_t periods, throttled; /* so many have passed in which it ran, and it was stopped in */
    uint64_t throttled_ns;
} pki_quota;

bool pki_quota_read(const char *root, pki_quota *out);

/* ns that a hypervisor has had the processors of this machine while something was to run on them,
 * all of them together, in steps of a clock tick; 0: or not known. */
uint64_t pki_stolen_read(const char *root);

/* kHz, the mean of these processors (or the first of them) now, and the most that they can do;
 * false if not known. */
bool pki_clock_rates_read(const char *root, const pki_cpus *of, double *now, double *most);

/* How often these have held their clock down for heat. */
uint64_t pki_heat_read(const char *root, const pki_cpus *of);

/* Bytes of the process's own memory on each node, and which of these its processors belong to. */
typedef struct pki_nodes {
    unsigned count;
    uint64_t bytes[PKI_NODES_MOST];
    bool ours[PKI_NODES_MOST];
} pki_nodes;

/* On a machine of one node nothing is read: false. A large process takes the kernel a while. */
bool pki_nodes_read(const char *root, const pki_cpus *allowed, pki_nodes *out);

/* ---- what the processor and the kernel count of a thread (perf_event_open(2)) ---- */

/* A group of events counts together: all of it is on the processor, or none. It is read through the
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
 * By the thread that is counted, but for pki_perf_close. */

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

/* ---- which events tell what became of a thread's pipeline slots ---- */

/* In each cycle a processor's core can take so many operations further; each of these places is a
 * slot. Level 1 of the top-down method (Yasin, "A Top-Down Method for Performance Analysis and
 * Counters Architecture", ISPASS 2014) says what became of them: what was in it retired; it was
 * thrown away; the front end had nothing for it; the back end could not take it.
 *
 * Intel, from Ice Lake on: the kernel describes one event for each of the four, in slots
 * (/sys/bus/event_source/devices/cpu/events; cpu_core/ where there are two sorts of cores). They
 * have to be in a group that `slots` leads, and are read with it by read(2): what rdpmc gives of
 * them are shares that only together with the slots are a count (linux, tools/perf/Documentation/
 * topdown.txt).
 *
 * AMD, Zen 4 and Zen 5: slots in which nothing was dispatched are counted, by reason, and so are
 * the operations that were dispatched and those that retired (linux, tools/perf/pmu-events/arch/
 * x86/amdzen4 and amdzen5, "PipelineL1"; AMD's Processor Programming References). Of 6 or 8 slots a
 * cycle those without a dispatch since it was the other thread's turn (SMT contention) are left
 * out: what is left is dispatched + front-end bound + back-end bound, the slots that this thread
 * had, which is what `slots` is on Intel's. So neither cycles nor a processor's width are needed.
 */

/* In this order, in slots: retiring, bad speculation, front-end bound, back-end bound. */
enum { PKI_SLOTS_RETIRING, PKI_SLOTS_BAD_SPECULATION, PKI_SLOTS_FRONTEND, PKI_SLOTS_BACKEND };

typedef struct pki_topdown {
    pki_perf_event event[PKI_PERF_MOST]; /* as pki_perf_open wants them */
    unsigned count;                      /* 0: there are none */
    bool counts_dispatched;              /* the second are all that were dispatched: those that
                                            retired are to be subtracted */
} pki_topdown;

/* False: in one sentence without its full stop, why there are none. */
bool pki_topdown_find(pki_topdown *out, char *why_not, size_t size);

/* The kernel's description of an event, "event=0x00,umask=0x4", as perf_event_attr.config. False:
 * it says more, or less. */
bool pki_topdown_config(const char *text, uint64_t *config);

/* For tests: the folder that stands for /. */
extern const char *pki_topdown_root;

/* ---- a ring of the kernel's records ---- */

/* Of one thread of the process, by an event of perf_event_open(2); all zero: not open. */
typedef struct pki_kernel_ring {
    struct perf_event_mmap_page *page;
    uint64_t bytes, before; /* of records; of the page before them */
} pki_kernel_ring;

typedef struct pki_kernel_record {
    struct perf_event_header header;
    uint64_t words[4]; /* the first ones behind it */
} pki_kernel_record;

/* False: errno. So many pages, a power of two; fewer where these are not to be had. */
bool pki_kernel_ring_open(pki_kernel_ring *ring, struct perf_event_attr *attributes, uint32_t tid,
                          size_t pages);
void pki_kernel_ring_close(pki_kernel_ring *ring);

/* The oldest record, which it takes out: as much of it as fits, at least its header. 0: there is
 * none. */
size_t pki_kernel_ring_take(pki_kernel_ring *ring, void *to, size_t room);
bool pki_kernel_ring_next(pki_kernel_ring *ring, pki_kernel_record *record);
