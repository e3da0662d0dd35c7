/* lib/session/windows/windows.c - the figures of a run that goes on for weeks, window by window */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "measure/window/window.h"
#include "measure/window/merge.h"
#include "measure/window/seal.h"
#include "out/file.h"
#include "out/window/write.h"
#include "session/collector/collect.h"
#include "session/costs/energy.h"
#include "session/costs/gpu_memory.h"
#include "session/costs/io.h"
#include "session/costs/memory.h"
#include "session/job/goodput.h"
#include "session/report/run.h"
#include "session/session.h"
#include "session/trace/paths.h"
#include "session/windows/metrics.h"

/* ---- what a window cost beside time ---- */

/* What the session has found out since the window before.
 *
 * As of the collector's last look, as counts and toll of a window are; the last window has all. All
 * under the drain lock. */

static pki_window_costs window_costs_before;

static uint64_t end_of(const pki_session *s, const pki_window *window)
{
    return window->last ? s->stop_ns
                        : pki_clock_ns(&s->arena->header->clock, pki_ticks(s->config.monotonic));
}

/* Of the session so far. */
static bool read_now(const pki_session *s, const pki_window *window, pki_window_costs *now)
{
    pki_summary all = {.threads = window->threads, .thread_count = window->thread_count};
    bool done = pki_io_summarise(s, &all) && pki_gpu_memory_so_far(&now->gpu_memory);
    now->io = all.io;
    now->memory = pki_memory_so_far();
    pki_fold_lock();
    done = pki_energy_so_far(&now->energy) && done;
    pki_goodput_fill(end_of(s, window), window->last, &now->goodput);
    pki_fold_unlock();
    return done;
}

/* Once its threads are in it. False without memory: the next one has it. */
static bool pki_window_add_costs(const pki_session *s, pki_window *window)
{
    pki_window_costs now = {0};
    bool done = read_now(s, window, &now) &&
                pki_window_costs_more(&now, &window_costs_before, &window->costs);
    if (!done) {
        pki_window_costs_finish(&now);
        return false;
    }
    pki_window_costs_finish(&window_costs_before);
    window_costs_before = now;
    pki_gpu_memory_cut();
    return true;
}

static void pki_window_costs_forget(void)
{
    pki_window_costs_finish(&window_costs_before);
}

/* What is there may be half of something. */
static void pki_window_costs_after_fork(void)
{
    memset(&window_costs_before, 0, sizeof window_costs_before);
}

/* ---- windows ---- */

/* The figures of a run that goes on for weeks, window by window,
 * into a file (windows_path).
 *
 * Windows are cut where steps are folded (measure/window/seal.h). Here they get what the session
 * knows of the process, their verdicts, and become lines of a file of bounded size (out/file.h):
 * in pieces of about a millisecond, a piece in a round of the collector, since rings have to be
 * emptied meanwhile; while there is more to write, rounds follow each other soon, so that windows
 * that come fast are written as fast, and a kill costs no more than what has just ended. What a
 * full disk refuses is tried again every second; until then windows wait, and when there are many
 * the one that runs grows, so nothing is lost unless the run ends.
 *
 * All of it under the drain lock. */

#define PIECE_NS 1000000u
#define PAUSE_NS 4000000u /* between two pieces: a fifth of a processor at most */
#define RETRY_NS 1000000000u

static struct {
    bool on;
    pki_rolling file;
    pki_window window; /* that is being written */
    pki_window_line line;
    enum {
        IDLE,
        WRITING,
        WRITTEN
    } state;           /* of it; WRITTEN: the text is whole, and not in the file */
    uint64_t retry_at; /* CLOCK_MONOTONIC, ns; 0: nothing has failed */
    uint64_t lost;     /* windows in no file */
    int error;         /* the last one that was logged */
    /* as of the window before */
    pk_counts counts;
    pki_toll toll;
    bool peak_known;
    pki_peak peak;
    size_t thread_count;
    pki_thread_row *threads;
} w;
static bool asked; /* for windows, by the last session: else there is nothing in w to forget */

static void forget_threads(void)
{
    pki_shape_finish_rows(&pki_thread_shape, w.threads, w.thread_count);
    w.threads = NULL;
    w.thread_count = 0;
}

/* ---- what the session knows ---- */

/* The other row is the same thread's, as of now and before; or none is. */
static const pki_thread_row *same_thread(const pki_thread_row *rows, size_t count,
                                         const pki_thread_row *as)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].tid == as->tid && rows[i].recorded <= as->recorded)
            return &rows[i];
    return NULL;
}

/* In the window alone, for its verdicts; and back. */
static void shift_threads(pki_thread_row *rows, size_t count, bool back)
{
    for (size_t i = 0; i < count; i++) {
        const pki_thread_row *before = same_thread(w.threads, w.thread_count, &rows[i]);
        for (int k = 0; before && k < PKI_KINDS; k++)
            rows[i].kinds[k] += back ? before->kinds[k] : -before->kinds[k];
    }
}

static bool add_threads(const pki_session *s, pki_window *window)
{
    pki_summary all;
    pki_summary_init(&all);
    pki_fold_lock();
    bool filled = pki_run_threads(s, &all);
    pki_fold_unlock();
    window->threads = all.threads;
    window->thread_count = all.thread_count;
    return filled;
}

static pki_processor more_processor(const pki_processor *now, const pki_processor *before)
{
    return (pki_processor){now->observed - before->observed, now->running - before->running,
                           now->ready - before->ready};
}

static void add_toll(const pki_session *s, pki_window *window)
{
    pki_toll now = pki_toll_now(s);
    window->run.cpu = now.process - w.toll.process;
    window->overhead = (pki_overhead){.region_ns = now.region_ns,
                                      .counted_ns = now.counted_ns,
                                      .collector = (double)(now.collector - w.toll.collector),
                                      .callers = (double)(now.callers - w.toll.callers),
                                      .captures = (double)(now.captures - w.toll.captures),
                                      .readings = (double)(now.readings - w.toll.readings),
                                      .backends = (double)(now.backends - w.toll.backends)};
    window->steps.processor = more_processor(&now.stepper, &w.toll.stepper);
    w.toll = now;
}

static void add_counts(const pki_session *s, pki_window *window)
{
    pk_counts now = {.size = sizeof now};
    pki_run_counts(s, &now);
    now.size = sizeof now;
    window->counts = pki_counts_difference(&now, &w.counts);
    w.counts = now;
}

/* The machine is examined once, when a window's steps announce their operations. */
static bool add_peak(const pki_session *s, pki_window *window)
{
    if (!window->steps.utilisation.steps)
        return true;
    if (!w.peak_known) {
        pki_fold_lock();
        size_t gpus = pki_device_how_many(pki_fold_now()->device);
        pki_fold_unlock();
        pki_limits_peak(&s->config, gpus, &w.peak);
        w.peak_known = true;
    }
    return pki_utilisation_fill(&window->steps.utilisation, &w.peak);
}

static bool add_facts(const pki_session *s, pki_window *window)
{
    if (!pki_run_fill(s, &window->run) || !add_threads(s, window))
        return false;
    window->run.wall = window->end - window->start;
    window->run.complete = window->last;
    window->warmup_steps = s->config.warmup_steps;
    add_counts(s, window);
    add_toll(s, window);
    return add_peak(s, window) && pki_window_add_costs(s, window);
}

/* ---- verdicts ---- */

static void move_back(pki_window *window, pki_summary *all)
{
    window->verdicts = all->verdicts;
    window->verdict_count = all->verdict_count;
    window->threads = all->threads;
    window->thread_count = all->thread_count;
    window->overhead = all->overhead;
    all->verdicts = NULL;
    all->threads = NULL;
    all->verdict_count = all->thread_count = 0;
}

/* As the report would have them if the run had been no more than this window. */
static bool judge(pki_window *window)
{
    pki_summary all;
    pki_run run = window->run;
    window->run = (pki_run){.cpu = run.cpu, .pid = run.pid, .start_unix = run.start_unix};
    pki_windows *alone = pki_windows_create(true);
    shift_threads(window->threads, window->thread_count, false);
    bool judged = alone && !pki_windows_add(alone, window) && pki_windows_summary(alone, &all);
    if (judged) {
        move_back(window, &all);
        if (window->steps.count)
            pki_metrics_judged(window->verdicts, window->verdict_count);
        pki_summary_finish(&all);
    }
    shift_threads(window->threads, window->thread_count, true);
    pki_windows_destroy(alone);
    window->run = run;
    return judged;
}

/* The next one compares with them. Without memory it is taken for more than it is. */
static void remember_threads(const pki_window *window)
{
    forget_threads();
    w.threads = calloc(window->thread_count + 1, sizeof *w.threads);
    if (!w.threads)
        return;
    memcpy(w.threads, window->threads, window->thread_count * sizeof *w.threads);
    w.thread_count = window->thread_count;
    for (size_t i = 0; i < w.thread_count; i++) {
        w.threads[i].name = NULL;
        w.threads[i].regions = NULL;
        w.threads[i].region_count = 0;
    }
}

/* ---- the way to the file ---- */

static void note_error(int error)
{
    w.retry_at = pki_monotonic_ns() + RETRY_NS;
    if (error != w.error)
        pki_log(PK_LOG_ERROR,
                "windows %s: %s; it is tried again, and windows missing at the end are counted",
                w.file.path, pki_own_why(error));
    w.error = error;
}

static void drop_window(void)
{
    pki_window_line_finish(&w.line);
    pki_window_finish(&w.window);
    w.state = IDLE;
}

static void count_lost_window(int error)
{
    note_error(error);
    w.lost++;
    w.retry_at = 0;
    drop_window();
}

static void begin_line(const pki_session *s)
{
    if (!pki_window_complete(&w.window) || !add_facts(s, &w.window) || !judge(&w.window) ||
        !pki_window_line_begin(&w.line, &w.window)) {
        count_lost_window(ENOMEM);
        return;
    }
    remember_threads(&w.window);
    w.state = WRITING;
}

static void write_line(void)
{
    if (w.retry_at && pki_monotonic_ns() < w.retry_at)
        return;
    if (pki_rolling_append(&w.file, w.line.text, w.line.bytes)) {
        w.retry_at = 0;
        drop_window();
    } else if (errno == EFBIG) {
        count_lost_window(EFBIG);
    } else {
        note_error(errno);
    }
}

/* The next piece. False if there is nothing to do. */
static bool advance(const pki_session *s)
{
    switch (w.state) {
    case IDLE:
        if (!pki_seal_pop(&w.window))
            return false;
        begin_line(s);
        return true;
    case WRITING:
        if (!pki_window_line_advance(&w.line))
            return true;
        w.state = WRITTEN;
        if (!pki_window_line_end(&w.line))
            count_lost_window(ENOMEM);
        return true;
    default:
        write_line();
        return w.state == IDLE;
    }
}

static void poll_seal(pki_session *s)
{
    uint64_t now = pki_clock_ns(&s->arena->header->clock, pki_ticks(s->config.monotonic));
    pki_fold_lock();
    pki_seal_poll(pki_fold_now(), now);
    pki_fold_unlock();
}

/* A piece of what there is to do. */
static void write_piece(pki_session *s)
{
    if (!w.on)
        return;
    uint64_t began = pki_monotonic_ns();
    bool more = true;
    poll_seal(s);
    while (more && pki_monotonic_ns() - began < PIECE_NS)
        more = advance(s);
    if (more)
        pki_collect_within(PAUSE_NS);
}

/* All windows that have ended, now. */
static void write_ended(pki_session *s)
{
    w.retry_at = 0;
    while (w.on && advance(s))
        ;
}

/* ---- beginning and end ---- */

static pk_status why_not(const char *path, int error)
{
    return pki_paths_fail("windows", path, error, "leave windows_path empty for no windows");
}

/* Makes the file, if one is asked for. After the fold has been opened. */
static pk_status open_windows(pki_session *s)
{
    pki_config *c = &s->config;
    if (asked)
        memset(&w, 0, sizeof w);
    asked = c->windows[0] != 0;
    if (!asked)
        return PK_OK;
    pki_mem_populate(&w, sizeof w);
    if (!pki_target_is_free(c->windows))
        return why_not(c->windows, errno);
    if (pki_file_is_locked(c->windows))
        return pki_fail(PK_EACCES, "windows %s: another process writes it (use %%r or %%p)",
                        c->windows);
    pki_paths_anchor(c->windows);
    pki_rolling_keep(c->windows);
    if (!pki_rolling_open(&w.file, c->windows, c->windows_compressed, c->windows_max_bytes))
        return why_not(c->windows, errno);
    w.on = true;
    pki_fold_lock();
    pki_seal_start(pki_fold_now(), c->window_steps, (uint64_t)c->window_seconds * 1000000000);
    pki_fold_unlock();
    return PK_OK;
}

static void stop_sealing(void)
{
    pki_fold_lock();
    pki_seal_start(NULL, 0, 0);
    pki_fold_unlock();
}

/* The start has failed: the file goes. */
static void abandon(pki_session *s)
{
    (void)s;
    if (!w.on)
        return;
    stop_sealing();
    if (pki_own_is_at(&w.file.file.own, w.file.path))
        unlink(w.file.path);
    pki_rolling_close(&w.file);
    w.on = false;
}

/* What still waits has no file any more. */
static uint64_t count_unwritten(void)
{
    uint64_t count = w.lost + (w.state != IDLE);
    pki_window left;
    while (pki_seal_pop(&left)) {
        pki_window_finish(&left);
        count++;
    }
    return count;
}

/* The last window, which ends with the session, and the file. After the last counts. */
static void write_last(pki_session *s)
{
    if (!w.on)
        return;
    pki_fold_lock();
    pki_seal_last(pki_fold_now(), s->stop_ns);
    pki_fold_unlock();
    write_ended(s);
    w.lost = count_unwritten();
    if (w.state != IDLE)
        drop_window();
    stop_sealing();
    pki_rolling_close(&w.file);
    forget_threads();
    pki_window_costs_forget();
    w.on = false;
}

/* PK_OK unless windows are missing in the file. */
static pk_status status_of_file(void)
{
    if (!w.lost)
        return PK_OK;
    return pki_fail(pki_status_of_errno(w.error), "windows %s: %s; %llu windows are missing",
                    w.file.path, pki_own_why(w.error), (unsigned long long)w.lost);
}

/* The file is the parent's; what is in memory may be half of something. */
static void after_fork(void)
{
    if (w.on && w.file.open)
        pki_own_close(&w.file.file.own);
    memset(&w, 0, sizeof w);
    pki_window_costs_after_fork();
    pki_seal_after_fork();
}

const pki_service pki_service_windows = {
    .name = "windows",
    .open = open_windows,
    .abandon = abandon,
    .round = write_piece,
    .flush = write_ended,
    .end = write_last,
    .status = status_of_file,
    .after_fork = after_fork,
};
