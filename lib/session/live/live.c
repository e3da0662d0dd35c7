#include "session/live/live.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/process.h"
#include "comm/model/communicator.h"
#include "core/frames.h"
#include "core/names.h"
#include "session/captures/captures.h"
#include "session/job/goodput.h"
#include "session/session.h"

/* ---- when is it a hang? The rule alone, on whatever clock ---- */

#define PKI_WATCH_USUAL 5

/* For how long nothing has ended, and how long it may be. */
static uint64_t pki_watch_quiet(const pki_watch *w, uint64_t now)
{
    return pki_saturating_sub(now, w->since);
}

static uint64_t pki_watch_limit(const pki_watch *w, const pki_watch_input *s)
{
    return s->limit ? s->limit : PKI_MAX(w->hang, PKI_WATCH_USUAL * s->usual);
}

/* Of the time since the last look only two periods and a second count: a thread may be late. */
static void forget_absence(pki_watch *w, uint64_t now)
{
    uint64_t passed = now - w->last, most = 2 * w->period + 1000000000;
    if (passed > most)
        w->since += passed - most;
    w->last = now;
}

static bool is_hang(const pki_watch *w, const pki_watch_input *s)
{
    uint64_t quiet = pki_watch_quiet(w, s->now);
    if (!s->any || s->excused)
        return false;
    if (s->limit) /* of this call: what ended before it does not make it shorter */
        quiet = PKI_MIN(quiet, pki_saturating_sub(s->now, s->since));
    return quiet >= pki_watch_limit(w, s);
}

pki_watch_event pki_watch_update(pki_watch *w, const pki_watch_input *s)
{
    if (!w->begun || s->ended != w->ended) {
        bool was_raised = w->raised;
        w->ended = s->ended;
        w->since = w->last = s->now;
        w->begun = true;
        w->raised = false;
        return was_raised ? PKI_WATCH_GOES_ON : PKI_WATCH_NOTHING;
    }
    forget_absence(w, s->now);
    if (w->raised || !is_hang(w, s))
        return PKI_WATCH_NOTHING;
    w->raised = true;
    return PKI_WATCH_HANG;
}

/* ---- what is open in a session that may hang, and what to say of it ---- */

/* ---- looking ---- */

static bool is_live(const pki_thread *t)
{
    return pki_load_acquire(&t->life) == PKI_THREAD_LIVE; /* pairs with the release in attach */
}

/* The thread that makes the steps; NULL: none does. */
static const pki_thread *find_stepper(const pki_session *s)
{
    const pki_thread *found = NULL;
    uint64_t most = 0;
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        const pki_thread *t = pki_registry_block(s->registry, i);
        uint64_t steps = is_live(t) ? pki_load(&t->steps) : 0;
        if (steps > most) {
            most = steps;
            found = t;
        }
    }
    return found;
}

static uint64_t count_ended(const pki_thread *t)
{
    pki_position p = pki_thread_position(t);
    return p.bytes / sizeof(pki_record) - p.others + pki_load(&t->dropped);
}

static uint64_t ns_of(const pki_session *s, uint64_t ticks)
{
    const pki_clock_map *clock = &s->arena->header->clock;
    return pki_clock_monotonic_ns(clock, pki_clock_ns(clock, ticks));
}

/* The innermost region with a limit decides; else one of kind PK_IO excuses all inside it. */
static void note_announced(const pki_session *s, const pki_open_frames *frames,
                           pki_watch_input *input)
{
    for (unsigned d = frames->depth; d > 0; d--) {
        const pki_frame *f = &frames->open[d - 1];
        uint64_t limit = pki_name_limit(f->id);
        if (limit && !input->limit) {
            input->limit = limit;
            input->since = ns_of(s, f->start);
        }
        input->excused |= !limit && !input->limit && pki_name_kind(f->id) == PK_IO;
    }
    if (input->limit)
        input->excused = false;
}

/* From the arena, without a lock. */
static void pki_hang_observe(const pki_session *s, pki_watch_input *input)
{
    const pki_thread *stepper = find_stepper(s);
    *input = (pki_watch_input){.now = pki_monotonic_ns(),
                               .ended = pki_load(&s->arena->header->steps),
                               .any = stepper != NULL};
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        const pki_thread *t = pki_registry_block(s->registry, i);
        pki_open_frames frames = {0};
        input->ended += count_ended(t);
        if (!is_live(t) || (stepper && t != stepper) || !pki_open_frames_of(t, &frames))
            continue;
        input->any |= frames.depth > 0;
        note_announced(s, &frames, input);
    }
}

/* ---- how long such calls take ---- */

/* Of fewer than a hundred values the 99th percentile is the largest, and that is a program's first
 * step too often, which loads, compiles, and waits for ranks that start late: it is left out. */
static uint64_t p99_in(const pki_slot *slot)
{
    double n = (double)pki_load(&slot->count);
    return n < 2 ? 0 : pki_slot_quantile(slot, PKI_MIN(0.99, (n - 1) / n));
}

/* Of all calls that have been folded; 0: there are none. */
static uint64_t p99_of(const pki_session *s, uint32_t id)
{
    uint64_t first = pki_load_acquire(&s->arena->header->live.totals); /* pairs with the release
                                                                         below */
    const pki_slot *slot = first ? pki_arena_at(s->arena, first) : NULL;
    while (slot && slot->id != id)
        slot = pki_table_next(slot);
    return slot ? p99_in(slot) : 0;
}

/* The p99 of what is open; takes longer, and is needed only when it has been quiet for a while. */
static uint64_t pki_hang_usual(const pki_session *s)
{
    const pki_thread *stepper = find_stepper(s);
    uint64_t usual = stepper ? p99_of(s, PKI_NAME_STEP) : 0;
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        const pki_thread *t = pki_registry_block(s->registry, i);
        pki_open_frames frames = {0};
        if (is_live(t) && (!stepper || t == stepper) && pki_open_frames_of(t, &frames) &&
            frames.depth)
            usual = PKI_MAX(usual, p99_of(s, frames.open[frames.depth - 1].id));
    }
    return usual;
}

/* ---- logging ---- */

/* Lines for the log, and the same in the arena for who comes later. */
typedef struct log_target {
    pki_hang *hang;
    size_t used;
} log_target;

static void log_line(log_target *to, pk_log_level level, const char *line)
{
    size_t room = sizeof to->hang->words - to->used;
    int n = snprintf(to->hang->words + to->used, room, "%s%s", to->used ? "\n" : "", line);
    to->used += n > 0 ? PKI_MIN((size_t)n, room - 1) : 0;
    pki_log(level, "%s", line);
}

/* "a > b > c", the innermost ones if there are too many. */
static void put_path(char *line, size_t size, const pki_open_frames *frames)
{
    size_t n = strlen(line);
    unsigned from = frames->depth > 6 ? frames->depth - 6 : 0;
    if (from && n < size)
        n += (size_t)snprintf(line + n, size - n, "... > ");
    for (unsigned d = from; d < frames->depth && n < size; d++) {
        const pki_name *name = pki_name_at(frames->open[d].id);
        n += (size_t)snprintf(line + n, size - n, "%s%.60s", d > from ? " > " : "",
                              name ? name->name : "?");
    }
}

static void log_thread(log_target *to, const pki_session *s, const pki_thread *t)
{
    char line[384];
    pki_open_frames frames;
    bool still = pki_open_frames_of(t, &frames);
    if (!still || !frames.depth)
        return;
    uint64_t since = ns_of(s, frames.open[frames.depth - 1].start), now = pki_monotonic_ns();
    snprintf(line, sizeof line, "thread %u (%.63s): in ", t->index, t->name);
    put_path(line, sizeof line - 32, &frames);
    size_t n = strlen(line);
    snprintf(line + n, sizeof line - n, " for %.1f s",
             (double)pki_saturating_sub(now, since) / 1e9);
    log_line(to, PK_LOG_WARNING, line);
}

static void log_comm(log_target *to, const pk_comm *c)
{
    char line[384];
    pki_comms_entry e = pki_comm_progress(c);
    if (!e.under_way)
        return;
    snprintf(line, sizeof line,
             "communicator %s of %s: enqueued %llu, started %llu, completed %llu, %u under way",
             c->title, c->library, (unsigned long long)e.enqueued, (unsigned long long)e.started,
             (unsigned long long)e.completed, e.under_way);
    log_line(to, PK_LOG_WARNING, line);
}

/* Through the log function and into the arena: for how long nothing has ended, which threads stand
 * where, and how far each communicator has come. */
static void pki_hang_log(const pki_session *s, uint64_t quiet, uint64_t limit)
{
    pki_hang *hang = &s->arena->header->hang;
    log_target to = {hang, 0};
    char line[384];
    const pk_comm *c;
    pki_store(&hang->quiet_ns, quiet);
    pki_store(&hang->raised_unix, pki_read_clock(CLOCK_REALTIME));
    snprintf(
        line, sizeof line,
        "no step and no region has ended for %.1f s (limit %.1f s): the program hangs, in step "
        "%llu",
        (double)quiet / 1e9, (double)limit / 1e9,
        (unsigned long long)pki_load(&s->arena->header->steps));
    log_line(&to, PK_LOG_ERROR, line);
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        const pki_thread *t = pki_registry_block(s->registry, i);
        if (is_live(t))
            log_thread(&to, s, t);
    }
    for (uint32_t i = 0; i < PKI_COMMS_MAX - 1 && (c = pki_comm_at(i)); i++)
        log_comm(&to, c);
    pki_store_release(&hang->count, hang->count + 1); /* the words are whole before it */
    pki_store_release(&hang->raised, 1u);
}

/* Something has ended after so long. */
static void pki_hang_log_end(const pki_session *s, uint64_t quiet)
{
    pki_store_release(&s->arena->header->hang.raised, 0u);
    pki_log(PK_LOG_WARNING, "the program goes on, after %.1f s in which nothing ended",
            (double)quiet / 1e9);
}

/* ---- what goes on, put into the arena for who looks from outside (tools/live) ---- */

/* Slots are linked from the newest on, and stay where they are. */
static void publish_table(const pki_session *s, uint64_t *offset, const pki_table *table)
{
    if (table->first)
        pki_store_release(offset, pki_arena_offset(s->arena, table->first));
}

static void publish_kinds(pki_thread *t, const pki_thread_fold *alone)
{
    for (size_t kind = 0; kind < PKI_COUNT_OF(t->kinds); kind++)
        pki_store(&t->kinds[kind], alone->kinds[kind]);
}

static void publish(pki_session *s)
{
    pki_live *live = &s->arena->header->live;
    pki_fold_lock();
    const pki_fold *fold = pki_fold_now();
    publish_table(s, &live->totals, &fold->totals);
    publish_table(s, &live->streams, &fold->streams);
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        if (t->index < fold->thread_count)
            publish_kinds(t, &fold->threads[t->index]);
    }
    pki_fold_unlock();
    pki_store(&live->round_ticks, pki_ticks(s->config.monotonic));
}

const pki_service pki_service_live = {
    .name = "live",
    .folded = publish,
};

/* ---- says that the program hangs, and where (pk_options.hang_seconds) ---- */

/* A thread of its own, since the collector may be what is stuck: in a driver's call, on a full
 * disk, in the program's log function. It wakes twice a second at most and reads the arena's words
 * alone, without a lock, so that nobody who hangs with a lock takes it along; one who asks for a
 * log message takes that lock, last of all. */

#define SHORTEST_NS 50000000u
#define LONGEST_NS 500000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static pthread_t thread;
static bool running, stopping; /* stopping: under the lock */
static pid_t command;          /* of the last alarm; 0: none, or it is nobody's business */
static bool complained;        /* that it could not be run: once */

static uint64_t period_of(uint64_t hang)
{
    return PKI_MIN(PKI_MAX(hang / 8, SHORTEST_NS), LONGEST_NS);
}

/* False when it is time to end. */
static bool sleep_a_while(uint64_t ns)
{
    uint64_t t = pki_monotonic_ns() + ns;
    struct timespec until = {(time_t)(t / 1000000000), (long)(t % 1000000000)};
    pthread_mutex_lock(&lock);
    while (!stopping && pthread_cond_timedwait(&wake, &lock, &until) == 0)
        ;
    bool go_on = !stopping;
    pthread_mutex_unlock(&lock);
    return go_on;
}

static void run_command(const pki_session *s)
{
    if (!s->config.hang_command[0])
        return;
    int error = pki_run_detached(s->config.hang_command, &command);
    if (error && !complained) {
        complained = true;
        pki_log(PK_LOG_ERROR, "hang_command could not be run: %s", strerror(error));
    }
}

/* With the first thread that stands in something. Refused where there is no history: nothing is
 * missing then. */
static void request_capture(const pki_session *s)
{
    char text[96] = "";
    const char *line = strchr(s->arena->header->hang.words, '\n');
    if (line)
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
    (void)pki_requests_call(PKI_CAPTURE_HANG, text, 0);
}

static void raise_alarm(const pki_session *s, const pki_watch *w, const pki_watch_input *input)
{
    pki_goodput_hang(input->now - pki_watch_quiet(w, input->now));
    pki_hang_log(s, pki_watch_quiet(w, input->now), pki_watch_limit(w, input));
    request_capture(s);
    run_command(s);
}

static void check(const pki_session *s, pki_watch *w)
{
    pki_watch_input input;
    uint64_t quiet = pki_watch_quiet(w, pki_monotonic_ns());
    pki_hang_observe(s, &input);
    if (w->begun && quiet >= w->hang && !w->raised && !input.limit)
        input.usual = pki_hang_usual(s);
    switch (pki_watch_update(w, &input)) {
    case PKI_WATCH_HANG:
        raise_alarm(s, w, &input);
        break;
    case PKI_WATCH_GOES_ON:
        pki_goodput_hang(0);
        pki_hang_log_end(s, quiet);
        break;
    case PKI_WATCH_NOTHING:
        break;
    }
    if (command && pki_detached_is_over(command))
        command = 0;
}

static void *watch(void *session)
{
    const pki_session *s = session;
    pki_watch w = {.hang = (uint64_t)s->config.hang_seconds * 1000000000};
    w.period = period_of(w.hang);
    pki_inside_enter();
    prctl(PR_SET_NAME, "pk-watchdog", 0, 0, 0);
    while (sleep_a_while(w.period))
        check(s, &w);
    return NULL;
}

static void make_condition(void)
{
    pki_condition_make(&wake);
}

/* Nothing if hang_seconds is 0. Without it nothing that is recorded is less: what is wrong is said,
 * and the start goes on. */
static void start(pki_session *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!s->config.hang_seconds)
        return;
    pthread_once(&once, make_condition);
    stopping = complained = false;
    command = 0;
    int error = pki_spawn(&thread, watch, s);
    running = error == 0;
    if (error)
        pki_fail(PK_ETHREAD, "watchdog thread: %s", strerror(error));
}

static void halt(pki_session *s)
{
    (void)s;
    if (!running)
        return;
    pthread_mutex_lock(&lock);
    stopping = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    running = false;
}

static void after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    make_condition();
    running = stopping = false;
}

const pki_service pki_service_watchdog = {
    .name = "watchdog",
    .start = start,
    .halt = halt,
    .after_fork = after_fork,
};
