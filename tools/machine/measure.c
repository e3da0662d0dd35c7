/* tools/machine/measure.c - what `pk machine` finds out */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compare.h"
#include "base/compiler.h"
#include "base/loader.h"
#include "machine/kernels.h"
#include "machine/machine.h"
#include "memory.h"

/* ---- threads that do the same at once, each held to a processor of its own ---- */

#define PROCESSORS_MOST 8192

unsigned team_processors(int *processors, unsigned room)
{
    size_t bytes = CPU_ALLOC_SIZE(PROCESSORS_MOST);
    cpu_set_t *set = CPU_ALLOC(PROCESSORS_MOST);
    unsigned count = 0;
    memory_needed(set != NULL);
    if (sched_getaffinity(0, bytes, set) == 0)
        for (int i = 0; i < PROCESSORS_MOST && count < room; i++)
            if (CPU_ISSET_S((size_t)i, bytes, set))
                processors[count++] = i;
    CPU_FREE(set);
    if (count == 0)
        processors[count++] = -1;
    return count;
}

/* Where the system refuses, the thread is somewhere else, and the figures are what they are. */
static void stay(int processor)
{
    size_t bytes = CPU_ALLOC_SIZE(PROCESSORS_MOST);
    cpu_set_t *set = processor < 0 ? NULL : CPU_ALLOC(PROCESSORS_MOST);
    if (!set)
        return;
    CPU_ZERO_S(bytes, set);
    CPU_SET_S((size_t)processor, bytes, set);
    sched_setaffinity(0, bytes, set);
    CPU_FREE(set);
}

static void *serve(void *arg)
{
    team_member *m = arg;
    team *t = m->team;
    stay(m->processor);
    for (;;) {
        pthread_barrier_wait(&t->begin);
        if (!t->work)
            return NULL;
        uint64_t before = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
        m->begin = pki_monotonic_ns();
        t->work(t->user, m->number);
        m->end = pki_monotonic_ns();
        m->on_processor = pki_read_clock(CLOCK_THREAD_CPUTIME_ID) - before;
        pthread_barrier_wait(&t->end);
    }
}

/* Those that have begun wait at the barrier for ones that will not come: they go with the process,
 * which ends. */
bool team_make(team *t, const int *processors, unsigned count, complaint *why)
{
    *t = (team){.count = count};
    t->members = memory_zeroed(count, sizeof *t->members);
    memory_needed(pthread_barrier_init(&t->begin, NULL, count + 1) == 0);
    memory_needed(pthread_barrier_init(&t->end, NULL, count + 1) == 0);
    for (unsigned i = 0; i < count; i++) {
        t->members[i] = (team_member){.team = t, .number = i, .processor = processors[i]};
        int error = pthread_create(&t->members[i].thread, NULL, serve, &t->members[i]);
        if (error)
            return complaint_set(why, "no thread can be made: %s", strerror(error));
    }
    return true;
}

/* Has all do it; the seconds from the first one's begin to the last one's end. */
static double team_do(team *t, team_work *work, void *user)
{
    uint64_t begin = UINT64_MAX, end = 0;
    t->work = work;
    t->user = user;
    pthread_barrier_wait(&t->begin);
    pthread_barrier_wait(&t->end);
    for (unsigned i = 0; i < t->count; i++) {
        const team_member *m = &t->members[i];
        begin = PKI_MIN(begin, m->begin);
        end = PKI_MAX(end, m->end);
        t->wanted += m->end - m->begin;
        t->had += m->on_processor;
    }
    return (double)PKI_MAX(end - begin, 1u) / 1e9;
}

/* The least that a member had of a processor in the last work, ns; 0: that is not known. */
static uint64_t team_shortest(const team *t)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < t->count; i++)
        least = PKI_MIN(least, t->members[i].on_processor);
    return least;
}

void team_finish(team *t)
{
    t->work = NULL;
    pthread_barrier_wait(&t->begin);
    for (unsigned i = 0; i < t->count; i++)
        pthread_join(t->members[i].thread, NULL);
    pthread_barrier_destroy(&t->begin);
    pthread_barrier_destroy(&t->end);
    free(t->members);
}

/* ---- rounds of the same work, as a limit of the machine ---- */

#define ROUND_SECONDS 0.005
#define TURNS_MOST ((uint64_t)1 << 40)

static uint64_t whole(double rate)
{
    return rate < 1 ? 1 : rate > 1e18 ? PKI_MACHINE_RATE_MOST : (uint64_t)rate;
}

void rates_summarise(double *rates, unsigned count, pki_limit *limit)
{
    qsort(rates, count, sizeof *rates, pki_compare_double);
    limit->best = whole(rates[count - 1]);
    limit->median = whole((rates[(count - 1) / 2] + rates[count / 2]) / 2);
    limit->worst = whole(rates[0]);
    limit->rounds = count;
}

/* By time on a processor, where that is known: a round that others have interrupted is no longer
 * for it. These rounds also bring the arrays in and the clock up. */
static void find_turns(team *t, const rates_work *w)
{
    *w->turns = 1;
    for (;;) {
        double wall = team_do(t, w->work, w->user), busy = (double)team_shortest(t) / 1e9;
        if ((busy > 0 ? busy : wall) >= ROUND_SECONDS || *w->turns >= TURNS_MOST)
            return;
        *w->turns *= 2;
    }
}

void rates_measure(team *t, const rates_work *w, unsigned rounds, pki_limit *limit)
{
    double rates[RATES_ROUNDS_MOST];
    find_turns(t, w);
    rounds = PKI_MIN(rounds, RATES_ROUNDS_MOST);
    for (unsigned i = 0; i < rounds; i++)
        rates[i] = w->worth * (double)*w->turns / team_do(t, w->work, w->user);
    rates_summarise(rates, rounds, limit);
}

/* ---- how fast a folder's file system takes and gives large blocks ---- */

#define BLOCK ((size_t)1 << 20)
#define ALIGNMENT 4096u /* of buffers, more than any device of today asks for */
#define ROUNDS 5u

/* The file has no name, or loses it at once: whatever ends this process, nothing is left. */
static int make_file(const char *folder, bool direct)
{
    int flags = O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0);
    char path[PATH_MAX];
    int fd = open(folder, flags | O_TMPFILE, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    if (snprintf(path, sizeof path, "%s/.pk-machine-%ld", folder, (long)getpid()) >=
        (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = open(path, flags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    int error = errno;
    if (fd >= 0 || error == EINVAL) /* without O_DIRECT some leave the file behind */
        unlink(path);
    errno = error;
    return fd;
}

/* All of it, as transfers of blocks. */
static bool move_blocks(int fd, char *block, uint64_t bytes, bool write)
{
    for (uint64_t at = 0; at < bytes;) {
        ssize_t n =
            write ? pwrite(fd, block, BLOCK, (off_t)at) : pread(fd, block, BLOCK, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)BLOCK) {
            errno = n < 0 ? errno : EIO; /* a part of a block: direct transfers could not go on */
            return false;
        }
        at += BLOCK;
    }
    /* What the device keeps in a cache of its own is not there yet. */
    return !write || fdatasync(fd) == 0;
}

static bool measure(int fd, char *block, uint64_t bytes, bool write, pki_limit *limit)
{
    double rates[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t begin = pki_monotonic_ns();
        if (!move_blocks(fd, block, bytes, write))
            return false;
        rates[i] = (double)bytes * 1e9 / (double)PKI_MAX(pki_monotonic_ns() - begin, 1u);
    }
    rates_summarise(rates, ROUNDS, limit);
    return true;
}

/* Whole blocks, of a tenth of what is free at most. */
static bool find_bytes(const char *folder, uint32_t mib, uint64_t *bytes, complaint *why)
{
    struct statvfs s;
    if (statvfs(folder, &s) != 0)
        return complaint_set(why, "%s: %s", folder, strerror(errno));
    uint64_t free_bytes = (uint64_t)s.f_bavail * s.f_frsize;
    *bytes = PKI_MIN((uint64_t)mib << 20, free_bytes / 10) / BLOCK * BLOCK;
    if (*bytes)
        return true;
    return complaint_set(why, "%s: less than 10 MiB are free", folder);
}

static bool measure_in(int fd, char *block, storage_figures *f)
{
    /* Compressing file systems and devices are not to find zeros. */
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < BLOCK; i += sizeof x) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(block + i, &x, sizeof x);
    }
    return measure(fd, block, f->bytes, true, &f->write) &&
           (!f->direct || measure(fd, block, f->bytes, false, &f->read));
}

bool storage_measure(const char *folder, uint32_t mib, storage_figures *f, complaint *why)
{
    memset(f, 0, sizeof *f);
    f->direct = true;
    if (!find_bytes(folder, mib, &f->bytes, why))
        return false;
    int fd = make_file(folder, true);
    if (fd < 0 && errno == EINVAL) {
        f->direct = false;
        fd = make_file(folder, false);
    }
    if (fd < 0)
        return complaint_set(why, "%s: no file can be made there: %s", folder, strerror(errno));
    void *block = NULL;
    memory_needed(posix_memalign(&block, ALIGNMENT, BLOCK) == 0);
    f->folder = folder;
    bool done = measure_in(fd, block, f);
    if (!done)
        complaint_set(why, "%s: %s", folder, strerror(errno));
    free(block);
    close(fd);
    return done;
}

/* ---- the three arrays of each thread, in memory that it touches first ---- */

#define TIMES_CACHE 4u
#define CACHE_GUESS ((uint64_t)32 << 20)
#define APART 2048u /* bytes: the three do not begin at the same place of their pages */
#define STEP_BYTES (MEMORY_STEP * sizeof(double))

/* ---- how large ---- */

/* Kilobytes in /proc/meminfo; 0: not known. */
static uint64_t available(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && kib == 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu", &kib) != 1)
            kib = 0;
    if (file)
        fclose(file);
    return (uint64_t)kib << 10;
}

static uint64_t memory_to_use(const machine_found *f, uint32_t memory_mib)
{
    uint64_t free_bytes = available(), fence = f->environment.cgroup_memory_bytes;
    if (memory_mib)
        return (uint64_t)memory_mib << 20;
    if (fence && (free_bytes == 0 || fence < free_bytes))
        free_bytes = fence;
    return free_bytes ? free_bytes / 4 : UINT64_MAX;
}

void arrays_choose(machine_found *f, uint32_t memory_mib)
{
    const pki_bench_cache *largest = NULL;
    for (size_t i = 0; i < f->environment.cache_count; i++) {
        const pki_bench_cache *c = &f->environment.caches[i];
        if (strcmp(c->type, "Instruction") != 0 && (!largest || c->level > largest->level))
            largest = c;
    }
    f->cache_known = largest && largest->bytes;
    unsigned sharing = f->cache_known && largest->sharing ? largest->sharing : f->processors;
    unsigned caches = (f->processors + sharing - 1) / sharing;
    f->cache_bytes = f->cache_known ? largest->bytes * caches : CACHE_GUESS;
    uint64_t most = memory_to_use(f, memory_mib) / 3;
    uint64_t step = (uint64_t)STEP_BYTES * f->processors;
    f->array_bytes = PKI_MIN(f->cache_bytes * TIMES_CACHE, most) / step * step;
    f->array_bytes = PKI_MAX(f->array_bytes, step);
}

/* ---- the arrays ---- */

bool arrays_make(arrays *a, unsigned threads, uint64_t bytes, complaint *why)
{
    size_t each = (size_t)(bytes / threads / STEP_BYTES * STEP_BYTES);
    size_t apart = 3 * (each + APART);
    a->threads = threads;
    a->bytes = apart * threads;
    a->memory = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a->memory == MAP_FAILED)
        return complaint_set(why, "no memory for arrays of %zu MiB (--memory takes less): %s",
                             a->bytes >> 20, strerror(errno));
    a->sets = memory_zeroed(threads, sizeof *a->sets);
    for (unsigned i = 0; i < threads; i++) {
        char *at = (char *)a->memory + i * apart;
        array_set *s = &a->sets[i];
        s->count = each / sizeof(double);
        s->a = (double *)(void *)at;
        s->b = (double *)(void *)(at + each + APART);
        s->c = (double *)(void *)(at + 2 * (each + APART));
    }
    return true;
}

void arrays_touch(arrays *a, unsigned thread)
{
    const array_set *s = &a->sets[thread];
    for (size_t i = 0; i < s->count; i++) {
        s->a[i] = 1;
        s->b[i] = 2;
        s->c[i] = 0.5;
    }
}

size_t arrays_count(const arrays *a)
{
    return a->sets[0].count * a->threads;
}

void arrays_free(arrays *a)
{
    munmap(a->memory, a->bytes);
    free(a->sets);
}

/* ---- what `pk machine` finds out ---- */

#define MEASURE_PROCESSORS_MOST 4096u

typedef struct turn_work {
    const flops_kernel *flops;
    memory_kernel *memory;
    arrays *all;
    uint64_t turns;
} turn_work;

static void compute(void *user, unsigned member)
{
    const turn_work *w = user;
    (void)member;
    w->flops->run(w->turns);
}

static void add_up(void *user, unsigned member)
{
    (void)member;
    chain_of_additions(((const turn_work *)user)->turns);
}

static void move(void *user, unsigned member)
{
    const turn_work *w = user;
    const array_set *s = &w->all->sets[member];
    for (uint64_t i = 0; i < w->turns; i++)
        w->memory(s->a, s->b, s->c, s->count);
}

static void touch(void *user, unsigned member)
{
    arrays_touch(((turn_work *)user)->all, member);
}

/* ---- one limit ---- */

static void measure_measure(team *t, team_work *work, turn_work *w, double worth, unsigned rounds,
                            pki_limit *limit)
{
    const rates_work rates = {work, w, &w->turns, worth};
    limit->all = t->count > 1;
    rates_measure(t, &rates, rounds, limit);
}

static void add_limit(machine_found *found, const char *name, bool all, pki_limit *limit)
{
    snprintf(limit->name, sizeof limit->name, "%s", name);
    limit->all = all;
    pki_machine_add(&found->machine, limit);
}

static void measure_memory(team *t, bool all, arrays *a, unsigned rounds, machine_found *found)
{
    /* Bytes of an element, as STREAM counts them: what the loop names, not what a cache fetches
     * before it can be written to. */
    const struct {
        const char *name;
        memory_kernel *kernel;
        double bytes;
    } loops[] = {
        {PKI_LIMIT_COPY, kernel_copy, 16},
        {PKI_LIMIT_TRIAD, kernel_triad, 24},
        {PKI_LIMIT_STREAMED, kernel_triad_streamed, 24},
    };
    turn_work w = {.all = a};
    team_do(t, touch, &w);
    for (size_t i = 0; i < PKI_COUNT_OF(loops); i++) {
        pki_limit limit;
        w.memory = loops[i].kernel;
        if (!w.memory)
            continue;
        measure_measure(t, move, &w, loops[i].bytes * (double)arrays_count(a), rounds, &limit);
        add_limit(found, loops[i].name, all, &limit);
    }
}

static void measure_flops(team *t, bool all, unsigned rounds, machine_found *found)
{
    for (size_t i = 0; i < flops_kernel_count; i++) {
        const flops_kernel *k = &flops_kernels[i];
        turn_work w = {.flops = k};
        pki_limit limit;
        if (!k->has())
            continue;
        measure_measure(t, compute, &w, (double)k->operations * t->count, rounds, &limit);
        add_limit(found, k->name, all, &limit);
    }
}

static void measure_clock(team *t, unsigned rounds, machine_found *found)
{
    turn_work w = {.turns = 0};
    pki_limit limit;
    if (!chain_of_additions)
        return;
    measure_measure(t, add_up, &w, 1, rounds, &limit);
    found->clock_hz = (double)limit.best;
}

/* ---- one processor, and all ---- */

static bool measure_on(const int *processors, unsigned count, bool all, const machine_wish *wish,
                       machine_found *found, complaint *why)
{
    team t;
    arrays a;
    if (!arrays_make(&a, count, found->array_bytes, why))
        return false;
    if (!team_make(&t, processors, count, why))
        return false;
    if (!all)
        measure_clock(&t, wish->rounds, found);
    measure_flops(&t, all, wish->rounds, found);
    measure_memory(&t, all, &a, wish->rounds, found);
    /* The worse of the two. */
    if (t.wanted)
        found->on_processor = PKI_MIN(found->on_processor, (double)t.had / (double)t.wanted);
    team_finish(&t);
    arrays_free(&a);
    return true;
}

static int processor_here(const int *processors, unsigned count)
{
    int here = sched_getcpu();
    for (unsigned i = 0; i < count; i++)
        if (processors[i] == here)
            return here;
    return processors[0];
}

bool machine_measure(const machine_wish *wish, machine_found *found, complaint *why)
{
    int *processors = memory_zeroed(MEASURE_PROCESSORS_MOST, sizeof *processors);
    pki_machine_here(&found->machine);
    pki_bench_environment_read(&found->environment, "");
    found->machine.measured = (uint64_t)time(NULL);
    found->processors = team_processors(processors, MEASURE_PROCESSORS_MOST);
    found->on_processor = 1;
    arrays_choose(found, wish->memory_mib);
    int here = processor_here(processors, found->processors);
    bool done = measure_on(&here, 1, false, wish, found, why) &&
                measure_on(processors, found->processors, true, wish, found, why);
    free(processors);
    return done;
}

/* ---- devices ---- */

/* Devices by their names, from NVML, of which four functions are all that is needed here. */

typedef struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *devices);
    int (*by_index)(unsigned index, void **device);
    int (*name)(void *device, char *text, unsigned size);
} nvml;

static const pki_dl_function functions[] = {
    PKI_DL_FUNCTION(nvml, init, "nvmlInit_v2", false),
    PKI_DL_FUNCTION(nvml, shutdown, "nvmlShutdown", false),
    PKI_DL_FUNCTION(nvml, count, "nvmlDeviceGetCount_v2", false),
    PKI_DL_FUNCTION(nvml, by_index, "nvmlDeviceGetHandleByIndex_v2", false),
    PKI_DL_FUNCTION(nvml, name, "nvmlDeviceGetName", false),
};

static void list(const nvml *n, machine_found *found)
{
    unsigned count = 0;
    void *device;
    if (n->count(&count) != 0)
        count = 0;
    for (unsigned i = 0; i < count && found->device_count < MACHINE_DEVICES; i++) {
        char *name = found->devices[found->device_count];
        if (n->by_index(i, &device) == 0 && n->name(device, name, sizeof *found->devices) == 0)
            found->device_count++;
    }
    if (!found->device_count)
        snprintf(found->no_devices, sizeof found->no_devices, "NVML knows of none");
}

void machine_find_devices(machine_found *found)
{
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    char *why = found->no_devices;
    nvml n;
    void *library = pki_dl_open("PK_NVML_LIBRARY", names, why, sizeof found->no_devices);
    if (!library || !pki_dl_bind(library, functions, PKI_COUNT_OF(functions), &n, why,
                                 sizeof found->no_devices))
        return;
    if (n.init() != 0) {
        snprintf(why, sizeof found->no_devices, "NVML is there, and no driver behind it");
        return;
    }
    list(&n, found);
    n.shutdown();
}
