#include "session/job/goodput.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "measure/goodput/goodput.h"
#include "out/file.h"
#include "session/collector/collect.h"
#include "session/session.h"
#include "session/trace/paths.h"

/* ---- the session's account of goodput (measure/goodput/goodput.h) ---- */

static struct {
    bool there;
    pki_account account;
    uint64_t origin; /* session ns 0 on CLOCK_MONOTONIC */
    uint64_t seen_training, seen_hang;
    pki_phases seen; /* the last time that they were known */
} x;

static uint64_t hang_since; /* the watchdog's word */

void pki_goodput_hang(uint64_t since)
{
    pki_store_release(&hang_since, since);
}

static uint64_t in_session(uint64_t monotonic)
{
    return pki_saturating_sub(monotonic, x.origin);
}

/* Once for each hang, since a step that ends is its end, too. */
static void account_hang(void)
{
    uint64_t since = pki_load_acquire(&hang_since); /* pairs with the watchdog's store */
    if (since && since != x.seen_hang)
        pki_account_hang(&x.account, in_session(since));
    else if (!since && x.seen_hang)
        pki_account_hang_over(&x.account, in_session(pki_monotonic_ns()));
    x.seen_hang = since;
}

/* What has been announced since the last time. Under the fold lock. */
static pki_phases account_phases(void)
{
    pki_phase_part parts[32];
    pki_phases now = pki_phases_now(); /* first: what ends meanwhile is among the parts below */
    size_t n;
    account_hang();
    if (!now.known)
        return x.seen;
    pki_account_phase(&x.account, in_session(now.since),
                      now.open ? pki_part_of_phase(now.open) : 0);
    while ((n = pki_phases_drain(parts, PKI_COUNT_OF(parts))) > 0)
        for (size_t i = 0; i < n; i++)
            pki_account_span_add(&x.account, in_session(parts[i].begin), in_session(parts[i].end),
                                 pki_part_of_phase(parts[i].phase));
    if (now.training_calls != x.seen_training)
        pki_account_at(&x.account, now.training_at, now.training_index);
    x.seen_training = now.training_calls;
    return x.seen = now;
}

static void on_step(pki_fold *fold, const pki_step *step, uint64_t data)
{
    const pki_clock_sleeps *sleeps = &pki_the_session.arena->header->clock.sleeps;
    uint64_t start = pki_clock_awake_ns(sleeps, step->start);
    uint64_t end = pki_clock_awake_ns(sleeps, step->start + step->duration);
    const pki_account_step s = {.index = step->index,
                                .start = start,
                                .duration = end - start,
                                .data = data,
                                .kind = step->kind,
                                .between = step->between};
    (void)fold;
    account_phases();
    pki_account_add(&x.account, &s);
}

static void pki_goodput_account_hang(void)
{
    pki_fold_lock();
    account_hang();
    pki_fold_unlock();
}

/* Once the fold is open. before: how long the process has been there, ns. */
/* behind the training in earlier runs */
static void pki_goodput_account_begin(const pki_session *s, uint64_t before)
{
    x.seen.saved = -1;
    pki_fold_lock();
    x.origin = s->arena->header->clock.origin_ns;
    pki_account_begin(&x.account, before, -1);
    x.there = true;
    pki_fold_now()->on_account[PKI_FOLD_GOODPUT] = on_step;
    pki_fold_unlock();
}

static void pki_goodput_account_furthest(int64_t steps)
{
    pki_fold_lock();
    x.account.furthest_before = steps;
    pki_fold_unlock();
}

static pki_phases pki_goodput_account_phases(void)
{
    return x.seen;
}

/* Its figures as they are now; last: the run ends here. What is known of phases with them. */
/* of the last time that they were known */
/* between steps */
static pki_phases pki_goodput_account_line(bool last, pki_life_line *l)
{
    pki_fold_lock();
    uint64_t now = PKI_MAX(in_session(pki_monotonic_ns()), x.account.covered);
    pki_phases seen = account_phases();
    pki_account_parts(&x.account, now, last, l->parts);
    l->unix_ns = pki_read_clock(CLOCK_REALTIME);
    l->boot_ns = pki_read_clock(CLOCK_BOOTTIME);
    l->up = x.account.before + now;
    l->steps = x.account.steps;
    l->recomputed = x.account.recomputed;
    l->at = x.account.at_told ? (int64_t)x.account.at_step : x.account.at;
    l->furthest = PKI_MAX(l->at, x.account.furthest_before);
    pki_fold_unlock();
    l->saves = seen.saves;
    l->save_ns = seen.time[PK_PHASE_CHECKPOINT];
    l->save_bytes = seen.save_bytes;
    l->saved = seen.saved;
    return seen;
}

void pki_goodput_fill(uint64_t now, bool last, pki_goodput_summary *out)
{
    if (!x.there)
        return;
    account_phases();
    now = PKI_MAX(now, x.account.covered);
    pki_account_parts(&x.account, now, last, out->parts);
    out->up = x.account.before + now;
    out->steps = x.account.steps;
    out->recomputed = x.account.recomputed;
}

/* no further steps; what there is can still be read */
/* nothing can be read any more */
static void pki_goodput_account_stop(void)
{
    pki_fold_lock();
    pki_fold *fold = pki_fold_now();
    if (fold)
        fold->on_account[PKI_FOLD_GOODPUT] = NULL;
    pki_fold_unlock();
}

static void pki_goodput_account_forget(void)
{
    pki_goodput_account_stop();
    x.there = false;
}

static void pki_goodput_account_after_fork(void)
{
    memset(&x, 0, sizeof x);
    pki_store(&hang_since, (uint64_t)0);
}

/* ---- the state file of the job's life (goodput_path): what this run adds ---- */

/* One process writes it at a time: who holds its lock. Another one waits for it in the collector's
 * rounds, and its run begins when it has it. A line is appended by a single write, when the run
 * begins and ends, when a checkpoint is complete, when the training goes on from elsewhere, and in
 * time: at least once in a thousandth of the run's length (250 ms to 60 s), and once in a twentieth
 * of the session's (10 to 250 ms), so that of a run that is killed soon as little is unknown as of
 * a long one. A line that a full disk refuses is made up for by the next one.
 *
 * What stands in a line is goodput_account.h's. All under the drain lock. */

#define FIRST_LEAST 10000000u
#define FIRST_MOST 250000000u /* what the collector makes a round in without being asked */
#define FIRST_SHARE 20
#define BEAT_MOST 60000000000u
#define BEAT_SHARE 1000
#define LATE 50000000u   /* a line may be so late, where others have the processors */
#define WAIT 1000000000u /* until the lock is asked for again */
#define STAT_BEGAN 22    /* the field of /proc/PID/stat: when the process began */
#define TAIL 65536       /* bytes that are read of an older file: some hundred lines */

static struct {
    bool on, held; /* the file is ours to write */
    pki_owned own;
    int error;                                /* of the last write, logged once */
    bool torn;                                /* what stands at the file's end has no newline */
    uint64_t began;                           /* the session */
    uint64_t written_saves, written_training; /* what the last line knew of */
    uint64_t next;                            /* when the next one is due */
    pki_life_line line, not_mine;             /* not_mine: before the file was ours */
} file = {.own.fd = -1};

/* ---- the line ---- */

static uint64_t beat_of(uint64_t up)
{
    uint64_t first = (pki_monotonic_ns() - file.began) / FIRST_SHARE;
    first = PKI_MIN(PKI_MAX(first, FIRST_LEAST), FIRST_MOST);
    return PKI_MIN(PKI_MAX(up / BEAT_SHARE, first), BEAT_MOST);
}

/* What has been before the file was ours is another run's time. The step that was open then has
 * become a part of its own since: what is left is taken off wherever there is time. */
static void subtract(pki_life_line *l, const pki_life_line *off)
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
    pki_phases heard = pki_goodput_account_line(last, &file.line);
    file.line.beat = beat_of(file.line.up) + LATE;
    subtract(&file.line, &file.not_mine);
    return heard;
}

/* The file is appended to, whatever the position: that is the mark that it is ours, and is
 * put back. */
static ssize_t write_at_end(const char *text, size_t n)
{
    ssize_t done = write(file.own.fd, text, n);
    int error = errno;
    lseek(file.own.fd, (off_t)file.own.mark, SEEK_SET);
    errno = error;
    return done;
}

static bool append(const char *text, size_t n)
{
    struct stat about;
    if (!pki_own_check(&file.own) || fstat(file.own.fd, &about) != 0 ||
        !pki_mem_may_grow((uint64_t)about.st_size + n))
        return false;
    ssize_t done = write_at_end(text, n);
    if (done >= 0 && (size_t)done < n) {
        file.torn = done > 0 || file.torn;
        errno = ENOSPC;
    }
    return done >= 0 && (size_t)done == n;
}

static void put(uint32_t why)
{
    char text[PKI_LIFE_LINE + 1] = "\n";
    pki_phases heard = fill(why == PKI_LIFE_END);
    file.line.why = why;
    size_t n = pki_life_put(&file.line, text + 1);
    if (append(file.torn ? text : text + 1, file.torn ? n + 1 : n)) {
        file.torn = false;
        file.error = 0;
        file.line.n++;
    } else if (errno != file.error) {
        file.error = errno;
        pki_log(PK_LOG_ERROR, "goodput_path: %s; the next line makes up for this one",
                pki_own_why(file.error));
    }
    file.written_saves = heard.saves;
    file.written_training = heard.training_calls;
    file.next = pki_monotonic_ns() + beat_of(file.line.up);
}

/* ---- the file ---- */

/* The process began before its session: /proc has it in whole clock ticks since the machine's
 * start, so half of one is what it is off by on average. */
static uint64_t before_session(const pki_session *s)
{
    static bool asked; /* a session behind another one begins where it begins */
    char text[1024];
    /* The session's time began a while ago. */
    uint64_t since = pki_monotonic_ns() - s->arena->header->clock.origin_ns;
    uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK), now = pki_read_clock(CLOCK_BOOTTIME) - since;
    if (asked || !hz || !pki_small_file("/proc/self/stat", text, sizeof text))
        return 0;
    asked = true;
    const char *ticks = pki_proc_stat_field(text, STAT_BEGAN);
    uint64_t began =
        ticks ? (uint64_t)(((double)strtoull(ticks, NULL, 10) + 0.5) * 1e9 / (double)hz) : now;
    return began < now ? now - began : 0;
}

/* The lines of a piece of the file: is there a whole one, and how far had the training come? */
static bool read_lines(const char *text, size_t n, int64_t *furthest)
{
    bool any = false;
    for (const char *at = text, *end = text + n, *stop; at < end; at = stop + 1) {
        pki_life_line line;
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        if (pki_life_read(at, (size_t)(stop - at), &line)) {
            any = true;
            *furthest = PKI_MAX(*furthest, PKI_MAX(line.at, line.furthest));
        }
    }
    return any;
}

static bool is_all(char c, const char *text, size_t n)
{
    return n > 0 && text[0] == c && memcmp(text, text + 1, n - 1) == 0;
}

/* Is the file one of these? A machine that has lost its power may have left zeros: behind its
 * lines, or, if it is short, in their place, which then go. */
static bool is_ours(char *text, off_t size)
{
    size_t magic = sizeof PKI_LIFE_MAGIC - 1;
    ssize_t n = pread(file.own.fd, text, TAIL, 0);
    if (n > 0 && n == size && is_all('\0', text, (size_t)n))
        return ftruncate(file.own.fd, 0) == 0;
    return n == 0 || (n > 0 && memcmp(text, PKI_LIFE_MAGIC, PKI_MIN((size_t)n, magic)) == 0);
}

/* What the runs before have left, from the end back to where there are whole lines: how far the
 * training has come. Pieces overlap by a line. */
static void read_last_lines(char *text, off_t size, int64_t *furthest)
{
    bool any = false;
    for (off_t end = size; end > 0 && !any;) {
        off_t from = end > TAIL ? end - TAIL : 0;
        ssize_t n = pread(file.own.fd, text, (size_t)(end - from), from);
        if (end == size)
            file.torn = n > 0 && text[n - 1] != '\n';
        any = read_lines(text, (size_t)PKI_MAX(n, 0), furthest);
        end = from ? from + PKI_LIFE_LINE : 0;
    }
}

/* False: it is another kind of file. */
static bool read_tail(int64_t *furthest)
{
    struct stat about;
    char *text = fstat(file.own.fd, &about) == 0 ? malloc(TAIL) : NULL;
    bool ours = text && is_ours(text, about.st_size);
    if (ours && fstat(file.own.fd, &about) == 0)
        read_last_lines(text, about.st_size, furthest);
    free(text);
    return ours;
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
    file.line = (pki_life_line){.run = number_of_run(s),
                                .boot = *w->clock ? pki_hash(w->clock, strlen(w->clock), 0) : 0,
                                .rank = (uint64_t)w->rank,
                                .pid = w->pid};
}

/* False: another process holds it. */
static bool lock_file(void)
{
    int64_t furthest = -1;
    if (!pki_own_lock(&file.own) && (errno == EAGAIN || errno == EACCES))
        return false;
    file.held = read_tail(&furthest);
    pki_goodput_account_furthest(furthest);
    if (file.held)
        put(PKI_LIFE_START);
    return true;
}

static void close_file(void)
{
    if (file.on)
        pki_own_close(&file.own);
    file.on = file.held = false;
}

static void let_go(void)
{
    close_file();
    pki_goodput_account_forget();
}

static void after_fork(void)
{
    pki_own_close(&file.own);
    memset(&file, 0, sizeof file);
    file.own.fd = -1;
    pki_goodput_account_after_fork();
}

static void wait_for_file(void)
{
    file.not_mine = (pki_life_line){0};
    (void)fill(false);
    file.not_mine = file.line;
    file.next = pki_monotonic_ns() + WAIT;
    if (lock_file() && !file.held) {
        pki_log(PK_LOG_ERROR,
                "goodput_path: is no state file of perfkit any more; it is left alone");
        let_go();
    }
}

static pk_status why_not(const char *path, int error)
{
    return pki_paths_fail("goodput", path, error, "leave goodput_path empty for no state file");
}

/* Once the fold is open. Of several ranks with one file (no %r in its name) the first has it. */
static pk_status open_goodput(pki_session *s)
{
    const char *path = s->config.goodput;
    after_fork();
    if (!path[0] || (s->config.world.rank > 0 && !s->config.goodput_of_each))
        return PK_OK;
    if (!pki_target_is_free(path))
        return why_not(path, errno);
    int fd = pki_fd_open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0666);
    if (fd < 0 || !pki_own_adopt(&file.own, fd))
        return why_not(path, errno);
    file.on = true;
    file.began = pki_monotonic_ns();
    begin_line(s);
    pki_goodput_account_begin(s, before_session(s));
    if (!lock_file()) {
        pki_log(PK_LOG_WARNING,
                "goodput %s: another process writes it; this run begins there when that one ends",
                path);
    } else if (!file.held) {
        let_go();
        return pki_fail(PK_EINVAL, "goodput %s: is another kind of file, and is left as it is",
                        path);
    }
    return PK_OK;
}

static void write_in_time(pki_session *s)
{
    (void)s;
    if (!file.on)
        return;
    pki_phases now = pki_phases_now();
    bool news = now.known &&
                (now.saves != file.written_saves || now.training_calls != file.written_training);
    pki_goodput_account_hang();
    if (pki_monotonic_ns() >= file.next || (news && file.held)) {
        if (file.held)
            put(PKI_LIFE_BEAT);
        else
            wait_for_file();
    }
    if (file.next - file.began < FIRST_SHARE * (uint64_t)FIRST_MOST)
        pki_collect_within(pki_saturating_sub(file.next, pki_monotonic_ns()) + 1);
}

static void write_last(pki_session *s)
{
    (void)s;
    if (file.on && !file.held)
        wait_for_file();
    if (file.on && file.held)
        put(PKI_LIFE_END);
    uint64_t missed = pki_goodput_account_phases().missed;
    if (file.on && missed)
        pki_log(PK_LOG_WARNING,
                "goodput_path: %llu announcements of phases found no room: what they would have "
                "parted counts as other time",
                (unsigned long long)missed);
    close_file();
    pki_goodput_account_stop(); /* the report is yet to be made */
}

/* Of the last line, which makes up for those before it. */
static pk_status status_of_file(void)
{
    if (!file.error)
        return PK_OK;
    return pki_fail(pki_status_of_errno(file.error),
                    "goodput %s: %s; what the run did after its last line is missing",
                    pki_the_session.config.goodput, pki_own_why(file.error));
}

static void abandon(pki_session *s)
{
    (void)s;
    let_go();
}

static bool summarise(const pki_session *s, pki_summary *out)
{
    pki_goodput_fill(pki_clock_awake_ns(&s->arena->header->clock.sleeps, s->stop_ns), true,
                     &out->goodput);
    return true;
}

const pki_service pki_service_goodput = {
    .name = "goodput",
    .open = open_goodput,
    .round = write_in_time,
    .end = write_last,
    .summarise = summarise,
    .status = status_of_file,
    .abandon = abandon,
    .after_fork = after_fork,
};
