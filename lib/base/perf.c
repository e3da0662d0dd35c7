#include "base/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pki_pmc.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"

#define PAGE 4096u /* at least; the header is its beginning */
#define TRIES 16   /* to read a page that changes meanwhile */

const pki_perf_event pki_perf_hardware[PKI_PERF_EVENTS] = {
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false},
    {"cache misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false},
    {"branch misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false},
};

const pki_perf_event pki_perf_software[PKI_PERF_EVENTS] = {
    {"time on a processor", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false},
    {"page faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false},
    {"context switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true},
    {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, true},
};

/* ---- the kernel ---- */

static int open_event(void *attr, int group_fd)
{
    return (int)syscall(SYS_perf_event_open, attr, 0, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
}

/* Without ioctl(): this request fits the type that glibc has for it, and not musl's. */
static bool read_id(int fd, uint64_t *id)
{
    return syscall(SYS_ioctl, fd, PERF_EVENT_IOC_ID, id) == 0;
}

/* A constant at the call: C libraries disagree about the type of requests. */
static bool turn_event(int fd, bool on)
{
    return (on ? ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) : ioctl(fd, PERF_EVENT_IOC_DISABLE, 0)) == 0;
}

static long read_event(int fd, void *to, size_t size)
{
    return (long)read(fd, to, size);
}

static void *map_page(int fd)
{
    void *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

static void unmap_page(void *page)
{
    munmap(page, PAGE);
}

static const pki_perf_calls kernel = {open_event, read_id,    turn_event,     read_event,
                                      map_page,   unmap_page, pki_pmc_counter};
const pki_perf_calls *pki_perf_system = &kernel;

/* ---- opening ---- */

static int try_one(const pki_perf_event *event, int leader, bool user_alone)
{
    struct perf_event_attr wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.type = event->type;
    wanted.size = sizeof wanted;
    wanted.config = event->config;
    wanted.config1 = event->type == PERF_TYPE_HARDWARE ? PKI_PMC_CONFIG1 : 0;
    wanted.disabled = leader < 0;
    wanted.exclude_kernel = user_alone;
    wanted.exclude_hv = user_alone;
    wanted.read_format =
        PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_GROUP;
    return pki_fd_up(pki_perf_system->open(&wanted, leader));
}

/* What a program does is in user mode; what the kernel does for it, as far as one may see that. */
static int open_one(const pki_perf_event *event, int leader)
{
    bool user_alone = event->type != PERF_TYPE_SOFTWARE;
    int fd = try_one(event, leader, user_alone);
    bool refused = fd < 0 && (errno == EACCES || errno == EPERM);
    return refused && !user_alone && !event->of_kernel ? try_one(event, leader, true) : fd;
}

static void add(pki_perf_group *g, const pki_perf_event *event, unsigned which)
{
    unsigned n = g->count;
    pki_owned *own = &g->own[n];
    int fd = open_one(event, n ? g->own[0].fd : -1);
    if (fd < 0)
        g->error = errno;
    if (!pki_own_adopt(own, fd))
        return;
    if (!pki_perf_system->id(fd, &g->id[n])) {
        g->error = errno;
        pki_own_close(own);
        return;
    }
    g->page[n] = event->type == PERF_TYPE_HARDWARE ? pki_perf_system->map(fd) : NULL;
    g->which[n] = (uint8_t)which;
    g->count++;
}

/* It is turned on as a whole: what joins one that counts is left out until the thread's next turn
 * on a processor (seen with software events of Linux 6.18). */
bool pki_perf_open(pki_perf_group *g, const pki_perf_event *events, unsigned count, bool on)
{
    unsigned leads = count == PKI_PERF_MOST ? PKI_PERF_EVENTS : 0;
    memset(g, 0, sizeof *g);
    for (unsigned i = 0; i < count && (!i || !leads || g->count); i++) {
        unsigned which = (leads + i) % count;
        add(g, &events[which], which);
    }
    if (g->count && on && !pki_perf_system->turn(g->own[0].fd, true)) {
        g->error = errno; /* it would count nothing, and say 0 */
        pki_perf_close(g);
    }
    errno = g->error;
    return g->count > 0;
}

uint32_t pki_perf_mask(const pki_perf_group *g)
{
    uint32_t mask = 0;
    for (unsigned i = 0; i < g->count; i++)
        mask |= 1u << g->which[i];
    return mask & ((1u << PKI_PERF_EVENTS) - 1);
}

static bool is_ours(const pki_perf_group *g, unsigned i)
{
    uint64_t id;
    return pki_own_check(&g->own[i]) && pki_perf_system->id(g->own[i].fd, &id) && id == g->id[i];
}

void pki_perf_turn(const pki_perf_group *g, bool on)
{
    if (g->count && is_ours(g, 0))
        pki_perf_system->turn(g->own[0].fd, on);
}

/* The last first: a group goes with its leader. */
void pki_perf_close(pki_perf_group *g)
{
    for (unsigned i = g->count; i-- > 0;) {
        if (g->page[i])
            pki_perf_system->unmap(g->page[i]);
        if (is_ours(g, i))
            pki_own_close(&g->own[i]);
    }
    g->count = 0;
}

void pki_perf_after_fork(pki_perf_group *g)
{
    memset(g->page, 0, sizeof g->page);
    pki_perf_close(g);
}

/* ---- reading ---- */

/* False: not on the processor now, has not been all the time, or may not be read so. */
static bool read_page(const struct perf_event_mmap_page *page, uint64_t *value)
{
    for (int i = 0; i < TRIES; i++) {
        uint32_t lock = pki_load(&page->lock);
        pki_compiler_fence();
        uint32_t index = pki_load(&page->index);
        uint64_t offset = (uint64_t)pki_load(&page->offset), width = page->pmc_width;
        bool usable = page->cap_user_rdpmc && index && width &&
                      pki_load(&page->time_enabled) == pki_load(&page->time_running);
        uint64_t shift = 64 - (width & 63);
        uint64_t counter = usable ? pki_perf_system->counter(index - 1) : 0;
        pki_compiler_fence();
        if (pki_load(&page->lock) != lock)
            continue;
        if (usable) /* its highest bit is a sign */
            *value = offset + (uint64_t)((int64_t)(counter << (shift & 63)) >> (shift & 63));
        return usable;
    }
    return false;
}

static bool read_pages(const pki_perf_group *g, pki_perf_reading *r)
{
    for (unsigned i = 0; i < g->count; i++)
        if (!g->page[i] || !read_page(g->page[i], &r->value[g->which[i]]))
            return false;
    r->direct = true;
    return true;
}

#define HEAD 3 /* how many, time enabled, time running; values follow */

size_t pki_perf_read_size(const pki_perf_group *g)
{
    return (HEAD + g->count) * sizeof(uint64_t);
}

bool pki_perf_read(const pki_perf_group *g, pki_perf_reading *r)
{
    uint64_t got[HEAD + PKI_PERF_MOST];
    size_t size = pki_perf_read_size(g);
    memset(r, 0, sizeof *r);
    if (g->count && read_pages(g, r))
        return true;
    if (!g->count || !is_ours(g, 0) ||
        pki_perf_system->read(g->own[0].fd, got, size) != (long)size || got[0] != g->count)
        return false;
    r->enabled = got[1];
    r->running = got[2];
    for (unsigned i = 0; i < g->count; i++)
        r->value[g->which[i]] = got[HEAD + i];
    return true;
}

/* One way and the other: it was counted all the time until `from`, or until `to`, and so long has
 * been on no processor in between that it lost its place there. */
bool pki_perf_between(const pki_perf_reading *from, const pki_perf_reading *to,
                      double value[PKI_PERF_EVENTS])
{
    double scale = 1;
    if (from->direct != to->direct)
        return false;
    if (!from->direct) {
        uint64_t enabled = to->enabled - from->enabled, running = to->running - from->running;
        if (running == 0)
            return false;
        scale = (double)enabled / (double)running;
    }
    for (int i = 0; i < PKI_PERF_EVENTS; i++)
        value[i] = (double)(int64_t)(to->value[i] - from->value[i]) * scale;
    return true;
}

void pki_perf_explain(int error, char *text, size_t size)
{
    char paranoid[16] = "?";
    switch (error) {
    case EACCES:
    case EPERM:
        pki_read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
        snprintf(
            text, size,
            "the kernel does not allow them here (kernel.perf_event_paranoid is %s, 2 would do "
            "or CAP_PERFMON; a container's filter may forbid perf_event_open)",
            paranoid);
        break;
    case ENOSYS:
        snprintf(text, size, "this kernel has no perf_event_open");
        break;
    case EMFILE:
    case ENFILE:
        snprintf(text, size, "too many files are open for them (ulimit -n)");
        break;
    case EINVAL:
        snprintf(text, size,
                 "the kernel refuses them (the processor may have too few counters for all at "
                 "once)");
        break;
    default:
        snprintf(text, size,
                 "this machine shows no hardware counters (virtual machines often hide them)");
    }
}
