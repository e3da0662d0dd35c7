#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/processors.h"
#include "history/history.h"
#include "out/chrome/events.h"
#include "session/activity.h"
#include "session/captures/captures.h"
#include "session/captures/waits.h"
#include "session/costs/io.h"

/* ---- a step that is late is looked at while it is ---- */

/* With a clause slow=, a step is known to be slow before it ends: as soon as it has lasted as long
 * as makes it so. From then on the collector looks every 5 ms what its thread waits for, less often
 * as it goes on:
 *
 *     it is blocked     /proc/self/task/TID/syscall: in which call, and on what: a file, a pipe, a
 *                       terminal, a socket's other end, a lock and its holder
 *     it is ready       /proc/PID/stat: which processes' CPU time grows, on its processor
 *     it runs           where, by samples; how many page faults it has
 *
 * All of it is seen from outside of the thread, which does nothing for it. Kernels without
 * CONFIG_HAVE_ARCH_TRACEHOOK, and those that let nobody read these files, say nothing: then it is
 * not known what it waited for, only that it did.
 *
 * By the collector, without a lock; what was seen goes to the history in the next round. */

/* ns: so late it may be found to be late, once one has been in the last ten seconds, and before. A
 * wake-up takes some us, on a virtual machine that rests fifty. */
#define POLL_LEAST 20000000u
#define POLL_AT_REST 50000000u
#define POLL_RESTS 10000000000u
#define LOOK_FIRST 5000000u
#define LOOK_RUNNING 20000000u /* of a thread that has its processor, which a look may take */
#define LOOKS_DENSE 20u        /* then each a tenth of the time since the first one later */
#define LOOK_MOST 1000000000u
#define SEEN_MOST 64u
#define QUOTA_PERIOD 100000000u        /* ns, the kernel's own choice, which few change */
#define QUOTA_KNOWN 5000000000u        /* of longer times nobody knows which step it was */
#define TRACK_LOOKS ((1u << 21) + 16u) /* pki_track_apart; behind those of states.c */
#define SCANS_MOST 50u                 /* of one late step */
#define SCAN_SHARE 50u                 /* of the time between two such looks one may take */
#define SCAN_LEAST 20000000u           /* ns between two looks at all processes */
#define CONSUMERS_MOST 1024u           /* processes that are followed; and threads */

typedef struct consumer {
    uint32_t id;
    uint64_t used, grown; /* ns, at the last scan, and since the first one */
    char name[32];
} consumer;

typedef struct scan {
    unsigned scans, count, next; /* next: where the kernel's list goes on, most likely */
    consumer of[CONSUMERS_MOST];
} scan;

static struct {
    uint64_t late_after; /* ns, after a step's beginning; 0: it is not known. Drain lock */
    uint32_t tid;        /* who makes steps; the same */

    /* the collector's */
    uint64_t step;     /* ticks: the beginning of the step that is looked at; 0: none is */
    uint64_t given_up; /* the same, of one whose thread is gone */
    uint64_t first, last;
    uint32_t of, processor;
    uint64_t faults_before[2], faults[2]; /* then, and since the first look */
    uint64_t pressure_before, pressure;   /* the same, ns */
    bool has_processor;
    unsigned looks, count;
    pki_wait all[SEEN_MOST];
    uint64_t running; /* ns, of the thread, at the last look; 0: it was not asked */
    scan processes, threads;
    uint64_t scanned_first, scanned; /* 0: not at all */
    uint64_t scan_took;              /* ns, the last one */
    uint64_t waited;                 /* ns that it had no processor since the first scan */
    bool ended;                      /* a late step, of which the history knows nothing yet */
    uint64_t quota_asked;            /* when */
    pki_quota quota;                 /* as of then */
} x;

void pki_looks_expect(uint32_t tid, uint64_t late_after)
{
    pki_store(&x.tid, tid);
    pki_store(&x.late_after, late_after);
}

/* ---- samples of a late step's thread: where its processor is ---- */

/* The kernel writes down each millisecond that the thread spends on a processor where it is
 * (perf_event_open(2), a clock of the task). Where it does so in user mode alone, what is missing
 * of the time by schedstat was spent in the kernel.
 *
 * An address becomes "path+offset" in its file, which is what a symbol is found by when the report
 * is made (dladdr waits for the loader's lock, which the program may hold). The program does
 * nothing for it, and gets no signal. */

#define PERIOD_NS 1000000u
#define PAGES 8u /* of samples: a second's */
#define SAMPLES_MOST 2048u
#define ADDRESS 200u
#define BUILD_MOST 20u
#define HEAD 4096u                       /* of a file: its build id is within */
#define FILES_MOST 64u                   /* that code is in */
#define TRACK_SAMPLES ((1u << 21) + 17u) /* pki_track_apart */

typedef struct sample {
    uint64_t at, address;  /* ns, CLOCK_MONOTONIC; 0: in the kernel */
    const struct code *in; /* NULL: not looked for yet, or in none */
} sample;

typedef struct code {
    uint64_t from, until, offset;
    char path[ADDRESS - 24];
    char build[2 * BUILD_MOST + 1]; /* the file's build id, in hex; "" if it has none */
} code;

static struct {
    pki_kernel_ring ring;
    uint32_t tid;
    bool of_kernel; /* there are samples in it, too */
    bool lost;
    uint64_t running; /* ns of the thread by schedstat, of which so many... */
    uint64_t sampled; /* ...samples are there */
    unsigned count;
    sample all[SAMPLES_MOST];
    unsigned code_count;
    code files[FILES_MOST];
} sampler;

static bool open_ring(uint32_t tid, bool of_kernel)
{
    struct perf_event_attr a = {.size = sizeof a,
                                .type = PERF_TYPE_SOFTWARE,
                                .config = PERF_COUNT_SW_TASK_CLOCK,
                                .sample_period = PERIOD_NS,
                                .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME,
                                .use_clockid = 1,
                                .clockid = CLOCK_MONOTONIC,
                                .exclude_kernel = !of_kernel,
                                .exclude_hv = 1};
    return pki_kernel_ring_open(&sampler.ring, &a, tid, PAGES);
}

static uint64_t running_of(uint32_t tid)
{
    pki_thread_cpu cpu;
    return pki_thread_cpu_read("", tid, false, &cpu) ? cpu.running : 0;
}

static void samples_begin(uint32_t tid)
{
    int saved = errno;
    sampler.tid = tid;
    sampler.of_kernel = open_ring(tid, true);
    if (!sampler.of_kernel)
        open_ring(tid, false);
    sampler.running = running_of(tid);
    sampler.sampled = 0;
    sampler.lost = false;
    errno = saved;
}

static void add_sample(uint64_t at, uint64_t address)
{
    if (sampler.count < SAMPLES_MOST)
        sampler.all[sampler.count++] = (sample){at, address, NULL};
}

/* What no sample stands for was in the kernel. */
static void add_kernel(void)
{
    uint64_t ran = pki_saturating_sub(running_of(sampler.tid), sampler.running) / PERIOD_NS;
    uint64_t now = pki_monotonic_ns();
    for (; sampler.sampled + 1 < ran; sampler.sampled++)
        add_sample(now, 0);
}

static void samples_take(void)
{
    pki_kernel_record r;
    if (!sampler.ring.page)
        return;
    while (pki_kernel_ring_next(&sampler.ring, &r))
        if (r.header.type == PERF_RECORD_SAMPLE) {
            bool kernel =
                (r.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
            add_sample(r.words[1], kernel ? 0 : r.words[0]);
            sampler.sampled++;
        } else {
            sampler.lost = true; /* or throttled: what is missing was not in the kernel for that */
        }
    if (sampler.count == SAMPLES_MOST)
        pki_kernel_ring_close(
            &sampler.ring); /* a step that lasts for ever is sampled for two seconds */
}

/* ---- whose code that was ---- */

static const code *code_at(uint64_t address)
{
    for (unsigned i = 0; i < sampler.code_count; i++)
        if (address >= sampler.files[i].from && address < sampler.files[i].until)
            return &sampler.files[i];
    return NULL;
}

static bool is_sampled(uint64_t from, uint64_t until)
{
    for (unsigned i = 0; i < sampler.count; i++)
        if (sampler.all[i].address >= from && sampler.all[i].address < until)
            return true;
    return false;
}

/* The note of that type and name (elf(5)). */
static bool read_note(const char *at, size_t size, char *out)
{
    for (size_t i = 0; i + sizeof(ElfW(Nhdr)) + 4 <= size;) {
        ElfW(Nhdr) n;
        memcpy(&n, at + i, sizeof n);
        size_t name = i + sizeof n, text = name + (n.n_namesz + 3u) / 4 * 4;
        if (n.n_namesz > size || n.n_descsz > size || text + n.n_descsz > size)
            return false;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(at + name, "GNU", 4)) {
            for (size_t k = 0; k < PKI_MIN(n.n_descsz, BUILD_MOST); k++)
                snprintf(out + 2 * k, 3, "%02x", (unsigned char)at[text + k]);
            return true;
        }
        i = text + (n.n_descsz + 3u) / 4 * 4;
    }
    return false;
}

static void read_build(code *c)
{
    char head[HEAD];
    ElfW(Ehdr) e;
    ssize_t n = (ssize_t)pki_small_file_once(c->path, head, sizeof head);
    if (n < (ssize_t)sizeof e)
        return;
    memcpy(&e, head, sizeof e);
    for (size_t i = 0; memcmp(e.e_ident, ELFMAG, SELFMAG) == 0 && i < e.e_phnum; i++) {
        ElfW(Phdr) part;
        size_t at = (size_t)e.e_phoff + i * sizeof part;
        if (e.e_phoff > HEAD || at + sizeof part > (size_t)n)
            return;
        memcpy(&part, head + at, sizeof part);
        if (part.p_type == PT_NOTE && part.p_offset < (size_t)n &&
            part.p_filesz <= (size_t)n - part.p_offset &&
            read_note(head + part.p_offset, part.p_filesz, c->build))
            return;
    }
}

/* Of /proc/self/maps the line of a file's code, if samples are in it. proc_pid_maps(5). */
static void add_code(const char *line)
{
    unsigned long long from, until, offset;
    int path = 0;
    char may[8];
    if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &from, &until, may, &offset, &path) != 4 ||
        may[2] != 'x' || !path || sampler.code_count == FILES_MOST || !is_sampled(from, until))
        return;
    code *c = &sampler.files[sampler.code_count++];
    size_t n = strcspn(line + path, "\n"), cut = n >= sizeof c->path ? n - sizeof c->path + 1 : 0;
    *c = (code){.from = from, .until = until, .offset = offset};
    memcpy(c->path, line + path + cut, n - cut);
    if (c->path[0] == '/')
        read_build(c);
}

/* Line by line, without stdio, whose locks a fork of the program would find held. */
static void read_maps(void)
{
    char text[PATH_MAX + 512];
    size_t held = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = read(fd, text + held, sizeof text - 1 - held)) > 0;) {
        char *line = text, *end;
        held += (size_t)n;
        text[held] = 0;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            add_code(line);
        }
        held -= (size_t)(line - text);
        held = held < sizeof text - 1 ? held : 0; /* a line that no file name makes */
        memmove(text, line, held);
    }
    if (fd >= 0)
        close(fd);
}

/* The code that it knows from before is there no longer, for all that is known. */
static void find_code(void)
{
    sampler.code_count = 0;
    if (sampler.count)
        read_maps();
    for (unsigned i = 0; i < sampler.count; i++)
        sampler.all[i].in = code_at(sampler.all[i].address);
}

static void samples_end(void)
{
    samples_take();
    pki_kernel_ring_close(&sampler.ring);
    find_code();
}

/* ---- who has its processor ---- */

static consumer *consumer_of(scan *at, uint32_t id)
{
    for (unsigned i = 0; i < at->count; i++) {
        consumer *c = &at->of[(at->next + i) % at->count];
        if (c->id == id) {
            at->next = (unsigned)(c - at->of) + 1;
            return c;
        }
    }
    return NULL;
}

/* ns on a processor: of a process in the kernel's ticks, of a thread of ours to the ns, since many
 * may share what is missing. */
static uint64_t used_by(bool own, uint32_t id, const pki_thread_stat *stat)
{
    pki_thread_cpu cpu;
    if (own)
        return pki_thread_cpu_read("", id, false, &cpu) ? cpu.running : 0;
    return stat->ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* One process, or one thread of this one: by how much its time has grown since the scan before, if
 * it is where our thread wants to be (a process of many threads: the first of them). Who is new
 * since then has all of its time from then on. */
static void consider(const char *folder, uint32_t id, scan *at)
{
    pki_thread_stat stat;
    bool own = at == &x.threads;
    if (!pki_thread_stat_read(folder, id, &stat))
        return;
    if (stat.of_kernel && stat.processor != x.processor)
        return;
    consumer *c = consumer_of(at, id);
    if (!c && at->count == CONSUMERS_MOST)
        return;
    uint64_t used = used_by(own, id, &stat);
    if (!c) {
        c = &at->of[at->count++];
        *c = (consumer){.id = id, .used = at->scans ? 0 : used};
        snprintf(c->name, sizeof c->name, "%s", stat.name);
    }
    if (stat.processor == x.processor)
        c->grown += pki_saturating_sub(used, c->used);
    c->used = used;
}

static void scan_folder(const char *folder, scan *at, uint32_t not_this)
{
    DIR *d = opendir(folder);
    at->next = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        uint32_t id = (uint32_t)strtoul(e->d_name, NULL, 10);
        if (id && id != not_this)
            consider(folder, id, at);
    }
    if (d)
        closedir(d);
    at->scans++;
}

static void scan_all(void)
{
    uint64_t now = pki_monotonic_ns();
    if (!x.scanned)
        x.scanned_first = now;
    scan_folder("/proc", &x.processes, (uint32_t)getpid());
    scan_folder("/proc/self/task", &x.threads, x.of);
    x.scanned = pki_monotonic_ns();
    x.scan_took = x.scanned - now;
}

/* The process that has had most, or the program's own threads together; ns. */
static uint64_t who_had_most(char *name, size_t size)
{
    const consumer *most = NULL;
    uint64_t own = 0;
    for (unsigned i = 0; i < x.processes.count; i++)
        if (!most || x.processes.of[i].grown > most->grown)
            most = &x.processes.of[i];
    for (unsigned i = 0; i < x.threads.count; i++)
        own += x.threads.of[i].grown;
    uint64_t other = most ? most->grown : 0;
    if (own >= other)
        snprintf(name, size, PKI_BY_OWN_THREADS);
    else
        snprintf(name, size, "%s (pid %u)", most->name, most->id);
    return PKI_MAX(own, other);
}

/* Without a processor for most of the time since the last look? A thread that gets none at all has
 * neither run nor, by its account, been ready: that is added up once it runs. */
static void note_runnable(uint32_t tid, uint64_t now)
{
    pki_thread_cpu cpu;
    if (!pki_thread_cpu_read("", tid, false, &cpu))
        return;
    uint64_t ran = x.running ? pki_saturating_sub(cpu.running, x.running) : now - x.last;
    uint64_t waited = pki_saturating_sub(now - x.last, ran);
    bool short_of = waited >= (now - x.last) / 2 && waited;
    x.has_processor = x.running && !short_of;
    x.running = cpu.running;
    if (x.scanned)
        x.waited += waited;
    bool due = pki_saturating_sub(now, x.scanned) >= PKI_MAX(SCAN_LEAST, SCAN_SHARE * x.scan_took);
    if (short_of && due && x.processes.scans < SCANS_MOST)
        scan_all();
}

/* ---- what it waits for ---- */

static bool is_alike(const pki_wait *a, const pki_wait *b)
{
    return a->what == b->what && strcmp(a->object, b->object) == 0 &&
           strcmp(a->holder, b->holder) == 0 && strcmp(a->region, b->region) == 0;
}

static void note_blocked(const pki_session *s, uint32_t tid, uint64_t now)
{
    pki_wait is;
    if (!pki_wait_see(s, tid, &is))
        return;
    is.from = is.until = now;
    pki_wait *before = x.count ? &x.all[x.count - 1] : NULL;
    if (before && is_alike(before, &is))
        before->until = now;
    else if (x.count < SEEN_MOST)
        x.all[x.count++] = is;
}

/* ---- a late step ---- */

/* Of the machine, us: how long some task waited for memory (proc(5), pressure). */
static uint64_t read_pressure(void)
{
    char text[256];
    const char *total = pki_small_file_once("/proc/pressure/memory", text, sizeof text)
                            ? strstr(text, "total=")
                            : NULL;
    return total ? strtoull(total + 6, NULL, 10) : 0;
}

static bool look(const pki_session *s, uint64_t now)
{
    pki_thread_stat stat;
    if (!pki_thread_stat_read("/proc/self/task", x.of, &stat))
        return false;
    if (x.looks == 0) {
        memcpy(x.faults_before, stat.faults, sizeof stat.faults);
        x.pressure_before = read_pressure();
    }
    for (int i = 0; i < 2; i++)
        x.faults[i] = stat.faults[i] - x.faults_before[i];
    samples_take();
    if (!sampler.of_kernel && !sampler.lost && sampler.ring.page)
        add_kernel();
    if (stat.state == 'R') {
        x.processor = stat.processor;
        note_runnable(x.of, now);
    } else {
        x.has_processor = false;
        x.running = 0;
        note_blocked(s, x.of, now);
    }
    x.last = now;
    x.looks++;
    return true;
}

static uint64_t next_look(uint64_t now)
{
    uint64_t least = x.has_processor ? LOOK_RUNNING : LOOK_FIRST;
    uint64_t pause = x.looks < LOOKS_DENSE ? least : (now - x.first) / 10;
    return now + PKI_MIN(PKI_MAX(pause, least), LOOK_MOST);
}

static void begin_late(uint64_t ticks, uint64_t now)
{
    x.step = ticks;
    x.first = x.last = now;
    x.of = pki_load(&x.tid);
    x.looks = 0;
    samples_begin(x.of);
    x.running = 0;
}

/* Once more who had the processor, unless that takes long. */
static void end_late(bool scans)
{
    if (scans && x.scanned && x.scan_took < SCAN_LEAST)
        scan_all();
    samples_end();
    x.pressure = 1000 * pki_saturating_sub(read_pressure(), x.pressure_before);
    x.step = 0;
    x.ended = true;
}

/* A thread that has ended makes no step that is late. */
static uint64_t give_up(uint64_t ticks)
{
    samples_end();
    sampler.count = 0;
    x.step = 0;
    x.given_up = ticks;
    return 0;
}

static uint64_t poll_ns(uint64_t now)
{
    return now - x.last < POLL_RESTS ? POLL_LEAST : POLL_AT_REST;
}

/* The thread that makes the step; and when that is late, 0: it is not known. */
static uint64_t late_at(const pki_session *s, uint64_t ticks)
{
    const pki_clock_map *clock = &s->arena->header->clock;
    const pki_thread *stepper = pki_load(&s->registry->stepper);
    uint64_t late_after = pki_load(&x.late_after);
    if (!s->history || !late_after || !ticks || ticks == x.given_up || !stepper ||
        pki_load(&stepper->tid) != pki_load(&x.tid))
        return 0;
    return clock->origin_ns + pki_clock_ns(clock, ticks) + late_after;
}

static uint64_t look_again(const pki_session *s, uint64_t ticks, uint64_t now)
{
    if (!x.step)
        begin_late(ticks, now);
    return look(s, now) ? next_look(now) : give_up(ticks);
}

/* If it was rung for, there is a round to be made. What looks read is no I/O of the program's. */
static uint64_t watch(pki_session *s, uint64_t slept, uint64_t due)
{
    uint64_t now = s->woke, ticks = pki_load(&s->arena->header->live.step_ticks);
    (void)slept;
    if (now < due)
        return s->watch;
    bool over = x.step && x.step != ticks;
    uint64_t late = late_at(s, ticks);
    bool looks = late && now >= late && !x.ended && !over;
    if (!looks && !over) /* once one has ended, the round tells what is known of it */
        return !late || x.ended ? 0 : PKI_MAX(late, now + poll_ns(now));
    pki_io_works();
    uint64_t next = 0;
    if (over)
        end_late(true);
    else
        next = look_again(s, ticks, now);
    pki_io_rests();
    return next;
}

/* ---- into the history ---- */

static void tell(const pki_session *s, const char *name, uint64_t from, uint64_t until,
                 const pki_activity_arg *args, size_t count)
{
    pki_track track = {s->config.world.pid, pki_track_apart(TRACK_LOOKS), NULL,
                       "what late steps waited for", 0};
    uint32_t id = pki_track_unwritten(&track);
    pki_activity a = {.kind = PKI_ACTIVITY_STATE,
                      .track = id,
                      .name = name,
                      .name_length = strlen(name),
                      .start = pki_activity_ns(from),
                      .end = pki_activity_ns(PKI_MAX(until, from + 1000)),
                      .device = PKI_NO_DEVICE,
                      .args = args,
                      .arg_count = count};
    if (id)
        pki_history_activity(s->history, &a, &track);
}

static void tell_seen(const pki_session *s, const pki_wait *w)
{
    pki_activity_arg args[5] = {{"thread", NULL, x.of}};
    size_t n = 1;
    const struct {
        const char *key, *text;
    } more[] = {
        {"call", w->call}, {"object", w->object}, {"by", w->holder}, {"by_region", w->region}};
    for (size_t i = 0; i < PKI_COUNT_OF(more); i++)
        if (more[i].text[0])
            args[n++] = (pki_activity_arg){more[i].key, more[i].text, 0};
    tell(s, w->what, w->from, w->until, args, n);
}

static void tell_neighbour(const pki_session *s)
{
    char who[80];
    uint64_t ran = who_had_most(who, sizeof who);
    pki_activity_arg args[] = {{"thread", NULL, x.of},
                               {"by", who, 0},
                               {"ran_ns", NULL, (int64_t)ran},
                               {"ready_ns", NULL, (int64_t)x.waited}};
    if (ran)
        pki_states_neighbour(who, ran);
    if (ran)
        tell(s, PKI_STATE_NEIGHBOUR, x.scanned_first, x.scanned, args, PKI_COUNT_OF(args));
}

/* How long its cgroup's quota held all of the process up since it was asked last: each round where
 * there is one, and behind each late step, since there may be one by now. */
static void tell_quota(const pki_session *s, bool late)
{
    pki_quota now;
    uint64_t then = x.quota_asked;
    if (then && !late && x.quota.processors == 0)
        return;
    pki_quota_read("", &now);
    uint64_t held = pki_saturating_sub(now.throttled_ns, x.quota.throttled_ns);
    uint64_t times = pki_saturating_sub(now.throttled, x.quota.throttled);
    held = PKI_MIN(held, times * QUOTA_PERIOD); /* it is of all processors */
    pki_activity_arg args[] = {{"thread", NULL, pki_load(&x.tid)}, {"off_ns", NULL, (int64_t)held}};
    x.quota_asked = pki_monotonic_ns();
    if (held && late)
        pki_states_neighbour(PKI_BY_QUOTA, held);
    if (held && then && x.quota_asked - then < QUOTA_KNOWN)
        tell(s, PKI_STATE_QUOTA, then, x.quota_asked, args, PKI_COUNT_OF(args));
    x.quota = now;
}

static void tell_amount(const pki_session *s, const char *name, const char *key, uint64_t amount)
{
    pki_activity_arg args[] = {{"thread", NULL, x.of}, {key, NULL, (int64_t)amount}};
    if (amount)
        tell(s, name, x.first, x.last, args, PKI_COUNT_OF(args));
}

static void describe(const sample *at, char text[ADDRESS])
{
    if (at->in)
        snprintf(text, ADDRESS, "%s+0x%llx", at->in->path,
                 (unsigned long long)(at->address - at->in->from + at->in->offset));
    else
        snprintf(text, ADDRESS, at->address ? PKI_SAMPLE_ANYWHERE : PKI_SAMPLE_KERNEL);
}

static void tell_sample(const pki_session *s, const pki_track *track, uint32_t id, const sample *at)
{
    char text[ADDRESS];
    describe(at, text);
    const char *name = strrchr(text, '/') ? strrchr(text, '/') + 1 : text;
    const char *build = at->in ? at->in->build : "";
    pki_activity_arg args[] = {{"thread", NULL, sampler.tid}, {"at", text, 0}, {"build", build, 0}};
    pki_activity a = {.kind = PKI_ACTIVITY_STATE,
                      .track = id,
                      .name = name,
                      .name_length = strlen(name),
                      .start = pki_activity_ns(at->at),
                      .end = pki_activity_ns(at->at),
                      .device = PKI_NO_DEVICE,
                      .args = args,
                      .arg_count = build[0] ? 3 : 2};
    pki_history_activity(s->history, &a, track);
}

static void tell_samples(const pki_session *s)
{
    pki_track track = {s->config.world.pid, pki_track_apart(TRACK_SAMPLES), NULL,
                       "where late steps had their processor", 0};
    uint32_t id = sampler.count ? pki_track_unwritten(&track) : 0;
    for (unsigned i = 0; i < sampler.count && id; i++)
        tell_sample(s, &track, id, &sampler.all[i]);
    sampler.count = 0;
}

/* ---- the service ---- */

/* As states.c: at pk_stop there is no collector. */
static void drain(pki_session *s)
{
    uint32_t collector = pki_load(&s->collector_tid);
    if (!s->history || !pki_load(&x.late_after) ||
        (collector && collector != (uint32_t)syscall(SYS_gettid)))
        return;
    if (x.step && x.step != pki_load(&s->arena->header->live.step_ticks))
        end_late(false);
    for (unsigned i = 0; i < x.count; i++)
        tell_seen(s, &x.all[i]);
    x.count = 0;
    tell_quota(s, x.ended);
    if (!x.ended)
        return;
    x.ended = false;
    tell_samples(s);
    tell_amount(s, PKI_STATE_FAULTS, "count", x.faults[0]);
    tell_amount(s, PKI_STATE_MAJOR_FAULTS, "count", x.faults[1]);
    tell_amount(s, PKI_STATE_PRESSURE, "off_ns", x.pressure);
    if (x.scanned)
        tell_neighbour(s);
    x.processes.scans = x.processes.count = x.threads.scans = x.threads.count = 0;
    x.scanned = x.waited = 0;
}

/* Without a step there is nothing, and pages that nobody has touched stay so. */
static void clear(void)
{
    if (!x.tid)
        return;
    memset(&sampler, 0, sizeof sampler);
    memset(&x, 0, sizeof x);
}

static void forget(void)
{
    pki_kernel_ring_close(&sampler.ring);
    clear();
}

const pki_service pki_service_looks = {
    .name = "looks",
    .reset = forget,
    .drain = drain,
    .watch = watch,
    .forget = forget,
    .after_fork = clear, /* the kernel gives the child no such mapping */
};
