#include "base/processors.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/files.h"
#include "base/process.h"
#include "pki_pmc.h"

/* ---- what the kernel's files say of processors and of who had them ---- */

#define PKI_CLOCKS_MOST 16u /* processors whose clock is looked at */

#define PATH 512

/* ---- sets of processors ---- */

pki_cpus pki_cpus_in(const char *list)
{
    pki_cpus set = {{0}};
    for (const char *at = list; *at >= '0' && *at <= '9'; at += *at == ',') {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && i < PKI_CPUS_MOST; i++)
            set.bits[i / 64] |= UINT64_C(1) << i % 64;
        at = end;
    }
    return set;
}

unsigned pki_cpus_count(const pki_cpus *set)
{
    unsigned count = 0;
    for (size_t i = 0; i < PKI_COUNT_OF(set->bits); i++)
        count += (unsigned)__builtin_popcountll(set->bits[i]);
    return count;
}

bool pki_cpus_have(const pki_cpus *set, unsigned number)
{
    return number < PKI_CPUS_MOST && set->bits[number / 64] >> number % 64 & 1;
}

void pki_cpus_add(pki_cpus *into, const pki_cpus *more)
{
    for (size_t i = 0; i < PKI_COUNT_OF(into->bits); i++)
        into->bits[i] |= more->bits[i];
}

bool pki_cpus_meet(const pki_cpus *a, const pki_cpus *b)
{
    for (size_t i = 0; i < PKI_COUNT_OF(a->bits); i++)
        if (a->bits[i] & b->bits[i])
            return true;
    return false;
}

/* ---- files ---- */

PKI_PRINTF(4, 5)
static bool read_text(const char *root, char *out, size_t size, const char *format, ...)
{
    char path[PATH];
    int n = snprintf(path, sizeof path, "%s", root);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(path + n, sizeof path - (size_t)n, format, args);
    va_end(args);
    out[0] = '\0';
    return more > 0 && (size_t)(n + more) < sizeof path && pki_small_file_once(path, out, size) > 0;
}

static uint64_t number_of(const char *text, const char *key)
{
    uint64_t value = 0;
    pki_small_file_number(text, key, &value);
    return value;
}

/* ---- threads ---- */

static bool read_schedule(const char *text, pki_thread_cpu *out)
{
    char *end, *behind;
    out->running = strtoull(text, &end, 10);
    out->ready = strtoull(end, &behind, 10);
    return end != text && behind != end && *end == ' ';
}

bool pki_thread_cpu_read(const char *root, uint32_t tid, bool with_status, pki_thread_cpu *out)
{
    char text[4096], list[1024];
    memset(out, 0, sizeof *out);
    if (!read_text(root, text, sizeof text, "/proc/self/task/%u/schedstat", tid) ||
        !read_schedule(text, out))
        return false;
    if (with_status && read_text(root, text, sizeof text, "/proc/self/task/%u/status", tid)) {
        out->own = number_of(text, "voluntary_ctxt_switches");
        out->forced = number_of(text, "nonvoluntary_ctxt_switches");
        if (pki_small_file_field(text, "Cpus_allowed_list", list, sizeof list))
            out->allowed = pki_cpus_in(list);
    }
    return true;
}

size_t pki_thread_ids(const char *root, uint32_t *tids, size_t room)
{
    char path[PATH];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/proc/self/task", root);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && count < room && (e = readdir(folder));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            tids[count++] = (uint32_t)strtoul(e->d_name, NULL, 10);
    if (folder)
        closedir(folder);
    return count;
}

/* ---- the clock ---- */

bool pki_clock_rates_read(const char *root, const pki_cpus *of, double *now, double *most)
{
    char text[64];
    unsigned count = 0;
    *now = *most = 0;
    for (unsigned i = 0; i < PKI_CPUS_MOST && count < PKI_CLOCKS_MOST; i++) {
        const char *format = "/sys/devices/system/cpu/cpu%u/cpufreq/%s";
        if (!pki_cpus_have(of, i) ||
            !read_text(root, text, sizeof text, format, i, "scaling_cur_freq"))
            continue;
        *now += (double)strtoull(text, NULL, 10);
        count++;
        /* What it holds for good, where the kernel tells; else the most of the best core. */
        if (read_text(root, text, sizeof text, format, i, "base_frequency") ||
            read_text(root, text, sizeof text, format, i, "cpuinfo_max_freq"))
            *most = PKI_MAX(*most, (double)strtoull(text, NULL, 10));
    }
    *now = count ? *now / count : 0;
    return *now > 0 && *most > 0;
}

uint64_t pki_heat_read(const char *root, const pki_cpus *of)
{
    char text[64];
    uint64_t all = 0;
    for (unsigned i = 0; i < PKI_CPUS_MOST; i++)
        if (pki_cpus_have(of, i) &&
            read_text(root, text, sizeof text,
                      "/sys/devices/system/cpu/cpu%u/thermal_throttle/core_throttle_count", i))
            all += strtoull(text, NULL, 10);
    return all;
}

/* proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal. */
uint64_t pki_stolen_read(const char *root)
{
    char text[256];
    unsigned long long ticks = 0;
    long hz = sysconf(_SC_CLK_TCK);
    if (!read_text(root, text, sizeof text, "/proc/stat") || hz <= 0 ||
        sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
        return 0;
    return (uint64_t)ticks * (1000000000 / (uint64_t)hz);
}

/* ---- nodes ---- */

/* The number behind " key=" in a line of numa_maps; 0: there is none. */
static uint64_t value_of(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Pages on each node; their sum. */
static uint64_t pages_on_nodes(const char *line, uint64_t pages[PKI_NODES_MOST])
{
    uint64_t sum = 0;
    memset(pages, 0, PKI_NODES_MOST * sizeof *pages);
    for (const char *at = line; (at = strstr(at, " N")) != NULL; at++) {
        char *end;
        unsigned long node = strtoul(at + 2, &end, 10);
        if (end != at + 2 && *end == '=' && node < PKI_NODES_MOST)
            sum += pages[node] = strtoull(end + 1, NULL, 10);
    }
    return sum;
}

/* "7f2a00000000 default file=/lib/x.so anon=9 mapped=45 N0=40 N1=5 kernelpagesize_kB=4": what is
 * the process's own. Of a file's private mapping that are the pages which it has written to; the
 * kernel does not tell where they lie, so each node has as much of them as of the whole. */
static void add_mapping(const char *line, pki_nodes *out)
{
    uint64_t pages[PKI_NODES_MOST], sum = pages_on_nodes(line, pages);
    uint64_t own = value_of(line, " anon="), kib = value_of(line, " kernelpagesize_kB=");
    double bytes = (double)((kib ? kib : 4) << 10) * (own < sum ? (double)own / (double)sum : 1);
    for (unsigned i = 0; own && i < PKI_NODES_MOST; i++)
        out->bytes[i] += (uint64_t)((double)pages[i] * bytes + 0.5);
}

bool pki_nodes_read(const char *root, const pki_cpus *allowed, pki_nodes *out)
{
    char text[1024], path[PATH];
    char *line = NULL;
    size_t room = 0;
    memset(out, 0, sizeof *out);
    if (!read_text(root, text, sizeof text, "/sys/devices/system/node/online"))
        return false;
    const pki_cpus nodes = pki_cpus_in(text);
    out->count = pki_cpus_count(&nodes);
    if (out->count < 2)
        return false;
    for (unsigned i = 0; i < PKI_NODES_MOST; i++)
        if (pki_cpus_have(&nodes, i) &&
            read_text(root, text, sizeof text, "/sys/devices/system/node/node%u/cpulist", i)) {
            const pki_cpus those = pki_cpus_in(text);
            out->ours[i] = pki_cpus_meet(&those, allowed);
        }
    snprintf(path, sizeof path, "%s/proc/self/numa_maps", root);
    FILE *file = fopen(path, "re");
    for (unsigned lines = 0; file && lines < 65536 && getline(&line, &room, file) > 0; lines++)
        add_mapping(line, out);
    free(line);
    if (file)
        fclose(file);
    return file != NULL;
}

/* ---- cgroups ---- */

/* What a group has been throttled by a quota that it no longer has counts, too. */
static void tighten(pki_quota *q, double processors, const char *stat, bool first_version)
{
    bool has = processors > 0, known = q->processors > 0;
    if (has ? known && processors >= q->processors : known || q->throttled)
        return;
    q->processors = has ? processors : 0;
    q->periods = number_of(stat, "nr_periods");
    q->throttled = number_of(stat, "nr_throttled");
    q->throttled_ns = first_version ? number_of(stat, "throttled_time")
                                    : number_of(stat, "throttled_usec") * 1000;
}

/* Of this group and of those above it. */
static void read_second(const char *root, char *group, pki_quota *q)
{
    char text[256], stat[1024];
    for (;;) {
        char *slash;
        read_text(root, stat, sizeof stat, "/sys/fs/cgroup%s/cpu.stat", group);
        if (read_text(root, text, sizeof text, "/sys/fs/cgroup%s/cpu.max", group)) {
            char *end;
            double quota = (double)strtoull(text, &end, 10);
            double period = (double)strtoull(end, NULL, 10);
            tighten(q, end != text && period > 0 ? quota / period : 0, stat, false);
        }
        if (!(slash = strrchr(group, '/')))
            return;
        *slash = '\0';
    }
}

static void read_first(const char *root, const char *mount, const char *group, pki_quota *q)
{
    char text[64], stat[1024];
    const char *format = "/sys/fs/cgroup/%s%s/%s";
    read_text(root, stat, sizeof stat, format, mount, group, "cpu.stat");
    if (!read_text(root, text, sizeof text, format, mount, group, "cpu.cfs_quota_us"))
        return;
    double quota = PKI_MAX((double)strtoll(text, NULL, 10), 0);
    if (read_text(root, text, sizeof text, format, mount, group, "cpu.cfs_period_us"))
        tighten(q, quota / PKI_MAX((double)strtoll(text, NULL, 10), 1), stat, true);
}

/* "4:cpu,cpuacct:/group": inside a container the group may be the mount's root. */
static void read_group(const char *root, char *line, pki_quota *q)
{
    char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
    if (!group)
        return;
    *names++ = '\0';
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (strcmp(group, "/") == 0)
        group[0] = '\0';
    if (!*names) {
        read_second(root, group, q);
    } else if (strcmp(names, "cpu") == 0 || strncmp(names, "cpu,", 4) == 0 ||
               strstr(names, ",cpu,")) {
        read_first(root, names, group, q);
        read_first(root, names, "", q);
    }
}

bool pki_quota_read(const char *root, pki_quota *out)
{
    char text[4096];
    memset(out, 0, sizeof *out);
    if (!read_text(root, text, sizeof text, "/proc/self/cgroup"))
        return false;
    for (char *line = text, *next; line && *line; line = next) {
        if ((next = strchr(line, '\n')))
            *next++ = '\0';
        read_group(root, line, out);
    }
    return out->processors > 0;
}

/* ---- what the processor and the kernel count of a thread (perf_event_open(2)) ---- */

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

/* ---- which events tell what became of a thread's pipeline slots ---- */

#define DEVICES "/sys/bus/event_source/devices/"

const char *pki_topdown_root = "";

/* ---- what the kernel describes ---- */

/* "KEY0x" and one or two digits; what is behind them. NULL: it is not there. */
static const char *read_byte(const char *at, const char *key, uint64_t *byte)
{
    size_t n = strlen(key);
    size_t digits = at && strncmp(at, key, n) == 0 ? strspn(at + n, "0123456789abcdefABCDEF") : 0;
    if (digits < 1 || digits > 2)
        return NULL;
    *byte = strtoull(at + n, NULL, 16);
    return at + n + digits;
}

bool pki_topdown_config(const char *text, uint64_t *config)
{
    uint64_t event = 0, umask = 0;
    const char *end = read_byte(text, "event=0x", &event);
    end = read_byte(end, ",umask=0x", &umask);
    if (!end || (*end && strcmp(end, "\n") != 0))
        return false;
    *config = event | umask << 8;
    return true;
}

static bool read_file(const char *device, const char *name, char *out, size_t size)
{
    char path[PATH];
    int n = snprintf(path, sizeof path, "%s" DEVICES "%s/%s", pki_topdown_root, device, name);
    return n > 0 && (size_t)n < sizeof path && pki_small_file(path, out, size) > 0;
}

/* The processor's number among the kernel's sources of events. */
static bool read_type(const char *device, uint32_t *type)
{
    char text[16], *end = text;
    if (!read_file(device, "type", text, sizeof text) || text[0] < '0' || text[0] > '9')
        return false;
    *type = (uint32_t)strtoul(text, &end, 10);
    return *end == '\0' || strcmp(end, "\n") == 0;
}

/* False: one of them is not there, or not as it is known here. */
static bool read_described(const char *device, uint32_t type, pki_topdown *out)
{
    static const char *const names[PKI_PERF_MOST] = {
        "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound", "slots"};
    char file[48], text[64];
    for (size_t i = 0; i < PKI_PERF_MOST; i++) {
        pki_perf_event *event = &out->event[i];
        *event = (pki_perf_event){.name = names[i], .type = type};
        snprintf(file, sizeof file, "events/%s", names[i]);
        if (!read_file(device, file, text, sizeof text) ||
            !pki_topdown_config(text, &event->config))
            return false;
    }
    out->count = PKI_PERF_MOST;
    return true;
}

/* ---- what AMD's manuals describe ---- */

/* Bits 8 to 11 of an event's number are bits 32 to 35 of the register. */
#define AMD(event, umask)                                                                          \
    (((uint64_t)(event)&0xff) | (uint64_t)(umask) << 8 | ((uint64_t)(event) >> 8) << 32)

static bool is_known_zen(void)
{
    static const struct {
        unsigned long family, first, last;
    } known[] = {{0x19, 0x10, 0x1f},
                 {0x19, 0x60, 0xaf}, /* Zen 4 */
                 {0x1a, 0x00, 0x2f},
                 {0x1a, 0x40, 0x4f},
                 {0x1a, 0x60, 0x7f}};
    char vendor[32], family[16], model[16];
    if (!pki_cpu_info(pki_topdown_root, "vendor_id", vendor, sizeof vendor) ||
        strcmp(vendor, "AuthenticAMD") != 0 ||
        !pki_cpu_info(pki_topdown_root, "cpu family", family, sizeof family) ||
        !pki_cpu_info(pki_topdown_root, "model", model, sizeof model))
        return false;
    unsigned long f = strtoul(family, NULL, 10), m = strtoul(model, NULL, 10);
    for (size_t i = 0; i < PKI_COUNT_OF(known); i++)
        if (f == known[i].family && m >= known[i].first && m <= known[i].last)
            return true;
    return false;
}

static void fill_zen(uint32_t type, pki_topdown *out)
{
    static const pki_perf_event events[PKI_PERF_EVENTS] = {
        {"ops that retired", 0, AMD(0xc1, 0x00), false},
        {"ops that were dispatched", 0, AMD(0xaa, 0x07), false},
        {"slots without ops of the front end", 0, AMD(0x1a0, 0x01), false},
        {"slots that the back end stalled", 0, AMD(0x1a0, 0x1e), false},
    };
    for (size_t i = 0; i < PKI_PERF_EVENTS; i++) {
        out->event[i] = events[i];
        out->event[i].type = type;
    }
    out->count = PKI_PERF_EVENTS;
    out->counts_dispatched = true;
}

bool pki_topdown_find(pki_topdown *out, char *why_not, size_t size)
{
    static const char *const devices[] = {"cpu_core", "cpu"};
    uint32_t type = 0;
    size_t i = 0;
    memset(out, 0, sizeof *out);
    while (i < PKI_COUNT_OF(devices) && !read_type(devices[i], &type))
        i++;
    if (i == PKI_COUNT_OF(devices)) {
        pki_perf_explain(ENOENT, why_not, size);
        return false;
    }
    if (read_described(devices[i], type, out))
        return true;
    if (is_known_zen())
        fill_zen(type, out);
    else
        snprintf(why_not, size,
                 "this processor shows no counters of pipeline slots that are known here "
                 "(Intel's from Ice Lake on, AMD's Zen 4 and Zen 5 have them)");
    return out->count > 0;
}

/* ---- a ring of the kernel's records ---- */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* The mapping keeps the event, so no descriptor stays open that the program could close. */
bool pki_kernel_ring_open(pki_kernel_ring *r, struct perf_event_attr *a, uint32_t tid, size_t pages)
{
    int fd = (int)syscall(SYS_perf_event_open, a, (pid_t)tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    *r = (pki_kernel_ring){.before = page_size()};
    if (fd < 0)
        return false;
    void *at = MAP_FAILED;
    for (; pages && at == MAP_FAILED; pages /= 2) {
        r->bytes = pages * page_size();
        at = mmap(NULL, r->bytes + r->before, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    int error = errno;
    close(fd);
    errno = error;
    r->page = at == MAP_FAILED ? NULL : at;
    return r->page != NULL;
}

void pki_kernel_ring_close(pki_kernel_ring *r)
{
    if (r->page)
        munmap(r->page, r->bytes + r->before);
    r->page = NULL;
}

static void copy_out(const pki_kernel_ring *r, uint64_t at, void *to, size_t size)
{
    const char *data = (const char *)r->page + r->before;
    size_t from = (size_t)(at % r->bytes), first = PKI_MIN(size, (size_t)r->bytes - from);
    memcpy(to, data + from, first);
    memcpy((char *)to + first, data, size - first);
}

/* perf_event_open(2), "MMAP layout". */
size_t pki_kernel_ring_take(pki_kernel_ring *r, void *to, size_t room)
{
    struct perf_event_header header;
    uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE); /* as the manual says */
    uint64_t tail = r->page->data_tail;
    if (tail >= head)
        return 0;
    copy_out(r, tail, &header, sizeof header);
    size_t size = PKI_MAX(header.size, sizeof header), fits = PKI_MIN(size, room);
    copy_out(r, tail, to, fits);
    __atomic_store_n(&r->page->data_tail, tail + size, __ATOMIC_RELEASE);
    return fits;
}

bool pki_kernel_ring_next(pki_kernel_ring *r, pki_kernel_record *out)
{
    return pki_kernel_ring_take(r, out, sizeof *out) > 0;
}
