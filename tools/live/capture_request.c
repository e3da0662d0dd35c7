/* tools/live/capture_request.c - one step for all of them, and their answers. */
#include "live/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 20      /* between looks */
#define RATE_MS 250     /* how long the steps are watched, to know how fast they come */
#define AHEAD_SECONDS 1 /* of steps, so that a request reaches all before the step does */
#define AHEAD_LEAST 2

static void rest(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void end(capture_part *p, const char *verdict, const char *why)
{
    p->verdict = verdict;
    snprintf(p->why, sizeof p->why, "%s", why);
    p->done = true;
}

/* ---- which step ---- */

static uint64_t furthest(capture_job *job)
{
    uint64_t most = 0;
    for (size_t i = 0; i < job->count; i++)
        if (target_refresh(job->parts[i].t) && job->parts[i].t->state == TARGET_RUNNING)
            most = PKI_MAX(most, job->parts[i].t->header->steps);
    return most;
}

/* Steps that will end within a second, going by the quickest of a quarter of one. */
static uint64_t usual_ahead(capture_job *job)
{
    uint64_t before = furthest(job);
    rest(RATE_MS);
    uint64_t made = furthest(job) - before;
    return PKI_MAX(made * 1000 / RATE_MS * AHEAD_SECONDS, AHEAD_LEAST);
}

static uint64_t choose_step(capture_job *job)
{
    if (job->wish.given_at)
        return job->wish.at;
    uint64_t ahead = job->wish.given_ahead ? job->wish.ahead : usual_ahead(job);
    return furthest(job) + ahead;
}

/* ---- asking ---- */

static bool put(int fd, size_t offset, const void *what, size_t n)
{
    return pwrite(fd, what, n, (off_t)offset) == (ssize_t)n;
}

/* The serial last: it is what the process looks at. */
static bool write_request(capture_part *p, uint64_t first, uint32_t steps)
{
    const size_t at = offsetof(pki_arena_header, request);
    int fd = target_reopen(p->t, O_RDWR);
    if (fd < 0)
        return false;
    p->serial = p->t->header->request.serial + 1;
    p->serial += p->serial == 0;
    pki_request request = {.steps = steps, .first = first};
    bool written = put(fd, at + offsetof(pki_request, steps), &request.steps, sizeof steps) &&
                   put(fd, at + offsetof(pki_request, first), &request.first, sizeof first) &&
                   put(fd, at + offsetof(pki_request, serial), &p->serial, sizeof p->serial);
    int error = errno;
    close(fd);
    errno = error;
    return written;
}

static void request_part(capture_part *p, uint64_t first, uint32_t steps)
{
    if (!target_refresh(p->t))
        end(p, "gone", "its arena can no longer be read");
    else if (p->t->state == TARGET_GONE)
        end(p, "gone", "it has ended without pk_stop");
    else if (p->t->state == TARGET_ENDED)
        end(p, "ended", "its session is over");
    else if (!p->t->header->history)
        end(p, "off", "it keeps no history (PK_CAPTURE=request)");
    else if (!write_request(p, first, steps))
        end(p, "refused", strerror(errno));
    else
        p->asked = true;
}

bool capture_request(capture_job *job, complaint *why)
{
    size_t asked = 0;
    job->first = choose_step(job);
    for (size_t i = 0; i < job->count; i++) {
        request_part(&job->parts[i], job->first, job->wish.steps);
        asked += job->parts[i].asked;
    }
    return asked || complaint_set(why, "no process could be asked: %s", job->parts[0].why);
}

/* ---- answers ---- */

static void read_answer(capture_part *p)
{
    const pki_answer *a = &p->answer;
    char text[160];
    switch (a->state) {
    case PKI_ANSWER_LATE:
        snprintf(text, sizeof text, "it was in step %llu already", (unsigned long long)a->next);
        end(p, "late", text);
        break;
    case PKI_ANSWER_OFF:
        end(p, "off", "its captures are not for requests (PK_CAPTURE=request)");
        break;
    case PKI_ANSWER_REFUSED:
        end(p, "refused", "the hour's budget has no room (captures_per_hour)");
        break;
    case PKI_ANSWER_FAILED:
        end(p, "failed", "the file could not be written");
        break;
    case PKI_ANSWER_WRITTEN:
        snprintf(p->why, sizeof p->why, "%.*s", (int)strnlen(a->path, sizeof a->path), a->path);
        p->verdict = a->cut ? "cut" : "captured";
        p->done = p->good = true;
        break;
    default:
        break;
    }
}

static void poll_part(capture_part *p)
{
    if (p->done || !p->asked)
        return;
    if (!target_refresh(p->t)) {
        end(p, "gone", "its arena can no longer be read");
        return;
    }
    p->answer = p->t->header->answer;
    if (p->answer.serial == p->serial)
        read_answer(p);
    else if (p->t->header->request.serial != p->serial)
        end(p, "refused", "another request has taken the place of this one");
    if (!p->done && p->t->state == TARGET_GONE)
        end(p, "gone", "it has ended without pk_stop");
    if (!p->done && p->t->state == TARGET_ENDED)
        end(p, "ended", "its session ended before the step");
}

/* What there is to say when the time is up. */
static void time_out(capture_part *p)
{
    if (p->done)
        return;
    if (p->t->state == TARGET_STOPPED)
        end(p, "stopped", "it is stopped (a signal, a terminal, a debugger)");
    else if (p->answer.serial != p->serial)
        end(p, "silent", "it has not answered");
    else
        end(p, "waiting", "it has accepted; the step has not ended yet");
}

/* Of those that are stopped nothing is expected. */
static bool is_waited_for(const capture_part *p)
{
    return !p->done && p->t->state != TARGET_STOPPED;
}

void capture_wait(capture_job *job)
{
    uint64_t until = pki_monotonic_ns() + (uint64_t)job->wish.wait_seconds * 1000000000u;
    for (bool any = true; any && pki_monotonic_ns() < until;) {
        any = false;
        for (size_t i = 0; i < job->count; i++) {
            poll_part(&job->parts[i]);
            any |= is_waited_for(&job->parts[i]);
        }
        if (any)
            rest(LOOK_MS);
    }
    for (size_t i = 0; i < job->count; i++)
        time_out(&job->parts[i]);
}
