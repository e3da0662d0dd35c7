#include "base/cpu_files.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/small_file.h"

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
    return more > 0 && (size_t)(n + more) < sizeof path && pki_small_file(path, out, size) > 0;
}

static uint64_t number_of(const char *text, const char *key)
{
    uint64_t value = 0;
    pki_small_file_number(text, key, &value);
    return value;
}

/* ---- which processor it is ---- */

#define INFO_BYTES 8192 /* of the first processor, its flags included */

bool pki_cpu_info(const char *root, const char *key, char *out, size_t size)
{
    char text[INFO_BYTES];
    out[0] = '\0';
    return read_text(root, text, sizeof text, "/proc/cpuinfo") &&
           pki_small_file_field(text, key, out, size) && out[0];
}

bool pki_cpu_name(const char *root, char *out, size_t size)
{
    char maker[16], part[16], variant[16];
    if (pki_cpu_info(root, "model name", out, size) || pki_cpu_info(root, "Model", out, size))
        return true;
    if (!pki_cpu_info(root, "CPU part", part, sizeof part))
        return false;
    pki_cpu_info(root, "CPU implementer", maker, sizeof maker);
    bool known = pki_cpu_info(root, "CPU variant", variant, sizeof variant);
    snprintf(out, size, "implementer %s part %s%s%s", maker, part, known ? " variant " : "",
             known ? variant : "");
    return true;
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

static void tighten(pki_quota *q, double processors, const char *stat, bool first_version)
{
    if (!(processors > 0) || (q->processors > 0 && processors >= q->processors))
        return;
    q->processors = processors;
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
    double quota = (double)strtoll(text, NULL, 10);
    if (quota > 0 && read_text(root, text, sizeof text, format, mount, group, "cpu.cfs_period_us"))
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
