#include "session/captures/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "core/frames.h"
#include "core/ring.h"
#include "measure/stacks/stacks.h"
#include "out/chrome/events.h"
#include "session/activity.h"
#include "session/collector/collect.h"
#include "session/costs/io.h"
#include "session/trace/output.h"

/* ---- where threads are, by samples of their stacks ---- */

/*
 *     a history is kept     99 times a second of a processor's time: the thread that makes steps,
 *                           and the process's first one if it records before there are any
 *     samples=N             N times: all threads that record, up to eight; they are in a trace, too
 *     a step is late        a thousand times: its thread (looks.c)
 *
 * The kernel writes samples down, the collector reads and unwinds them (measure/stacks), tells them
 * to the history, and counts those that were in no region, by function, for the report. The sampled
 * thread does nothing for it; what the kernel takes of its time is counted as overhead.
 *
 * A place becomes the number of its file and the offset in it, by which symbols are found when the
 * report is made: in each round the files that its samples are in are told, too.
 *
 * By the collector; under the drain lock but for samples of late steps. */

#define HISTORY_RATE 99u
#define LATE_NS 1001001u /* 999 times a second */
#define LATE_MOST 2048u  /* of one step: one that lasts for ever is sampled so for two seconds */
#define THREADS 8u
#define PAGES 64u          /* of samples: 30, those of 300 ms at HISTORY_RATE */
#define MORE_PAGES 128u    /* of few threads; what the kernel refuses is halved */
#define SAMPLES_MOST 4096u /* of a round */
#define PLACES_MOST 65536u
#define FILES_MOST 256u
#define OUTSIDE_MOST 1024u /* functions; a power of two */
#define OUTSIDE_TOLD 100u
#define SAMPLE_NS 14000u /* docs/internals/overhead.md */
#define ROOM_NS 25000000u
#define OFTEN_NS 5000000u
#define YOUNG_NS 20000000u
#define WITHIN_NS 250000000ull           /* a round, so that PAGES have room */
#define TRACK_SAMPLES ((1u << 21) + 17u) /* pki_track_apart */

typedef struct sample {
    uint64_t at, ns; /* CLOCK_MONOTONIC; that it stands for */
    uint64_t ticks;  /* then, on the threads' clock */
    uint32_t tid, first, count;
    bool kernel, inside; /* it was in a region */
} sample;

typedef struct followed {
    pki_sampler sampler;
    bool gone;
} followed;

typedef struct file {
    uint32_t number;
    char path[PKI_CODE_PATH], build[PKI_CODE_BUILD];
} file;

typedef struct outside {
    pki_place at, caller;
    bool kernel;
    uint64_t samples, ns;
} outside;

static struct {
    uint64_t period; /* ns; 0: off */
    uint64_t opened;
    bool all; /* threads, and to the trace */
    bool refused;
    unsigned count;
    followed threads[THREADS];
    pki_sampler late;
    unsigned late_taken;
    uint64_t late_from, late_until; /* ns; until: 0: it goes on */
    uint64_t late_last;             /* when it was last seen to have its processor */
    uint64_t taken;                 /* any thread reads it */
    uint64_t before;                /* when the round before had taken records out of the rings */
    unsigned sample_count, place_count, file_count, outside_count;
    uint64_t inside_ns, outside_ns;
    file files[FILES_MOST];
    outside outside[OUTSIDE_MOST];
    sample samples[SAMPLES_MOST]; /* these two are read as far as they were written */
    pki_place places[PLACES_MOST];
} x;

/* ---- samples are taken ---- */

static void keep(const pki_stack_sample *s, const pki_sampler *of)
{
    pki_store(&x.taken, x.taken + 1);
    if (x.sample_count == SAMPLES_MOST || x.place_count + s->count > PLACES_MOST)
        return;
    x.samples[x.sample_count++] = (sample){.at = s->at,
                                           .ns = of->period,
                                           .tid = of->tid,
                                           .first = x.place_count,
                                           .count = s->count,
                                           .kernel = s->kernel};
    memcpy(&x.places[x.place_count], s->places, s->count * sizeof s->places[0]);
    x.place_count += s->count;
}

/* What no sample stands for was in the kernel. */
static void keep_missing(pki_sampler *s)
{
    pki_stack_sample in_kernel = {.at = pki_monotonic_ns(), .kernel = true};
    for (uint64_t n = pki_sampler_missing(s); n; n--)
        keep(&in_kernel, s);
}

static bool is_of_late(const pki_sampler *s, uint64_t at)
{
    return s->tid == x.late.tid && at >= x.late_from && (!x.late_until || at <= x.late_until);
}

static void take(pki_sampler *s)
{
    static pki_stack_sample one;
    while (pki_sampler_next(s, &one))
        if (s == &x.late || !is_of_late(s, one.at))
            keep(&one, s);
    if (s->ring.page)
        keep_missing(s);
}

/* ---- a late step's ---- */

static void begin_late(uint32_t tid)
{
    int saved = errno;
    pki_sampler_open(&x.late, tid, LATE_NS, PAGES);
    x.late_from = x.late_last = pki_monotonic_ns();
    x.late_until = x.late_taken = 0;
    errno = saved;
}

static void end_late(void)
{
    if (x.late.ring.page)
        take(&x.late);
    pki_sampler_close(&x.late);
    if (!x.late_until)
        x.late_until = pki_monotonic_ns();
}

static void take_late(void)
{
    uint64_t before = x.taken;
    if (!x.late.ring.page)
        return;
    take(&x.late);
    x.late_taken += (unsigned)(x.taken - before);
    if (x.taken != before)
        x.late_last = pki_monotonic_ns();
    if (x.late_taken >= LATE_MOST)
        end_late();
}

void pki_stacks_late(uint32_t tid)
{
    if (tid)
        begin_late(tid);
    else
        end_late();
}

/* Rings of so many samples have room for so long. What has had no processor for long is looked at
 * less: what may be lost is a tenth of that time. */
static uint64_t watch(pki_session *s, uint64_t slept, uint64_t due)
{
    (void)slept, (void)due;
    bool often = x.count && x.period < OFTEN_NS;
    if (!often && !x.late.ring.page)
        return 0;
    pki_io_works(); /* lists of the process's files are read */
    take_late();
    for (unsigned i = 0; often && i < x.count; i++)
        take(&x.threads[i].sampler);
    pki_io_rests();
    if (often || !x.late.ring.page)
        return often ? s->woke + ROOM_NS : 0;
    uint64_t rests = pki_saturating_sub(s->woke, x.late_last) / 10;
    return s->woke + PKI_MIN(PKI_MAX(rests, ROOM_NS), WITHIN_NS);
}

/* ---- which threads ---- */

static void refuse(void)
{
    if (x.refused)
        return;
    x.refused = true;
    pki_log(PK_LOG_INFO,
            "samples: the kernel gives none (perf_event_open: %s): in which functions slow steps, "
            "and what is in no region, had their processor is not known",
            strerror(errno));
}

static bool is_followed(uint32_t tid)
{
    for (unsigned i = 0; i < x.count; i++)
        if (x.threads[i].sampler.tid == tid && !x.threads[i].gone)
            return true;
    return false;
}

static followed *find_place(void)
{
    for (unsigned i = 0; i < x.count; i++)
        if (x.threads[i].gone) {
            pki_sampler_close(&x.threads[i].sampler);
            return &x.threads[i];
        }
    return x.count < THREADS ? &x.threads[x.count++] : NULL;
}

static void follow(uint32_t tid)
{
    followed *f = is_followed(tid) ? NULL : find_place();
    int saved = errno;
    if (!f)
        return;
    *f = (followed){.gone = false};
    if (!pki_sampler_open(&f->sampler, tid, x.period, x.all ? PAGES : MORE_PAGES))
        refuse();
    errno = saved;
}

/* Not for the history of a run that is over by then: a ring takes 0.3 ms, of which that has a
 * sample or two. */
static bool is_young(void)
{
    uint64_t age = pki_monotonic_ns() - x.opened;
    if (x.all || age >= YOUNG_NS)
        return false;
    pki_collect_within(YOUNG_NS - age);
    return true;
}

static void follow_threads(const pki_session *s)
{
    if (is_young())
        return;
    const pki_thread *stepper = pki_load(&s->registry->stepper);
    for (unsigned i = 0; i < x.count; i++)
        x.threads[i].gone |= !pki_registry_thread_of(s->registry, x.threads[i].sampler.tid);
    if (stepper && pki_load_acquire(&stepper->life) == PKI_THREAD_LIVE)
        follow(pki_load(&stepper->tid));
    else if (!x.count && pki_registry_thread_of(s->registry, s->config.world.pid))
        follow(s->config.world.pid);
    for (uint32_t i = 0; x.all && i < pki_registry_blocks(s->registry); i++) {
        const pki_thread *t = pki_registry_block(s->registry, i);
        if (pki_load_acquire(&t->life) == PKI_THREAD_LIVE && pki_load(&t->tid))
            follow(pki_load(&t->tid));
    }
}

/* ---- into the history ---- */

static file *file_of(uint32_t number)
{
    for (unsigned i = 0; i < x.file_count; i++)
        if (x.files[i].number == number)
            return &x.files[i];
    return NULL;
}

/* Its path and build, from when it was there; a bounded number of files. */
static void know_files(void)
{
    for (unsigned i = 0; i < x.place_count; i++) {
        uint32_t number = x.places[i].number;
        const pki_code *c = number && !file_of(number) ? pki_code_of(number) : NULL;
        if (!c || x.file_count == FILES_MOST)
            continue;
        file *f = &x.files[x.file_count++];
        f->number = number;
        memcpy(f->path, c->path, sizeof f->path);
        memcpy(f->build, c->build, sizeof f->build);
    }
}

static void tell(const pki_session *s, const char *name, uint64_t from, uint64_t until,
                 const pki_activity_arg *args, size_t count)
{
    pki_track track = {s->config.world.pid, pki_track_apart(TRACK_SAMPLES), NULL,
                       "where threads had their processor", 0};
    bool traced = x.all && s->writing;
    uint32_t id = traced ? pki_track_add(&track) : pki_track_unwritten(&track);
    pki_activity a = {.kind = PKI_ACTIVITY_STATE,
                      .track = id,
                      .name = name,
                      .name_length = strlen(name),
                      .start = pki_activity_ns(from),
                      .end = pki_activity_ns(until),
                      .device = PKI_NO_DEVICE,
                      .args = args,
                      .arg_count = count};
    if (id)
        pki_activity_tell(&a, traced);
}

static const char *name_of(const char *path)
{
    return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/* "libm.so.6+0x1234", for who looks at it in a viewer. */
static void name_sample(const sample *at, char *text, size_t size)
{
    const pki_place *p = &x.places[at->first];
    const file *f = at->count && p->number ? file_of(p->number) : NULL;
    if (at->kernel || !at->count)
        snprintf(text, size, PKI_SAMPLE_KERNEL);
    else if (f)
        snprintf(text, size, "%s+0x%llx", name_of(f->path), (unsigned long long)p->offset);
    else
        snprintf(text, size, PKI_SAMPLE_ANYWHERE);
}

static char *put_hex(char *to, uint64_t number)
{
    static const char digits[] = "0123456789abcdef";
    unsigned shift = 60;
    while (shift && !(number >> shift))
        shift -= 4;
    for (;; shift -= 4) {
        *to++ = digits[number >> shift & 15];
        if (!shift)
            return to;
    }
}

/* "3+1234 1+5678", by hand: with printf it would take as long as to unwind it. */
static void put_stack(const sample *at, char *to)
{
    const char *kernel = at->kernel ? PKI_SAMPLE_KERNEL : "";
    size_t n = strlen(kernel);
    memcpy(to, kernel, n);
    to += n;
    for (unsigned i = 0; i < at->count; i++) {
        const pki_place *p = &x.places[at->first + i];
        if (i || n)
            *to++ = ' ';
        to = put_hex(to, p->number);
        *to++ = '+';
        to = put_hex(to, p->offset);
    }
    *to = 0;
}

static void tell_sample(const pki_session *s, const sample *at)
{
    char name[PKI_CODE_PATH + 32], stack[PKI_STACK_MOST * 26 + 16];
    put_stack(at, stack);
    name_sample(at, name, sizeof name);
    pki_activity_arg args[] = {
        {"thread", NULL, at->tid}, {"stack", stack, 0}, {"ns", NULL, (int64_t)at->ns}};
    tell(s, name, at->at, at->at, args, PKI_COUNT_OF(args));
}

static bool is_in(const file *f)
{
    for (unsigned i = 0; i < x.place_count; i++)
        if (x.places[i].number == f->number)
            return true;
    return false;
}

static void tell_all(const pki_session *s)
{
    uint64_t from = UINT64_MAX, until = 0;
    for (unsigned i = 0; i < x.sample_count; i++) {
        from = PKI_MIN(from, x.samples[i].at);
        until = PKI_MAX(until, x.samples[i].at);
        tell_sample(s, &x.samples[i]);
    }
    for (unsigned i = 0; i < x.file_count; i++) {
        const file *f = &x.files[i];
        pki_activity_arg args[] = {
            {"file", NULL, f->number}, {"path", f->path, 0}, {"build", f->build, 0}};
        if (is_in(f))
            tell(s, PKI_STATE_FILE, from, PKI_MAX(until, from + 1000), args, f->build[0] ? 3 : 2);
    }
}

/* ---- which were in no region ---- */

static sample *of_thread[SAMPLES_MOST]; /* by time */

static int earlier_first(const void *a, const void *b)
{
    const sample *const *s = a, *const *t = b;
    return ((*s)->at > (*t)->at) - ((*s)->at < (*t)->at);
}

static unsigned samples_of(uint32_t tid)
{
    unsigned n = 0;
    for (unsigned i = 0; i < x.sample_count; i++)
        if (x.samples[i].tid == tid)
            of_thread[n++] = &x.samples[i];
    if (n)
        qsort(of_thread, n, sizeof of_thread[0], earlier_first);
    return n;
}

/* The clock of the threads' records as the sample was made: converting records would take longer.
 */
static uint64_t ticks_of(const pki_session *s, const sample *at)
{
    const pki_clock_map *clock = &s->arena->header->clock;
    uint64_t ns = pki_clock_session_ns(clock, at->at), low = 0;
    uint64_t high = pki_activity_ticks();
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (pki_clock_ns(clock, middle) > ns)
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* Those that are open now. What ends before records are taken is among these. */
static void note_open(const pki_session *s)
{
    static pki_open_frames frames;
    for (unsigned i = 0; i < x.sample_count; i++)
        x.samples[i].ticks = ticks_of(s, &x.samples[i]);
    for (unsigned i = 0; i < x.count; i++) {
        uint32_t tid = x.threads[i].sampler.tid;
        const pki_thread *t = pki_registry_thread_of(s->registry, tid);
        unsigned n = t && pki_open_frames_of(t, &frames) && frames.depth ? samples_of(tid) : 0;
        for (unsigned k = 0; k < n; k++)
            of_thread[k]->inside = of_thread[k]->ticks >= frames.open[0].start;
    }
}

/* Of a turn, those that are folded, and not taken yet: slots of records. */
typedef struct records {
    const pki_thread *thread;
    const pki_record *ring;
    uint32_t from, count; /* bytes; slots */
} records;

static const pki_record *slot(const records *r, uint32_t i)
{
    uint64_t offset = r->from + (uint64_t)i * sizeof(pki_record), all = r->thread->ring_bytes;
    return pki_record_in(r->ring, (uint32_t)(offset >= all ? offset - all : offset));
}

static bool is_region(const pki_record *r)
{
    unsigned type = pki_what_type(r->what);
    return type == PKI_RECORD_REGION || type == PKI_RECORD_REGION_WORK;
}

static bool ends_behind(const pki_record *r, uint64_t ticks)
{
    return r->start + r->value > ticks;
}

/* Regions stand there in the order of their ends. So at a million a second one does not read them
 * all for each hundredth of a second. */
static uint32_t first_behind(const records *r, uint32_t low, uint64_t ticks)
{
    for (uint32_t high = r->count; low < high;) {
        uint32_t middle = low + (high - low) / 2, i = middle;
        while (i < high && !is_region(slot(r, i)))
            i++;
        if (i == high || ends_behind(slot(r, i), ticks))
            high = middle;
        else
            low = i + 1;
    }
    return low;
}

static bool is_outermost(const pki_record *r)
{
    return is_region(r) && pki_what_depth(r->what) == 1;
}

/* The one from there on that ends behind that moment; none: their count. */
static uint32_t outermost_behind(const records *r, uint32_t i, uint64_t ticks)
{
    if (i < r->count && is_outermost(slot(r, i)) && ends_behind(slot(r, i), ticks))
        return i;
    for (i = first_behind(r, i, ticks); i < r->count && !is_outermost(slot(r, i));)
        i++;
    return i;
}

/* From the *next of n samples on. */
static void note_records_of(const records *r, unsigned *next, unsigned n)
{
    for (uint32_t i = 0; *next < n; ++*next) {
        sample *at = of_thread[*next];
        i = outermost_behind(r, i, at->ticks);
        if (i == r->count)
            return;
        at->inside |= slot(r, i)->start <= at->ticks;
    }
}

/* Those that have ended since the round before. */
static void note_records(const pki_session *s, const pki_thread *t)
{
    uint64_t at = t->taken[pki_output_in_preparation(s)];
    uint64_t until = pki_load_acquire(&t->folded); /* pairs with the release in pki_fold_note */
    uint32_t offset = pki_cursor_offset(at);
    unsigned next = 0, n = samples_of(t->tid);
    for (uint32_t turn = pki_cursor_turn(at); n; turn++, offset = 0) {
        uint32_t bytes = pki_ring_bytes_between(t, offset, pki_turn_until(t, turn, offset, until));
        const records r = {t, pki_turn_records(t, turn), offset,
                           bytes / (uint32_t)sizeof(pki_record)};
        note_records_of(&r, &next, n);
        if (turn == pki_cursor_turn(until))
            return;
    }
}

/* As far as the tables know functions: else a place is one. */
static bool is_alike(const pki_place *a, const pki_place *b)
{
    return a->number == b->number && a->function == b->function &&
           (a->function || a->offset == b->offset);
}

static outside *outside_of(const sample *at, const pki_place *place, const pki_place *caller)
{
    uint64_t h = (place->function ? place->function : place->offset) * 31 + place->number;
    h = h * 31 + caller->function + caller->number + at->kernel;
    for (unsigned n = 0; n < OUTSIDE_MOST; n++) {
        outside *o = &x.outside[(h + n) % OUTSIDE_MOST];
        if (!o->samples && x.outside_count >= OUTSIDE_MOST * 3 / 4)
            return NULL;
        if (!o->samples) {
            x.outside_count++;
            *o = (outside){*place, *caller, at->kernel, 0, 0};
            return o;
        }
        if (o->kernel == at->kernel && is_alike(&o->at, place) && is_alike(&o->caller, caller))
            return o;
    }
    return NULL;
}

static void count_outside(const sample *at)
{
    static const pki_place none;
    const pki_place *first = &x.places[at->first];
    outside *o = outside_of(at, at->count ? first : &none, at->count > 1 ? first + 1 : &none);
    x.outside_ns += at->ns;
    if (!o)
        return; /* no room: it is in the sum alone */
    o->samples++;
    o->ns += at->ns;
}

/* ---- into the report ---- */

static int dearest_first(const void *a, const void *b)
{
    const outside *o = a, *p = b;
    return o->ns != p->ns ? (o->ns < p->ns) - (o->ns > p->ns)
                          : (o->at.offset > p->at.offset) - (o->at.offset < p->at.offset);
}

static char *place_text(const pki_place *p, bool kernel)
{
    char text[PKI_CODE_PATH + 32];
    const file *f = p->number ? file_of(p->number) : NULL;
    uint64_t offset = p->function ? p->function : p->offset;
    if (kernel)
        snprintf(text, sizeof text, PKI_SAMPLE_KERNEL);
    else if (f)
        snprintf(text, sizeof text, "%s+0x%llx", f->path, (unsigned long long)offset);
    else
        snprintf(text, sizeof text, "%s", p->offset ? PKI_SAMPLE_ANYWHERE : "");
    return strdup(text);
}

static char *build_of(const pki_place *p, bool kernel)
{
    const file *f = p->number && !kernel ? file_of(p->number) : NULL;
    return strdup(f ? f->build : "");
}

/* Of the kernel the caller is who asked it. */
static bool make_row(const outside *o, pki_outside_row *row)
{
    const pki_place *caller = o->kernel ? &o->at : &o->caller;
    *row = (pki_outside_row){.function = strdup(""),
                             .caller = strdup(""),
                             .place = place_text(&o->at, o->kernel),
                             .build = build_of(&o->at, o->kernel),
                             .caller_place = place_text(caller, false),
                             .caller_build = build_of(caller, false),
                             .samples = o->samples,
                             .ns = o->ns};
    return row->function && row->caller && row->place && row->build && row->caller_place &&
           row->caller_build;
}

/* False without memory; what is there is given back with the rest. */
static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    pki_outside *to = &out->outside;
    unsigned n = 0;
    if (!x.period || !(x.inside_ns + x.outside_ns))
        return true;
    outside *sorted = malloc((x.outside_count + (size_t)1) * sizeof *sorted);
    to->rows = calloc(OUTSIDE_TOLD, sizeof *to->rows);
    for (unsigned i = 0; sorted && i < OUTSIDE_MOST; i++)
        if (x.outside[i].samples)
            sorted[n++] = x.outside[i];
    bool made = sorted && to->rows;
    if (made && n)
        qsort(sorted, n, sizeof *sorted, dearest_first);
    for (unsigned i = 0; made && i < n && i < OUTSIDE_TOLD; i++)
        made = make_row(&sorted[i], &to->rows[to->count++]);
    to->sampled = x.inside_ns + x.outside_ns;
    to->outside = x.outside_ns;
    free(sorted);
    return made;
}

/* ---- the service ---- */

static pk_status open_samples(pki_session *s)
{
    uint32_t rate = s->config.samples_asked   ? s->config.samples
                    : s->config.history_steps ? HISTORY_RATE
                                              : 0;
    x.all = s->config.samples_asked;
    x.opened = pki_monotonic_ns();
    x.period = rate ? 1000000000u / rate : 0;
    return PK_OK;
}

static bool is_mine(const pki_session *s)
{
    uint32_t collector = pki_load(&s->collector_tid);
    return !collector || collector == (uint32_t)syscall(SYS_gettid);
}

static void ask_for_rounds(void)
{
    for (unsigned i = 0; i < x.count; i++) {
        const pki_kernel_ring *r = &x.threads[i].sampler.ring;
        if (r->page)
            pki_collect_within(WITHIN_NS * (r->bytes < MORE_PAGES * r->before ? 1 : 2));
    }
}

static void drain(pki_session *s)
{
    if (!x.period || !is_mine(s))
        return;
    follow_threads(s);
    for (unsigned i = 0; i < x.count; i++)
        take(&x.threads[i].sampler);
    take_late();
    if (x.sample_count) {
        note_open(s);
        know_files();
        tell_all(s);
        pki_code_round();
    }
    ask_for_rounds();
}

/* What came while records were taken the last time is not known: its region may be gone. */
static void folded(pki_session *s)
{
    if (!x.period || !is_mine(s))
        return;
    for (unsigned i = 0; x.sample_count && i < x.count; i++) {
        const pki_thread *t = pki_registry_thread_of(s->registry, x.threads[i].sampler.tid);
        if (t)
            note_records(s, t);
    }
    for (unsigned i = 0; i < x.sample_count; i++) {
        const sample *at = &x.samples[i];
        if (at->inside)
            x.inside_ns += at->ns;
        else if (at->at > x.before && pki_registry_thread_of(s->registry, at->tid))
            count_outside(at);
    }
    x.sample_count = x.place_count = 0;
    x.before = pki_monotonic_ns();
}

static uint64_t spent(void)
{
    return pki_load(&x.taken) * SAMPLE_NS;
}

/* Pages that nobody has touched stay so. */
static void clear(void)
{
    if (x.period || x.count || x.taken)
        pki_mem_clear(&x, offsetof(__typeof__(x), samples));
    pki_code_forget();
}

static void forget(void)
{
    for (unsigned i = 0; i < x.count; i++)
        pki_sampler_close(&x.threads[i].sampler);
    pki_sampler_close(&x.late);
    clear();
}

const pki_service pki_service_stacks = {
    .name = "stacks",
    .reset = forget,
    .open = open_samples,
    .drain = drain,
    .folded = folded,
    .watch = watch,
    .summarise = summarise,
    .forget = forget,
    .after_fork = clear, /* the kernel gives the child no such mapping */
    .spent = spent,
};
