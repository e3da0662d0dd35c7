#include "session/costs/memory.h"

#include <pk/counter.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "alloc/interface.h"
#include "base/files.h"
#include "base/loader.h"
#include "core/counter.h"
#include "core/frames.h"
#include "core/names.h"
#include "core/registry.h"
#include "measure/memory/course.h"
#include "session/activity.h"
#include "session/collector/collect.h"
#include "session/costs/gpu_memory.h"
#include "session/session.h"

/* ---- what CUDA allocates, by region (costs=memory) ---- */

#define CLOSE_NS 50000u /* samples of a counter that are no new peak */

static struct {
    bool wanted, recorded;
    uint64_t dropped, lost;
    pki_gpu_account account;
    struct emitted {
        uint64_t ns, most;    /* of the last sample, which has been emitted */
        uint64_t last, value; /* of the last change, which... */
        bool unreported;      /* ...is in no sample yet */
        uint64_t reserved;
    } emitted[PKI_GPU_PLACES];
    uint64_t totals[PKI_GPU_DEVICES]; /* as who asks the driver has told; 0: not known */
} gpus;

/* A counter's name has to stay: so each place has one. */
#define ALLOCATED(n) PK_COUNTER("gpu" #n ".allocated", "bytes")
#define RESERVED(n) PK_COUNTER("gpu" #n ".pool_reserved", "bytes")
#define SIXTEEN(of)                                                                                \
    of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(10), of(11), of(12),  \
        of(13), of(14), of(15)
static pk_counter gpu_allocated[PKI_GPU_PLACES] = {SIXTEEN(ALLOCATED),
                                                   PK_COUNTER("memory.pinned", "bytes")};
static pk_counter reserved[PKI_GPU_DEVICES] = {SIXTEEN(RESERVED)};

/* Who never asks for it never touches its pages. */
static void reset_gpus(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    if (gpus.wanted) {
        pki_gpu_account_finish(&gpus.account);
        memset(&gpus, 0, sizeof gpus);
    }
    pthread_mutex_unlock(&pki_drain_lock);
}

/* Nothing is known of the session that begins. */
static pk_status open_account(pki_session *s)
{
    pthread_mutex_lock(&pki_drain_lock);
    if (s->config.costs_memory)
        gpus.wanted = true;
    pthread_mutex_unlock(&pki_drain_lock);
    return PK_OK;
}

/* ---- counters ---- */

static void emit_sample(uint32_t place, uint64_t ns, uint64_t value)
{
    struct emitted *t = &gpus.emitted[place];
    pki_activity_counter_at(&gpu_allocated[place], (double)value, ns);
    t->ns = PKI_MAX(t->ns, ns);
    t->unreported = false;
}

/* Each new peak, and of the rest what was last, some microseconds apart. */
static void follow(uint32_t place, uint64_t ns)
{
    const pki_gpu_place *p = &gpus.account.places[place];
    struct emitted *t = &gpus.emitted[place];
    if (p->all.live == t->value && p->all.live <= t->most)
        return;
    bool far = ns >= t->ns + CLOSE_NS || t->ns == 0;
    if (t->unreported && far)
        emit_sample(place, t->last, t->value);
    bool peak = p->all.live > t->most; /* the same again is emitted at its turn */
    t->most = PKI_MAX(t->most, p->all.live);
    t->last = ns;
    t->value = p->all.live;
    if (peak || far)
        emit_sample(place, ns, t->value);
    else
        t->unreported = true;
}

void pki_gpu_memory_total(uint32_t device, uint64_t bytes)
{
    if (gpus.wanted && device < PKI_GPU_DEVICES)
        gpus.totals[device] = bytes;
}

void pki_gpu_memory_do(const pki_gpu_operation *o)
{
    uint32_t place = pki_gpu_account_do(&gpus.account, o);
    follow(place, o->ns);
}

void pki_gpu_memory_pool(uint32_t device, uint64_t address, uint64_t size, uint64_t used, bool gone,
                         uint64_t ns)
{
    uint32_t place = pki_gpu_account_pool(&gpus.account, device, address, size, used, gone);
    uint64_t now = gpus.account.places[place].reserved;
    if (now == gpus.emitted[place].reserved)
        return;
    gpus.emitted[place].reserved = now;
    pki_activity_counter_at(&reserved[place], (double)now, ns);
}

void pki_gpu_memory_complete(uint64_t dropped, uint64_t lost)
{
    gpus.recorded = true;
    gpus.dropped = dropped;
    gpus.lost = lost;
    for (uint32_t i = 0; i < PKI_GPU_PLACES; i++)
        if (gpus.emitted[i].unreported)
            emit_sample(i, gpus.emitted[i].last, gpus.emitted[i].value);
}

/* As the collector looks at the process's memory; early: pki_memory_course_see. */
static void pki_gpu_memory_poll(uint64_t steps, bool early)
{
    if (gpus.wanted)
        pki_gpu_account_see(&gpus.account, steps, early, pki_activity_ns(pki_monotonic_ns()));
}

/* ---- the summary ---- */

static const char *name_of(uint32_t id)
{
    const pki_name *name = pki_name_at(id);
    return name ? name->name : NULL;
}

static char *why_not(const pki_summary *out)
{
    char text[256] = "cupti has no records of it";
    for (size_t i = 0; i < out->backend_count; i++)
        if (strcmp(out->backends[i].name, "cupti") == 0 && !out->backends[i].live)
            snprintf(text, sizeof text, "cupti: %s", out->backends[i].reason);
    return strdup(gpus.recorded ? "" : text);
}

/* What NVML has seen, of the same device, by all processes. */
static uint64_t most_in_use(const pki_summary *out, const char *place)
{
    char counter[32];
    snprintf(counter, sizeof counter, "%s.memory", place);
    for (size_t i = 0; i < out->counter_count; i++)
        if (strcmp(out->counters[i].name, counter) == 0)
            return (uint64_t)out->counters[i].value.max;
    return 0;
}

/* When backends, counters and the process's memory are in it. False without memory. */
static bool summarise_gpus(const pki_session *s, pki_summary *out)
{
    (void)s;
    pki_gpu_memory_summary *m = &out->gpu_memory;
    if (!gpus.wanted)
        return true;
    m->asked = 1;
    m->dropped = gpus.dropped;
    m->why_not = why_not(out);
    if (!m->why_not || !pki_gpu_account_fill(&gpus.account, name_of, out->memory.steady_steps, m))
        return false;
    m->lost += gpus.lost;
    for (size_t i = 0; i < m->place_count; i++) {
        pki_gpu_memory_place *p = &m->places[i];
        unsigned device;
        p->in_use = most_in_use(out, p->place);
        if (sscanf(p->place, "gpu%u", &device) == 1 && device < PKI_GPU_DEVICES)
            p->total = gpus.totals[device];
    }
    return true;
}

bool pki_gpu_memory_so_far(pki_gpu_memory_sums *out)
{
    if (!gpus.wanted)
        return true;
    out->asked = 1;
    out->why_not = strdup(gpus.recorded ? "" : "nothing has been recorded so far");
    out->dropped = gpus.dropped;
    if (!out->why_not || !pki_gpu_account_sums(&gpus.account, out))
        return false;
    out->lost += gpus.lost;
    return true;
}

void pki_gpu_memory_cut(void)
{
    if (gpus.wanted)
        pki_gpu_account_cut(&gpus.account);
}

/* The collector may have been amid it: nothing of it is trusted, or freed. */
static void gpu_after_fork(void)
{
    memset(&gpus, 0, sizeof gpus);
}

const pki_service pki_service_gpu_memory = {
    .name = "gpu_memory",
    .reset = reset_gpus,
    .open = open_account,
    .summarise = summarise_gpus,
    .after_fork = gpu_after_fork,
};

/* ---- memory at the ends of steps, as counters (costs=memory) ---- */

#define TRIES 3

static pk_counter memory_steps_resident = PK_COUNTER("memory.resident", "bytes");
static pk_counter memory_steps_allocated = PK_COUNTER("memory.allocated", "bytes");

/* A thread may be amid a step's end as its session ends. */
static struct {
    uint32_t on;
    const pki_alloc_interface *alloc;
    uint64_t page;
    uint64_t last;  /* ticks of the last reading; 0: none */
    uint64_t looks; /* of this session... */
    uint64_t each;  /* ...and what one takes, ns */
} x;

static bool read_resident(uint64_t *bytes)
{
    char text[128], *end;
    *bytes = 0;
    if (!pki_small_file_quiet("/proc/self/statm", text, sizeof text))
        return false; /* of a text without a number strtoull may set errno, which is the program's
                       */
    strtoull(text, &end, 10);
    *bytes = strtoull(end, NULL, 10) * pki_load(&x.page);
    return *bytes > 0;
}

static void record_memory(pki_thread *t, uint64_t now)
{
    const pki_alloc_interface *alloc = pki_load(&x.alloc);
    uint64_t bytes;
    if (read_resident(&bytes))
        pki_counter_record(t, &memory_steps_resident, (double)bytes, now);
    if (alloc)
        pki_counter_record(t, &memory_steps_allocated, (double)alloc->total(), now);
}

/* One thread at a time: whoever ends a step. */
static void at_step(pki_thread *t, uint64_t now, bool between)
{
    uint64_t last = pki_load(&x.last);
    if (between)
        return;
    if (last && pki_thread_ns(t, last, pki_not_negative(now - last)) < PKI_MEMORY_STEP_LEAST)
        return;
    pki_store(&x.last, now);
    pki_store(&x.looks, pki_load(&x.looks) + 1);
    record_memory(t, now);
}

static uint64_t measure(void)
{
    uint64_t least = UINT64_MAX, bytes;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = pki_monotonic_ns();
        read_resident(&bytes);
        least = PKI_MIN(least, pki_monotonic_ns() - before);
    }
    return least;
}

/* alloc: NULL without libpk_alloc. Does nothing where costs=memory is not asked for. */
static void pki_memory_steps_begin(pki_session *s, const pki_alloc_interface *alloc)
{
    if (!s->config.costs_memory)
        return;
    pki_store(&x.page, (uint64_t)sysconf(_SC_PAGESIZE));
    pki_store(&x.alloc, alloc);
    pki_store(&x.each, measure());
    pki_store(&x.on, 1u);
    pki_registry_lock();
    pki_registry_on_step(s->registry, PKI_AT_STEP_MEMORY, at_step);
    pki_registry_unlock();
}

/* Are ends of steps told? */
static bool pki_memory_steps_on(void)
{
    return pki_load(&x.on);
}

uint64_t pki_memory_steps_spent(void)
{
    return pki_load(&x.looks) * pki_load(&x.each);
}

static void pki_memory_steps_forget(void)
{
    pki_store(&x.on, 0u);
    pki_store(&x.alloc, (const pki_alloc_interface *)NULL);
    pki_store(&x.page, (uint64_t)0);
    pki_store(&x.last, (uint64_t)0);
    pki_store(&x.looks, (uint64_t)0);
    pki_store(&x.each, (uint64_t)0);
}

const pki_service pki_service_memory_steps = {
    .name = "memory_steps",
    .spent = pki_memory_steps_spent,
};

/* ---- how much memory the process takes, step by step ---- */

/* A row of the course is of a run's length, so is the time between two looks, ns. */
#define INTERVAL 100000000u
#define INTERVAL_MOST 1000000000u
#define LOOKS 128u
/* A trend shows in 32 looks (measure/memory/growth.h), and a short run's shall, too: until there
 * are so many of a program with steps, rounds come as often as looks may. */
#define SOON 40u

/* What libpk_alloc had counted at some moment. */
typedef struct counted {
    uint32_t count;
    pki_alloc_sum *sums;
} counted;

static struct {
    uint64_t looked; /* CLOCK_MONOTONIC, ns; 0: not in this session */
    uint64_t started;
    pki_memory_course course;
    const pki_alloc_interface *alloc;  /* NULL: not loaded, or it counts nothing... */
    const char *uncounted;             /* ...for this reason */
    counted before, early, next_early; /* at the start, and as the course's looks */
    uint64_t steps;                    /* up to the last look */
    counted last;                      /* as of the last look that was asked for: what... */
    uint32_t peak_count;
    uint64_t peak, *at_peak; /* ...the report itself takes is none of the program's */
} m;

static pk_counter resident = PK_COUNTER("memory.resident", "bytes");
static pk_counter allocated = PK_COUNTER("memory.allocated", "bytes");

static void forget(void)
{
    pki_memory_course_finish(&m.course);
    free(m.before.sums);
    free(m.early.sums);
    free(m.next_early.sums);
    free(m.at_peak);
    free(m.last.sums);
    memset(&m, 0, sizeof m);
}

/* ---- libpk_alloc ---- */

static counted count_now(void)
{
    counted now = {m.alloc ? m.alloc->regions() : 0, NULL};
    now.sums = now.count ? malloc(now.count * sizeof *now.sums) : NULL;
    if (now.sums)
        m.alloc->sums(now.sums, now.count);
    else
        now.count = 0;
    return now;
}

static pki_alloc_sum at(const counted *c, uint32_t region)
{
    return region < c->count ? c->sums[region] : (pki_alloc_sum){0};
}

/* An allocator that the loader has found before libpk_alloc is called instead of it. */
static bool is_in_front(const pki_alloc_interface *alloc)
{
    pki_alloc_sum before, after;
    alloc->sums(&before, 1);
    alloc->count_next();
    void *volatile block = malloc(1);
    free(block);
    alloc->sums(&after, 1);
    return after.allocations != before.allocations;
}

/* It is asked for, and not there; NULL: nobody asked. */
static const char *why_absent(void)
{
    const char *preloaded = secure_getenv("LD_PRELOAD");
    if (!preloaded || !strstr(preloaded, "libpk_alloc"))
        return NULL;
    return pki_dl_possible() ? "LD_PRELOAD names it, and the loader has not loaded it"
                             : "the program is linked with -static: LD_PRELOAD does nothing there";
}

static const pki_alloc_interface *find_alloc(void)
{
    const pki_alloc_interface *alloc =
        pki_dl_possible() ? dlsym(RTLD_DEFAULT, PKI_ALLOC_SYMBOL) : NULL;
    m.uncounted = NULL;
    if (!alloc)
        m.uncounted = why_absent();
    else if (alloc->size < sizeof *alloc)
        m.uncounted = "it is older than this libpk";
    else if (alloc->beneath(&m.uncounted) && !is_in_front(alloc))
        m.uncounted = "another allocator stands in front of it";
    return m.uncounted ? NULL : alloc;
}

/* Nothing is known of the session that begins. Under the control lock. */
static void reset(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    forget();
    pki_memory_steps_forget();
    /* Here, not on the collector: a thread's first malloc reserves addresses, which count as locked
     * where a program locks all that it will have. */
    (void)pki_timeline_reserve(&m.course.line);
    pthread_mutex_unlock(&pki_drain_lock);
}

/* ---- looks ---- */

/* Resident and private bytes: the first three figures are pages of all, resident, of files or
 * shared. */
static bool read_pages(pki_memory_look *look)
{
    char text[128], *end;
    if (!pki_small_file_once("/proc/self/statm", text, sizeof text))
        return false;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    strtoull(text, &end, 10);
    uint64_t pages = strtoull(end, &end, 10), shared = strtoull(end, &end, 10);
    look->resident = pages * page;
    look->private_bytes = pages > shared ? (pages - shared) * page : 0;
    return pages > 0;
}

static bool read_process(const pki_session *s, pki_memory_look *look)
{
    struct rusage usage;
    *look = (pki_memory_look){.steps = pki_load(&s->arena->header->steps),
                              .ns = pki_activity_ns_of_ticks(pki_activity_ticks())};
    if (getrusage(RUSAGE_SELF, &usage) || !read_pages(look))
        return false;
    look->minor = (uint64_t)usage.ru_minflt;
    look->major = (uint64_t)usage.ru_majflt;
    return true;
}

static void poll_regions(bool early)
{
    if (!m.alloc)
        return;
    uint32_t count = PKI_MIN(m.alloc->regions(), PKI_MEMORY_REGIONS);
    for (uint32_t i = 0; i < count; i++)
        pki_memory_course_see_region(&m.course, i, m.alloc->live(i));
    if (!early)
        return;
    free(m.early.sums);
    m.early = m.next_early;
    m.next_early = count_now();
}

static void store_peaks(void)
{
    uint32_t count = m.alloc ? m.alloc->regions() : 0;
    uint64_t peak = m.alloc ? m.alloc->total_peak() : 0;
    uint64_t *kept = count ? malloc(count * sizeof *kept) : NULL;
    if (!kept)
        return;
    for (uint32_t i = 0; i < count; i++)
        kept[i] = m.alloc->at_peak(i);
    free(m.at_peak);
    free(m.last.sums);
    m.last = count_now();
    m.at_peak = kept;
    m.peak_count = count;
    m.peak = peak;
}

/* Where each end of a step emits samples, only what no step has ended since is emitted here. */
static void emit_counters(const pki_memory_look *look, bool now)
{
    bool at_steps = pki_memory_steps_on(), stepped = look->steps > m.steps;
    m.steps = look->steps;
    if (at_steps ? stepped && !now : !m.alloc)
        return;
    pki_activity_counter(&resident, (double)look->resident);
    if (m.alloc)
        pki_activity_counter(&allocated, (double)m.alloc->total());
}

/* While no step ends there is nothing to tell by step. */
static uint64_t interval_at(const pki_session *s, uint64_t t)
{
    if (pki_load(&s->arena->header->steps) == m.steps)
        return INTERVAL_MOST;
    uint64_t share = m.started ? (t - m.started) / LOOKS : 0;
    return PKI_MIN(PKI_MAX(share, INTERVAL), INTERVAL_MOST);
}

static void look(const pki_session *s, bool now)
{
    pki_memory_look seen;
    uint64_t t = pki_monotonic_ns();
    bool due = now || (!s->idle && t - m.looked >= interval_at(s, t));
    if (!due || !read_process(s, &seen))
        return;
    m.looked = t;
    m.started = m.started ? m.started : t;
    bool early = pki_memory_course_see(&m.course, &seen);
    poll_regions(early);
    pki_gpu_memory_poll(seen.steps, early);
    emit_counters(&seen, now);
    if (now)
        store_peaks();
}

/* Finds libpk_alloc. Under the control lock. */
static void start_memory(pki_session *s)
{
    pthread_mutex_lock(&pki_drain_lock);
    m.alloc = find_alloc();
    m.before = count_now();
    if (m.alloc)
        m.alloc->attach(pki_innermost_region);
    pki_memory_steps_begin(s, m.alloc);
    look(s, true);
    pthread_mutex_unlock(&pki_drain_lock);
}

/* If it is time to. */
static void look_in_time(pki_session *s)
{
    look(s, false);
    if (m.course.looks < SOON && m.steps && interval_at(s, m.looked) < INTERVAL_MOST)
        pki_collect_within(INTERVAL);
}

static void look_now(pki_session *s)
{
    look(s, true);
}

/* ---- the summary ---- */

static double steady(uint32_t region, const pki_alloc_sum *now, uint64_t steps)
{
    pki_alloc_sum early = at(&m.early, region);
    return steps && m.early.count ? (double)(now->allocations - early.allocations) / (double)steps
                                  : 0;
}

/* Of estimated bytes, at most (alloc/interface.h). */
static double standard_error(uint64_t bytes)
{
    return sqrt((double)bytes * (double)m.alloc->sampled());
}

static bool fill_region(uint32_t id, const pki_alloc_sum *now, pki_memory_summary *out)
{
    pki_alloc_sum before = at(&m.before, id);
    pki_memory_region *r = &out->regions[out->region_count];
    const pki_name *name = id ? pki_name_at(id) : NULL;
    *r = (pki_memory_region){.name = name ? strndup(name->name, name->length) : strdup(""),
                             .allocations = now->allocations - before.allocations,
                             .bytes = now->bytes - before.bytes,
                             .frees = now->frees - before.frees,
                             .freed = now->freed - before.freed,
                             .live = pki_saturating_sub(now->bytes, now->freed),
                             .at_peak = id < m.peak_count ? m.at_peak[id] : 0,
                             .steady = steady(id, now, out->steady_steps)};
    r->growth = pki_memory_course_region(&m.course, id, standard_error(r->live));
    r->peak = PKI_MAX(m.alloc->peak(id), r->live);
    out->live += r->live;
    if (!r->allocations && !r->frees && !r->live) {
        free(r->name);
        return true;
    }
    out->region_count++;
    return r->name != NULL;
}

static bool fill_alloc(pki_memory_summary *out)
{
    const char *why;
    counted now = m.last;
    bool done = true;
    free(out->allocator);
    out->allocator = strdup(m.alloc->beneath(&why));
    out->regions = calloc(now.count + 1u, sizeof *out->regions);
    done = out->allocator && out->regions;
    for (uint32_t i = 0; done && i < now.count; i++)
        done = fill_region(i, &now.sums[i], out);
    if (done)
        qsort(out->regions, out->region_count, sizeof *out->regions, pki_memory_by_peak);
    out->peak = PKI_MAX(m.peak, out->live);
    out->sampled = m.alloc->sampled();
    out->within = m.alloc->within() + (uint64_t)(2 * standard_error(out->peak));
    return done;
}

/* Why nothing is counted, or some blocks are not. */
static char *describe_uncounted(void)
{
    char text[128] = "";
    uint64_t missed = m.alloc ? m.alloc->missed() : 0;
    if (missed)
        snprintf(text, sizeof text,
                 "no room to write down %" PRIu64 " blocks of 1 KiB or more: they are in no figure",
                 missed);
    return strdup(m.uncounted ? m.uncounted : text);
}

static void fill_limit(pki_memory_summary *out)
{
    pki_memory_limit limit = pki_memory_limit_find("", out->most_private);
    out->limit = limit.limit;
    out->used = limit.used;
    out->limit_of = strdup(limit.of ? limit.of : "");
}

static bool fill(pki_memory_summary *out)
{
    bool filled = pki_memory_course_fill(&m.course, out);
    if (!pki_memory_field("/proc/self/status", "VmHWM", &out->most_resident))
        out->most_resident = (uint64_t)m.course.resident.moments.max;
    fill_limit(out);
    out->allocator = strdup("");
    out->uncounted = describe_uncounted();
    return filled && out->limit_of && out->allocator && out->uncounted &&
           (!m.alloc || fill_alloc(out));
}

pki_memory_sum pki_memory_so_far(void)
{
    pki_memory_sum sum = pki_memory_course_sum(&m.course);
    uint64_t most;
    if (pki_memory_field("/proc/self/status", "VmHWM", &most))
        sum.most_resident = most;
    return sum;
}

bool pki_memory_allocated(uint64_t *bytes)
{
    *bytes = m.alloc ? m.alloc->total() : 0;
    return m.alloc;
}

/* What the parent's collector may have been amid is neither trusted nor freed in the child. Whoever
 * looks for leaks there finds it here. */
static void *left[8] __attribute__((used));

static void after_fork(void)
{
    static unsigned forks;
    left[forks++ % PKI_COUNT_OF(left)] = m.course.line.parts.rows;
    memset(&m, 0, sizeof m);
    pki_memory_steps_forget();
}

static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    return fill(&out->memory);
}

const pki_service pki_service_memory = {
    .name = "memory",
    .reset = reset,
    .start = start_memory,
    .round = look_in_time,
    .look = look_now,
    .summarise = summarise,
    .after_fork = after_fork,
};
