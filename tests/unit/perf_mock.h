/* tests/unit/perf_mock.h - perf_event_open(2) and its pages, as strict as their manual: what the
 * kernel would refuse is refused, with its errno, and whoever reads what is no event fails the
 * test.
 *
 * Its events count what the test says (mock_count), of each thread apart. An event is known by the
 * inode of a file in memory, as descriptors are moved to other numbers.
 */
#ifndef TESTS_PERF_MOCK_H
#define TESTS_PERF_MOCK_H

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/files.h"
#include "base/processors.h"

/* ---- events of pipeline slots ---- */

/* As strict as what describes them: Intel's by linux, tools/perf/Documentation/topdown.txt ("Limits
 * on Intel Ice Lake"); AMD's by its Processor Programming References, as linux,
 * tools/perf/pmu-events/arch/x86/amdzen5 has them. */
typedef enum mock_core { MOCK_OTHER, MOCK_INTEL, MOCK_ZEN } mock_core;

#define MOCK_SLOTS 0x0400u

static inline bool mock_topdown_leads(mock_core core, uint64_t config)
{
    return core == MOCK_INTEL && config == MOCK_SLOTS;
}

/* What it would have counted so far, of slots by what became of them: retiring, bad speculation,
 * front end, back end. False: there is no such event. */
static inline bool mock_topdown_count(mock_core core, uint64_t config, const uint64_t slots[4],
                                      uint64_t *count)
{
    const struct {
        mock_core of;
        uint64_t config, count;
    } known[] = {
        {MOCK_INTEL, MOCK_SLOTS, slots[0] + slots[1] + slots[2] + slots[3]},
        {MOCK_INTEL, 0x8000, slots[0]},
        {MOCK_INTEL, 0x8100, slots[1]},
        {MOCK_INTEL, 0x8200, slots[2]},
        {MOCK_INTEL, 0x8300, slots[3]},
        {MOCK_ZEN, 0xc1, slots[0]},             /* PMCx0C1: ops that retired */
        {MOCK_ZEN, 0x7aa, slots[0] + slots[1]}, /* PMCx0AA, 07h: ops that were dispatched */
        {MOCK_ZEN, 0x1000001a0u, slots[2]},     /* PMCx1A0, 01h: nothing from the front end */
        {MOCK_ZEN, 0x100001ea0u, slots[3]},     /* PMCx1A0, 1Eh: the back end stalled */
    };
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].of == core && known[i].config == config) {
            *count = known[i].count;
            return true;
        }
    return false;
}

/* The group's leader, or NULL. */
static inline int mock_topdown_refusal(mock_core core, const struct perf_event_attr *a,
                                       const uint64_t *leader)
{
    static const uint64_t none[4];
    uint64_t count;
    bool slots = mock_topdown_leads(core, a->config);
    if (a->config1 || a->config2)
        return EINVAL; /* they support no filters */
    if (!mock_topdown_count(core, a->config, none, &count))
        return EINVAL;
    if (core == MOCK_INTEL && slots == (leader != NULL))
        return EINVAL; /* slots lead, the others follow */
    if (core == MOCK_INTEL && leader && !mock_topdown_leads(core, *leader))
        return EINVAL; /* what they are shares of */
    return 0;
}

/* ---- the kernel ---- */

#define MOCK_EVENTS 4096
#define MOCK_WIDTH 48
#define MOCK_START ((uint64_t)1 << 47) /* of the processor's counters: their sign is set soon */

typedef struct mock_event {
    uint64_t inode; /* 0: none */
    uint64_t config;
    uint32_t type, leader, members;
    int thread;
    bool on;
    uint64_t from, held; /* the truth when it was turned on; what it had counted until it was off */
} mock_event;

/* What the machine and the kernel let one do. */
static struct {
    int refuses;      /* every call, with that errno */
    bool paranoid;    /* what the kernel does is not to be counted */
    uint32_t most;    /* events open at once; 0: any */
    uint32_t pmu;     /* counters of the processor: a group that needs more is refused */
    uint32_t missing; /* a bit for each hardware event that the processor does not have */
    bool pages;       /* can be read without the kernel */
    bool no_map;      /* refuses to map them */
    double share;     /* of the time that the processor's are on it; 1: always */
    uint32_t moves;   /* so many readings of a page are torn */
    mock_core core;   /* which counters of slots it has */
} mock;

static pthread_mutex_t mock_lock = PTHREAD_MUTEX_INITIALIZER; /* of the list below */
static mock_event mock_events[MOCK_EVENTS];
static uint32_t mock_made, mock_reads, mock_direct;
static int mock_threads;
static _Thread_local int mock_me;
static _Thread_local uint64_t mock_truth[PKI_PERF_EVENTS], mock_slots[PKI_PERF_EVENTS], mock_time;
static _Thread_local struct perf_event_mmap_page mock_page[PKI_PERF_EVENTS];

static inline int mock_thread(void)
{
    if (!mock_me)
        mock_me = 1 + pki_fetch_add(&mock_threads, 1);
    return mock_me;
}

/* This thread has done so much. */
static inline void mock_count(uint64_t instructions, uint64_t cycles, uint64_t cache,
                              uint64_t branch)
{
    const uint64_t more[] = {instructions, cycles, cache, branch};
    for (int i = 0; i < PKI_PERF_EVENTS; i++)
        mock_truth[i] += more[i];
    mock_time += 1000;
}

/* So many slots of it went to each of the four. */
static inline void mock_spend(uint64_t retiring, uint64_t bad, uint64_t frontend, uint64_t backend)
{
    const uint64_t more[] = {retiring, bad, frontend, backend};
    for (int i = 0; i < PKI_PERF_EVENTS; i++)
        mock_slots[i] += more[i];
    mock_time += 1000;
}

static inline uint32_t mock_find(int fd)
{
    struct stat file;
    if (fstat(fd, &file) == 0)
        for (uint32_t i = 1; i <= mock_made && i < MOCK_EVENTS; i++)
            if (mock_events[i].inode == file.st_ino)
                return i;
    return 0;
}

static inline int mock_fails(int error)
{
    errno = error;
    return -1;
}

/* Which of mock_truth: the hardware's four, and for software's what their numbers say. */
static inline uint32_t mock_which(const mock_event *e)
{
    static const uint32_t hardware[PERF_COUNT_HW_MAX] = {[PERF_COUNT_HW_INSTRUCTIONS] = 0,
                                                         [PERF_COUNT_HW_CPU_CYCLES] = 1,
                                                         [PERF_COUNT_HW_CACHE_MISSES] = 2,
                                                         [PERF_COUNT_HW_BRANCH_MISSES] = 3};
    return e->type == PERF_TYPE_HARDWARE ? hardware[e->config] : e->config % PKI_PERF_EVENTS;
}

static inline uint64_t mock_true(const mock_event *e)
{
    uint64_t slots = 0;
    if (e->type != PERF_TYPE_RAW)
        return mock_truth[mock_which(e)];
    mock_topdown_count(mock.core, e->config, mock_slots, &slots);
    return slots;
}

/* Software's are always counted. */
static inline double mock_share(const mock_event *e)
{
    return e->type != PERF_TYPE_SOFTWARE ? mock.share : 1;
}

/* Descriptors of events that are open in this process. */
static inline uint32_t mock_open_now(void)
{
    char path[64], target[128];
    uint32_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/fd/%.20s", e->d_name);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        count += strstr(target, "mock-event") != NULL;
    }
    closedir(folder);
    return count;
}

static inline int mock_refusal(const struct perf_event_attr *a, int group_fd)
{
    const mock_event *leader = group_fd < 0 ? NULL : &mock_events[mock_find(group_fd)];
    if (mock.refuses)
        return mock.refuses;
    if (a->size != sizeof *a || a->sample_period || a->sample_type || a->inherit)
        return EINVAL;
    if (a->read_format !=
        (PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING))
        return EINVAL;
    if (a->type != PERF_TYPE_HARDWARE && a->type != PERF_TYPE_SOFTWARE &&
        (a->type != PERF_TYPE_RAW || mock.core == MOCK_OTHER))
        return ENOENT;
    if (a->type != PERF_TYPE_RAW &&
        a->config >= (a->type == PERF_TYPE_HARDWARE ? PERF_COUNT_HW_MAX : PERF_COUNT_SW_MAX))
        return EINVAL;
    if (mock.paranoid && !(a->exclude_kernel && a->exclude_hv))
        return EACCES;
    if (mock.most && mock_open_now() >= mock.most)
        return EMFILE;
    if (leader && leader == mock_events)
        return EBADF;
    if (leader && (leader->leader || leader->thread != mock_thread() || a->disabled))
        return EINVAL; /* of a sibling, another thread's, or one that would wait for ever */
    if (a->type == PERF_TYPE_HARDWARE && mock.missing >> a->config & 1)
        return ENOENT;
    if (a->type != PERF_TYPE_SOFTWARE && mock.pmu && leader && leader->members >= mock.pmu)
        return EINVAL;
    return a->type == PERF_TYPE_RAW
               ? mock_topdown_refusal(mock.core, a, leader ? &leader->config : NULL)
               : 0;
}

static inline int mock_do_open(void *attr, int group_fd)
{
    const struct perf_event_attr *a = attr;
    struct stat file;
    int error = mock_refusal(a, group_fd);
    if (error)
        return mock_fails(error);
    int fd = memfd_create("mock-event", MFD_CLOEXEC);
    if (fd < 0 || fstat(fd, &file) != 0)
        return -1;
    uint32_t i = ++mock_made, leader = mock_find(group_fd);
    assert_true(i < MOCK_EVENTS);
    mock_event *e = &mock_events[i];
    *e = (mock_event){.type = a->type,
                      .config = a->config,
                      .leader = leader,
                      .members = 1,
                      .on = !a->disabled && !leader, /* and a sibling with its group */
                      .thread = mock_thread()};
    mock_events[leader ? leader : i].members += leader ? 1 : 0;
    e->from = mock_true(e);
    e->inode = file.st_ino;
    return fd;
}

static inline bool mock_do_id(int fd, uint64_t *id)
{
    *id = mock_find(fd);
    errno = *id ? errno : ENOTTY;
    return *id;
}

static inline uint64_t mock_value(const mock_event *e)
{
    uint64_t since = e->on ? mock_true(e) - e->from : 0;
    return e->held + (uint64_t)((double)since * mock_share(e) + 0.5);
}

static inline bool mock_do_turn(int fd, bool on)
{
    uint32_t leader = mock_find(fd);
    assert_true(leader && !mock_events[leader].leader);
    for (uint32_t i = leader; i <= mock_made; i++) {
        mock_event *e = &mock_events[i];
        if (i != leader && e->leader != leader)
            continue;
        e->held = mock_value(e);
        e->on = on;
        e->from = mock_true(e);
    }
    return true;
}

/* Of a reading of slots: what each metric is of those since the last one, in 255 parts, as the
 * register has it; then it begins anew. */
static inline void mock_settle(uint32_t leader)
{
    mock_event *slots = &mock_events[leader];
    uint64_t now = mock_true(slots), all = now - slots->from;
    if (!slots->on || !mock_topdown_leads(mock.core, slots->config) || slots->type != PERF_TYPE_RAW)
        return;
    for (uint32_t i = leader + 1; i <= mock_made; i++) {
        mock_event *e = &mock_events[i];
        if (e->leader != leader)
            continue;
        uint64_t part = mock_true(e), of_255 = all ? ((part - e->from) * 255 + all / 2) / all : 0;
        e->held += (uint64_t)((double)all * mock.share) * of_255 / 255;
        e->from = part;
    }
    slots->held = mock_value(slots);
    slots->from = now;
}

/* What is no event is somebody else's: to read it would take what is theirs. */
static inline long mock_do_read(int fd, void *to, size_t size)
{
    uint32_t leader = mock_find(fd);
    uint64_t got[3 + PKI_PERF_MOST];
    unsigned n = 0;
    if (!leader || mock_events[leader].leader || mock_events[leader].thread != mock_thread())
        fail_msg("read what is no event, no leader's, or another thread's");
    mock_settle(leader);
    for (uint32_t i = leader; i <= mock_made; i++)
        if ((i == leader || mock_events[i].leader == leader) && n < PKI_PERF_MOST)
            got[3 + n++] = mock_value(&mock_events[i]);
    got[0] = n;
    got[1] = mock_time;
    got[2] = (uint64_t)((double)mock_time * mock_share(&mock_events[leader]));
    if (size < (3 + n) * sizeof *got)
        return mock_fails(ENOSPC);
    memcpy(to, got, (3 + n) * sizeof *got);
    pki_fetch_add(&mock_reads, 1u);
    return (long)((3 + n) * sizeof *got);
}

/* One a thread and event, which lasts as the thread does. The first word of each torn reading is
 * another one's. */
static inline void *mock_do_map(int fd)
{
    const mock_event *e = &mock_events[mock_find(fd)];
    assert_true(e != mock_events && e->type == PERF_TYPE_HARDWARE);
    struct perf_event_mmap_page *page = &mock_page[mock_which(e)];
    if (mock.no_map)
        return NULL;
    page->cap_user_rdpmc = mock.pages;
    page->index = mock.pages ? mock_which(e) + 1 : 0;
    page->pmc_width = MOCK_WIDTH;
    page->offset = (int64_t)(MOCK_START - e->from);
    page->time_enabled = page->time_running = 5;
    return page;
}

static inline void mock_unmap(void *page)
{
    (void)page;
}

/* A signed number of 48 bits from its lowest: with the offset it is the truth. */
static inline uint64_t mock_counter(uint32_t index)
{
    assert_true(index < PKI_PERF_EVENTS);
    pki_fetch_add(&mock_direct, 1u);
    if (mock.moves) {
        mock.moves--;
        mock_page[index].lock++;
        return 12345;
    }
    return (mock_truth[index] - MOCK_START) & (((uint64_t)1 << MOCK_WIDTH) - 1);
}

/* ---- the n-th call of a sort fails ---- */

typedef enum mock_call { MOCK_NONE, MOCK_OPEN, MOCK_ID, MOCK_TURN, MOCK_READ, MOCK_MAP } mock_call;

static struct {
    mock_call call;
    uint32_t left; /* calls of it up to the one that fails, that one included */
    int error;
    bool hit;
} mock_failure;

static inline bool mock_fails_now(mock_call call)
{
    if (mock_failure.call != call || mock_failure.hit || --mock_failure.left)
        return false;
    mock_failure.hit = true;
    errno = mock_failure.error;
    return true;
}

/* ---- one at a time ---- */

static inline int mock_open(void *attr, int group_fd)
{
    pthread_mutex_lock(&mock_lock);
    int fd = mock_fails_now(MOCK_OPEN) ? -1 : mock_do_open(attr, group_fd);
    pthread_mutex_unlock(&mock_lock);
    return fd;
}

static inline bool mock_id(int fd, uint64_t *id)
{
    pthread_mutex_lock(&mock_lock);
    bool known = mock_fails_now(MOCK_ID) ? false : mock_do_id(fd, id);
    pthread_mutex_unlock(&mock_lock);
    return known;
}

static inline bool mock_turn(int fd, bool on)
{
    pthread_mutex_lock(&mock_lock);
    bool done = mock_fails_now(MOCK_TURN) ? false : mock_do_turn(fd, on);
    pthread_mutex_unlock(&mock_lock);
    return done;
}

static inline long mock_read(int fd, void *to, size_t size)
{
    pthread_mutex_lock(&mock_lock);
    long got = mock_fails_now(MOCK_READ) ? -1 : mock_do_read(fd, to, size);
    pthread_mutex_unlock(&mock_lock);
    return got;
}

static inline void *mock_map(int fd)
{
    pthread_mutex_lock(&mock_lock);
    void *page = mock_fails_now(MOCK_MAP) ? NULL : mock_do_map(fd);
    pthread_mutex_unlock(&mock_lock);
    return page;
}

static const pki_perf_calls mock_calls = {mock_open, mock_id,    mock_turn,   mock_read,
                                          mock_map,  mock_unmap, mock_counter};

static inline int use_mock(void **state)
{
    (void)state;
    memset(&mock, 0, sizeof mock);
    memset(mock_truth, 0, sizeof mock_truth);
    memset(mock_slots, 0, sizeof mock_slots);
    mock.share = 1;
    mock_reads = mock_direct = 0;
    pki_perf_system = &mock_calls;
    return 0;
}

/* Nothing stays open. */
static inline int end_mock(void **state)
{
    (void)state;
    return mock_open_now() == 0 ? 0 : -1;
}

#endif
