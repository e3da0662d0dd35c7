#include "bench/environment.h"

#include <dirent.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/process.h"

/* ---- the processor's caches, as the kernel lists them ---- */

static bool read_of(unsigned index, const char *what, char *line, size_t size)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, what);
    return pki_read_line(path, line, size);
}

/* "2048K" */
static size_t bytes_of(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    return (size_t)(*end == 'K' ? n << 10 : *end == 'M' ? n << 20 : n);
}

/* Numbers in a list of the kernel's: 5 in "0-3,8". */
static unsigned pki_bench_processors_in(const char *list)
{
    unsigned count = 0;
    while (*list) {
        char *end;
        unsigned long from = strtoul(list, &end, 10), to = from;
        if (end == list)
            break;
        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        count += (unsigned)(to - from + 1);
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

/* Of the first processor; how many. */
static size_t pki_bench_caches(pki_bench_cache caches[PKI_BENCH_CACHES])
{
    size_t count = 0;
    char line[256];
    for (unsigned i = 0; i < PKI_BENCH_CACHES && read_of(i, "size", line, sizeof line); i++) {
        pki_bench_cache *cache = &caches[count++];
        memset(cache, 0, sizeof *cache);
        cache->bytes = bytes_of(line);
        if (read_of(i, "level", line, sizeof line))
            cache->level = (unsigned)strtoul(line, NULL, 10);
        if (read_of(i, "type", line, sizeof line))
            snprintf(cache->type, sizeof cache->type, "%.15s", line);
        if (read_of(i, "shared_cpu_list", line, sizeof line))
            cache->sharing = pki_bench_processors_in(line);
    }
    return count;
}

size_t pki_bench_largest_cache(void)
{
    pki_bench_cache caches[PKI_BENCH_CACHES];
    size_t count = pki_bench_caches(caches), largest = 0;
    for (size_t i = 0; i < PKI_BENCH_CACHES && i < count; i++)
        if (strcmp(caches[i].type, "Instruction") != 0 && caches[i].bytes > largest)
            largest = caches[i].bytes;
    return largest;
}

/* ---- the machine that benchmarks ran on, and what about it spoils measurements ---- */

/* ---- small files; root stands before every path ---- */

static void path_of(const char *root, char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s%s", root, name);
}

static bool read_line(const char *root, const char *name, char *line, size_t size)
{
    char path[512];
    path_of(root, path, sizeof path, name);
    line[0] = 0;
    return pki_read_line(path, line, size);
}

static bool exists(const char *root, const char *name)
{
    char path[512];
    path_of(root, path, sizeof path, name);
    return access(path, F_OK) == 0;
}

static bool read_number(const char *root, const char *name, uint64_t *value)
{
    char line[64], *end;
    if (!read_line(root, name, line, sizeof line) || *line < '0' || *line > '9')
        return false;
    *value = strtoull(line, &end, 10);
    return *end == 0 || *end == ' ';
}

/* What follows "key<blanks>:<blanks>" in the first such line of a file. */
static bool read_field(const char *root, const char *name, const char *key, char *out, size_t size)
{
    char path[512], line[2048];
    bool found = false;
    path_of(root, path, sizeof path, name);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        size_t n = strlen(key);
        if (strncmp(line, key, n) != 0 || !strchr(" \t:", line[n]))
            continue;
        const char *colon = strchr(line + n, ':');
        if (!colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

static void set(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
}

#define SET(field, text) set((field), sizeof(field), (text))

/* ---- processor ---- */

static void read_cpu(const char *root, pki_bench_environment *e)
{
    char text[64];
    uint64_t khz;
    pki_cpu_name(root, e->cpu, sizeof e->cpu);
    if (read_number(root, "/sys/devices/system/cpu/cpu0/cpufreq/base_frequency", &khz) ||
        read_number(root, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", &khz))
        e->mhz = (double)khz / 1000;
    else if (pki_cpu_info(root, "cpu MHz", text, sizeof text))
        e->mhz = (double)strtoull(text, NULL, 10);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t may;
    e->cpus_online = online > 0 ? (uint32_t)online : 0;
    if (sched_getaffinity(0, sizeof may, &may) == 0)
        e->cpus_allowed = (uint32_t)CPU_COUNT(&may);
    e->cache_count = pki_bench_caches(e->caches);
}

static const char *on_off(bool known, bool on)
{
    return !known ? "unknown" : on ? "on" : "off";
}

static void read_power(const char *root, pki_bench_environment *e)
{
    uint64_t value;
    read_line(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", e->governor,
              sizeof e->governor);
    bool known = read_number(root, "/sys/devices/system/cpu/intel_pstate/no_turbo", &value);
    value = known ? !value : 0;
    if (!known)
        known = read_number(root, "/sys/devices/system/cpu/cpufreq/boost", &value);
    SET(e->turbo, on_off(known, value != 0));
    known = read_number(root, "/sys/devices/system/cpu/smt/active", &value);
    SET(e->smt, on_off(known, value != 0));
}

static void read_numa(const char *root, pki_bench_environment *e)
{
    char list[256];
    if (read_line(root, "/sys/devices/system/node/online", list, sizeof list))
        e->numa_nodes = pki_bench_processors_in(list);
}

/* ---- operating system ---- */

static void read_load(const char *root, pki_bench_environment *e)
{
    char line[128];
    unsigned whole[3], cent[3];
    if (read_line(root, "/proc/loadavg", line, sizeof line) &&
        sscanf(line, "%u.%u %u.%u %u.%u", &whole[0], &cent[0], &whole[1], &cent[1], &whole[2],
               &cent[2]) == 6)
        for (int i = 0; i < 3; i++)
            e->load[i] = whole[i] + cent[i] / 100.0;
}

static void read_kernel(const char *root, pki_bench_environment *e)
{
    struct utsname names;
    uint64_t aslr;
    if (uname(&names) == 0) {
        snprintf(e->kernel, sizeof e->kernel, "%.20s %.70s", names.sysname, names.release);
        snprintf(e->architecture, sizeof e->architecture, "%.31s", names.machine);
        snprintf(e->host, sizeof e->host, "%.63s", names.nodename);
    }
    if (confstr(_CS_GNU_LIBC_VERSION, e->libc, sizeof e->libc) == 0)
        SET(e->libc, "");
    bool known = read_number(root, "/proc/sys/kernel/randomize_va_space", &aslr);
    bool here = !(personality(0xffffffff) & ADDR_NO_RANDOMIZE);
    SET(e->aslr, on_off(known, known && aslr != 0 && here));
    read_line(root, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
              e->clock_source, sizeof e->clock_source);
}

/* ---- what fences us in ---- */

static void limit_cpus(pki_bench_environment *e, double quota, double period)
{
    double cpus = period > 0 ? quota / period : 0;
    if (cpus > 0 && (e->cgroup_cpus == 0 || cpus < e->cgroup_cpus))
        e->cgroup_cpus = cpus;
}

static void limit_memory(pki_bench_environment *e, uint64_t bytes)
{
    if (bytes < (uint64_t)1 << 60 &&
        (e->cgroup_memory_bytes == 0 || bytes < e->cgroup_memory_bytes))
        e->cgroup_memory_bytes = bytes;
}

static void read_limits_of(const char *root, pki_bench_environment *e, const char *group)
{
    char name[400], line[64], *end;
    uint64_t bytes;
    snprintf(name, sizeof name, "/sys/fs/cgroup%s/cpu.max", group);
    if (read_line(root, name, line, sizeof line) && *line != 'm') {
        unsigned long long quota = strtoull(line, &end, 10);
        limit_cpus(e, (double)quota, (double)strtoull(end, NULL, 10));
    }
    snprintf(name, sizeof name, "/sys/fs/cgroup%s/memory.max", group);
    if (read_number(root, name, &bytes))
        limit_memory(e, bytes);
}

/* cgroup version 2: the limits of this group and of those above it; version 1: as mounted. */
static void read_cgroup(const char *root, pki_bench_environment *e)
{
    char group[256] = "";
    uint64_t quota, period, bytes;
    read_field(root, "/proc/self/cgroup", "0:", group, sizeof group);
    for (;;) {
        size_t n = strlen(group);
        while (n && group[n - 1] == '/')
            group[--n] = 0;
        read_limits_of(root, e, group);
        char *slash = strrchr(group, '/');
        if (!slash)
            break;
        *slash = 0;
    }
    if (read_number(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &quota) &&
        read_number(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period))
        limit_cpus(e, (double)quota, (double)period);
    if (read_number(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", &bytes))
        limit_memory(e, bytes);
}

static void read_container(const char *root, pki_bench_environment *e)
{
    char groups[256] = "";
    const char *said = secure_getenv("container");
    read_line(root, "/proc/self/cgroup", groups, sizeof groups);
    if (secure_getenv("KUBERNETES_SERVICE_HOST") || strstr(groups, "kubepods"))
        SET(e->container, "kubernetes");
    else if (exists(root, "/.dockerenv") || strstr(groups, "docker"))
        SET(e->container, "docker");
    else if (exists(root, "/run/.containerenv"))
        SET(e->container, "podman");
    else if (strstr(groups, "lxc"))
        SET(e->container, "lxc");
    else if (said)
        SET(e->container, said);
}

static void read_virtual(const char *root, pki_bench_environment *e)
{
    char flags[2048] = "";
    pki_cpu_info(root, "flags", flags, sizeof flags);
    bool guest = strstr(flags, " hypervisor") != NULL;
    if (guest && !read_line(root, "/sys/class/dmi/id/sys_vendor", e->virtual_machine,
                            sizeof e->virtual_machine))
        SET(e->virtual_machine, "unknown");
}

/* The first of them. */
static void read_gpu_model(const char *root, pki_bench_environment *e)
{
    char path[512], name[384];
    path_of(root, path, sizeof path, "/proc/driver/nvidia/gpus");
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && !*e->gpu && (entry = readdir(folder));) {
        snprintf(name, sizeof name, "/proc/driver/nvidia/gpus/%s/information", entry->d_name);
        read_field(root, name, "Model", e->gpu, sizeof e->gpu);
    }
    if (folder)
        closedir(folder);
}

static void read_gpu(const char *root, pki_bench_environment *e)
{
    char line[256];
    read_gpu_model(root, e);
    if (!read_line(root, "/proc/driver/nvidia/version", line, sizeof line))
        return;
    const char *version = strstr(line, "Module");
    snprintf(e->driver, sizeof e->driver, "%.95s",
             version ? version + 6 + strspn(version + 6, " ") : line);
    e->driver[strcspn(e->driver, " ")] = 0;
}

void pki_bench_environment_read(pki_bench_environment *e, const char *root)
{
    memset(e, 0, sizeof *e);
    read_cpu(root, e);
    read_power(root, e);
    read_numa(root, e);
    read_load(root, e);
    read_kernel(root, e);
    read_cgroup(root, e);
    read_container(root, e);
    read_virtual(root, e);
    read_gpu(root, e);
}

/* ---- What about a machine spoils measurements, and which machines are of one kind ---- */

/* ---- fingerprint ---- */

/* FNV-1a */
static uint64_t mix(uint64_t hash, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001B3u;
    return hash;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return mix(hash, text, strlen(text) + 1);
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> (8 * i));
    return mix(hash, bytes, sizeof bytes);
}

uint64_t pki_bench_fingerprint(const pki_bench_environment *e)
{
    const char *const texts[] = {e->cpu, e->architecture, e->governor,        e->turbo,
                                 e->smt, e->container,    e->virtual_machine, e->gpu};
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < PKI_COUNT_OF(texts); i++)
        hash = mix_text(hash, texts[i]);
    hash = mix_number(hash, e->cpus_online);
    hash = mix_number(hash, (uint64_t)(e->cgroup_cpus * 1000));
    for (size_t i = 0; i < e->cache_count; i++)
        hash = mix_number(hash, e->caches[i].bytes);
    return hash;
}
