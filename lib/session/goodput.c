#include "session/goodput.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/small_file.h"
#include "base/text.h"
#include "core/phase.h"
#include "measure/goodput/account.h"
#include "measure/goodput/line.h"
#include "out/target.h"

#define BEAT_LEAST 100000000u
#define BEAT_MOST 60000000000u
#define BEAT_SHARE 1000
#define STAT_BEGAN 22 /* the field of /proc/PID/stat: when the process began */
#define TAIL 65536    /* bytes that are read of an older file: some hundred lines */

static struct {
    bool on, held; /* the file is ours to write */
    bool accounted;
    pki_owned own;
    int error;           /* of the last write, told once */
    bool torn;           /* what stands at the file's end has no newline */
    pki_account account; /* under the fold lock */
    uint64_t origin;     /* session ns 0 on CLOCK_MONOTONIC */
    uint64_t told_saves, told_training, heard_training, told_hang, next;
    pki_life_line line, not_mine; /* not_mine: before the file was ours */
    pki_phases heard;             /* the last time that they were known */
} x = {.own.fd = -1};

static uint64_t hang_since; /* the watchdog's word */

void pki_goodput_hang(uint64_t since)
{
    pki_store_release(&hang_since, since);
}

/* ---- the account: from the fold, step by step ---- */

static uint64_t in_session(uint64_t monotonic)
{
    return pki_saturating_sub(monotonic, x.origin);
}

/* Once for each hang, since a step that ends is its end, too. */
static void hear_hang(void)
{
    uint64_t since = pki_load_acquire(&hang_since); /* pairs with the watchdog's store */
    if (since && since != x.told_hang)
        pki_account_hang(&x.account, in_session(since));
    else if (!since && x.told_hang)
        pki_account_hang_over(&x.account, in_session(pki_monotonic_ns()));
    x.told_hang = since;
}

/* What has been announced since the last time. Under the fold lock. */
static pki_phases hear(void)
{
    pki_phase_part parts[32];
    pki_phases now = pki_phases_now(); /* first: what ends meanwhile is among the parts below */
    size_t n;
    hear_hang();
    if (!now.known)
        return x.heard;
    pki_account_phase(&x.account, in_session(now.since),
                      now.open ? pki_part_of_phase(now.open) : 0);
    while ((n = pki_phases_take(parts, PKI_COUNT_OF(parts))) > 0)
        for (size_t i = 0; i < n; i++)
            pki_account_span_add(&x.account, in_session(parts[i].begin), in_session(parts[i].end),
                                 pki_part_of_phase(parts[i].phase));
    if (now.training_calls != x.heard_training)
        pki_account_at(&x.account, now.training_at, now.training_index);
    x.heard_training = now.training_calls;
    return x.heard = now;
}

static void on_step(pki_fold *fold, const pki_step *step, uint64_t data)
{
    const pki_account_step s = {.index = step->index,
                                .start = step->start,
                                .duration = step->duration,
                                .data = data,
                                .kind = step->kind,
                                .between = step->between};
    (void)fold;
    hear();
    pki_account_add(&x.account, &s);
}

/* ---- the line ---- */

static uint64_t beat_of(uint64_t up)
{
    return PKI_MIN(PKI_MAX(up / BEAT_SHARE, BEAT_LEAST), BEAT_MOST);
}

/* What has been before the file was ours is another run's time. The step that was open then has
 * become a part of its own since: what is left is taken off wherever there is time. */
static void take_off(pki_life_line *l, const pki_life_line *off)
{
    uint64_t left = off->up;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < PKI_PARTS; i++) {
            uint64_t most = pass ? left : PKI_MIN(left, off->parts[i]);
            uint64_t ns = PKI_MIN(l->parts[i], most);
            l->parts[i] -= ns;
            l->up -= ns;
            left -= ns;
        }
    l->steps = pki_saturating_sub(l->steps, off->steps);
    l->recomputed = pki_saturating_sub(l->recomputed, off->recomputed);
    l->saves = pki_saturating_sub(l->saves, off->saves);
    l->save_ns = pki_saturating_sub(l->save_ns, off->save_ns);
    l->save_bytes = pki_saturating_sub(l->save_bytes, off->save_bytes);
}

static pki_phases fill(bool last)
{
    pki_life_line *l = &x.line;
    pki_fold_lock();
    uint64_t now = PKI_MAX(in_session(pki_monotonic_ns()), x.account.covered);
    pki_phases heard = hear();
    pki_account_parts(&x.account, now, last, l->parts);
    l->unix_ns = pki_read_clock(CLOCK_REALTIME);
    l->boot_ns = pki_read_clock(CLOCK_BOOTTIME);
    l->up = x.account.before + now;
    l->steps = x.account.steps;
    l->recomputed = x.account.recomputed;
    l->at = x.account.at_told ? (int64_t)x.account.at_step : x.account.at;
    l->furthest = PKI_MAX(l->at, x.account.furthest_before);
    pki_fold_unlock();
    l->saves = heard.saves;
    l->save_ns = heard.time[PK_PHASE_CHECKPOINT];
    l->save_bytes = heard.save_bytes;
    l->saved = heard.saved;
    l->beat = beat_of(l->up) + BEAT_LEAST;
    take_off(l, &x.not_mine);
    return heard;
}

/* The file is appended to, whatever the position: that is the mark that it is ours, and is
 * put back. */
static ssize_t write_at_end(const char *text, size_t n)
{
    ssize_t done = write(x.own.fd, text, n);
    int error = errno;
    lseek(x.own.fd, (off_t)x.own.mark, SEEK_SET);
    errno = error;
    return done;
}

static bool append(const char *text, size_t n)
{
    struct stat about;
    if (!pki_own_check(&x.own) || fstat(x.own.fd, &about) != 0 ||
        !pki_mem_may_grow((uint64_t)about.st_size + n))
        return false;
    ssize_t done = write_at_end(text, n);
    if (done >= 0 && (size_t)done < n) {
        x.torn = done > 0 || x.torn;
        errno = ENOSPC;
    }
    return done >= 0 && (size_t)done == n;
}

static void put(uint32_t why)
{
    char text[PKI_LIFE_LINE + 1] = "\n";
    pki_phases heard = fill(why == PKI_LIFE_END);
    x.line.why = why;
    size_t n = pki_life_put(&x.line, text + 1);
    if (append(x.torn ? text : text + 1, x.torn ? n + 1 : n)) {
        x.torn = false;
        x.error = 0;
        x.line.n++;
    } else if (errno != x.error) {
        x.error = errno;
        pki_log(PK_LOG_ERROR, "goodput_path: %s; the next line makes up for this one",
                pki_own_why(x.error));
    }
    x.told_saves = heard.saves;
    x.told_training = heard.training_calls;
    x.next = pki_monotonic_ns() + beat_of(x.line.up);
}

/* ---- the file ---- */

/* The process began before its session: /proc has it in whole clock ticks since the machine's
 * start, so half of one is what it is off by on average. */
static uint64_t before_session(void)
{
    static bool asked; /* a session behind another one begins where it begins */
    char text[1024];
    uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK), now = pki_read_clock(CLOCK_BOOTTIME);
    if (asked || !hz || !pki_small_file("/proc/self/stat", text, sizeof text))
        return 0;
    asked = true;
    const char *ticks = pki_proc_stat_field(text, STAT_BEGAN);
    uint64_t began =
        ticks ? (uint64_t)(((double)strtoull(ticks, NULL, 10) + 0.5) * 1e9 / (double)hz) : now;
    return began < now ? now - began : 0;
}

/* What the runs before have left: how far the training has come, and whether the file is one of
 * these at all. */
static bool read_tail(int64_t *furthest)
{
    struct stat about;
    char *text = fstat(x.own.fd, &about) == 0 ? malloc(TAIL) : NULL;
    bool any = false;
    if (!text)
        return false;
    off_t from = about.st_size > TAIL ? about.st_size - TAIL : 0;
    ssize_t n = pread(x.own.fd, text, TAIL, from);
    for (char *at = text, *end = text + PKI_MAX(n, 0), *stop; at < end; at = stop + 1) {
        pki_life_line line;
        stop = memchr(at, '\n', (size_t)(end - at));
        x.torn = !stop;
        stop = stop ? stop : end;
        if (pki_life_read(at, (size_t)(stop - at), &line)) {
            any = true;
            *furthest = PKI_MAX(*furthest, PKI_MAX(line.at, line.furthest));
        }
    }
    size_t magic = PKI_MIN((size_t)PKI_MAX(n, 0), sizeof PKI_LIFE_MAGIC - 1);
    any = any || n == 0 || (from == 0 && memcmp(text, PKI_LIFE_MAGIC, magic) == 0);
    free(text);
    return any;
}

static uint64_t number_of_run(const pki_session *s)
{
    struct {
        uint64_t now, monotonic, pid;
        char host[64];
    } seed = {s->start_unix, pki_monotonic_ns(), s->config.world.pid, {0}};
    snprintf(seed.host, sizeof seed.host, "%s", s->config.world.host);
    return (uint64_t)pki_hash((const char *)&seed, sizeof seed, 1) << 32 |
           pki_hash((const char *)&seed, sizeof seed, 2);
}

static void begin_line(const pki_session *s)
{
    const pki_world *w = &s->config.world;
    x.line = (pki_life_line){.run = number_of_run(s),
                             .boot = *w->clock ? pki_hash(w->clock, strlen(w->clock), 0) : 0,
                             .rank = (uint64_t)w->rank,
                             .pid = w->pid};
}

/* False: another process holds it. */
static bool take_file(void)
{
    int64_t furthest = -1;
    if (!pki_own_lock(&x.own) && (errno == EAGAIN || errno == EACCES))
        return false;
    x.held = read_tail(&furthest);
    pki_fold_lock();
    x.account.furthest_before = furthest;
    pki_fold_unlock();
    if (x.held)
        put(PKI_LIFE_START);
    return true;
}

static void wait_for_file(void)
{
    x.not_mine = (pki_life_line){0};
    (void)fill(false);
    x.not_mine = x.line;
    x.next = pki_monotonic_ns() + BEAT_LEAST * 10;
    if (take_file() && !x.held) {
        pki_log(PK_LOG_ERROR,
                "goodput_path: is no state file of perfkit any more; it is left alone");
        pki_goodput_abandon();
    }
}

static pk_status why_not(const char *path, int error)
{
    static const pki_target_hints hints = {"leave goodput_path empty for no state file", NULL};
    return pki_fail(pki_status_of_errno(error), "goodput %s: %s", path,
                    pki_target_why(path, error, &hints).text);
}

static void begin_account(pki_session *s)
{
    const pki_clock_map *clock = &s->arena->header->clock;
    x.heard.saved = -1;
    pki_fold_lock();
    x.origin = clock->origin_ns;
    pki_account_begin(&x.account, before_session(), -1);
    x.accounted = true;
    pki_fold_now()->on_account[PKI_FOLD_GOODPUT] = on_step;
    pki_fold_unlock();
}

pk_status pki_goodput_open(pki_session *s)
{
    const char *path = s->config.goodput;
    pki_goodput_after_fork();
    if (!path[0] || (s->config.world.rank > 0 && !s->config.goodput_of_each))
        return PK_OK;
    if (!pki_target_is_free(path))
        return why_not(path, errno);
    int fd = pki_fd_open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0666);
    if (fd < 0 || !pki_own_take(&x.own, fd))
        return why_not(path, errno);
    x.on = true;
    begin_line(s);
    begin_account(s);
    if (!take_file()) {
        pki_log(PK_LOG_WARNING,
                "goodput %s: another process writes it; this run begins there when that one ends",
                path);
    } else if (!x.held) {
        pki_goodput_abandon();
        return pki_fail(PK_EINVAL, "goodput %s: is another kind of file, and is left as it is",
                        path);
    }
    return PK_OK;
}

void pki_goodput_round(pki_session *s)
{
    (void)s;
    if (!x.on)
        return;
    pki_phases now = pki_phases_now();
    pki_fold_lock();
    hear_hang();
    bool news = now.known && (now.saves != x.told_saves || now.training_calls != x.told_training);
    pki_fold_unlock();
    if (pki_monotonic_ns() < x.next && !(news && x.held))
        return;
    if (x.held)
        put(PKI_LIFE_BEAT);
    else
        wait_for_file();
}

void pki_goodput_end(pki_session *s)
{
    (void)s;
    if (x.on && !x.held)
        wait_for_file();
    if (x.on && x.held)
        put(PKI_LIFE_END);
    if (x.on && x.heard.missed)
        pki_log(PK_LOG_WARNING,
                "goodput_path: %llu announcements of phases found no room: what they would have "
                "parted counts as other time",
                (unsigned long long)x.heard.missed);
    bool accounted = x.accounted;
    pki_goodput_abandon();
    x.accounted = accounted; /* the report is yet to be made */
}

void pki_goodput_fill(uint64_t now, bool last, pki_goodput_summary *out)
{
    if (!x.accounted)
        return;
    hear();
    now = PKI_MAX(now, x.account.covered);
    pki_account_parts(&x.account, now, last, out->parts);
    out->up = x.account.before + now;
    out->steps = x.account.steps;
    out->recomputed = x.account.recomputed;
}

void pki_goodput_abandon(void)
{
    if (x.on)
        pki_own_close(&x.own);
    x.on = x.held = x.accounted = false;
    pki_fold_lock();
    pki_fold *fold = pki_fold_now();
    if (fold)
        fold->on_account[PKI_FOLD_GOODPUT] = NULL;
    pki_fold_unlock();
}

void pki_goodput_after_fork(void)
{
    pki_own_close(&x.own);
    memset(&x, 0, sizeof x);
    x.own.fd = -1;
    pki_store(&hang_since, (uint64_t)0);
}
