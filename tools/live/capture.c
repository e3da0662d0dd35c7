/* tools/live/capture.c - `pk capture`: a request for a capture, to several processes */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "command.h"
#include "live/live.h"

#define CAPTURE_WHY 1200

typedef struct capture_wish {
    uint32_t steps;
    bool given_at; /* else `ahead` steps from the furthest one, if given */
    bool given_ahead;
    uint64_t at, ahead;
    uint32_t wait_seconds;
} capture_wish;

/* One process's part. */
typedef struct capture_part {
    target *t;
    bool asked;
    uint32_t serial;       /* of the request in its arena */
    pki_answer answer;     /* the last one that was read */
    const char *verdict;   /* in a word: "captured", "late", "stopped", ... */
    char why[CAPTURE_WHY]; /* a sentence, or the file */
    bool done, good;
} capture_part;

typedef struct capture_job {
    capture_wish wish;
    capture_part *parts;
    size_t count;
    uint64_t first; /* the step that all were asked for */
} capture_job;

static bool capture_request(capture_job *job, complaint *why);
static void capture_wait(capture_job *job);

/* ---- a request for a capture, to several processes, and what each answers ---- */

#define EXIT_NOT_ALL 1

typedef struct wish {
    uint32_t steps, at, ahead, wait;
    bool given_at, given_ahead, json;
    operands targets;
} wish;

static bool parse_at(void *to, const option_given *given)
{
    ((wish *)to)->given_at = true;
    return option_number(to, given);
}

static bool parse_in(void *to, const option_given *given)
{
    ((wish *)to)->given_ahead = true;
    return option_number(to, given);
}

static const option all_options[] = {
    {"--steps", "N", "so many steps (1)", PKI_OPTION_WORD, option_number, offsetof(wish, steps),
     .least = 1, .most = 10000},
    {"--at", "STEP", "from this step on, as it is numbered in traces", PKI_OPTION_WORD, parse_at,
     offsetof(wish, at), .least = 0},
    {"--in", "N",
     "so many steps ahead of the one that has come furthest. Without --at and --in: as many as "
     "take a second",
     PKI_OPTION_WORD, parse_in, offsetof(wish, ahead), .least = 0},
    {"--wait", "SECONDS", "for so long at most (60)", PKI_OPTION_WORD, option_number,
     offsetof(wish, wait), .least = 1, .most = 86400},
    {"--json", NULL, "the answers as one JSON document", .at = offsetof(wish, json)},
};

static const option_table command_options = {
    .command = "capture",
    .usage = "TARGET... [--steps N] [--at STEP | --in N] [--wait SECONDS] [--json]",
    .about =
        "Asks running processes for a trace of the same steps, and says who has made one, who was\n"
        "late (the step had passed: nothing is shifted), who is stopped or gone. TARGET is\n"
        "  a pid         of a process that has called pk_start\n"
        "  an arena      the file that a run keeps beside its trace\n"
        "  a folder      all arenas in it: the ranks of a job\n"
        "They have to be started with PK_CAPTURE=request, perhaps among other clauses.",
    .notes = "Exit status: 0; 1 if not all have captured; 2 if none could be asked.",
    .options = {all_options, PKI_COUNT_OF(all_options)},
    .files = "arena",
    .who = "capture: ",
    .operands = offsetof(wish, targets),
};

static void print_text(const capture_job *job)
{
    char who[TARGET_TEXT];
    for (size_t i = 0; i < job->count; i++) {
        const capture_part *p = &job->parts[i];
        target_describe(p->t, who);
        printf("%s: %s, %s\n", who, p->verdict, p->why);
    }
}

static void print_json(const capture_job *job)
{
    char text[6 * CAPTURE_WHY + 1];
    printf("{\"first\":%llu,\"steps\":%u,\"targets\":[", (unsigned long long)job->first,
           job->wish.steps);
    for (size_t i = 0; i < job->count; i++) {
        const capture_part *p = &job->parts[i];
        const pki_arena_header *h = p->t->header;
        pki_json_escape(text, sizeof text, p->why, strlen(p->why));
        printf("%s\n{\"rank\":%d,\"pid\":%u,\"answer\":\"%s\",\"%s\":\"%s\"}", i ? "," : "",
               h->world_size > 0 ? h->rank : -1, h->pid, p->verdict, p->good ? "path" : "why",
               text);
    }
    printf("\n]}\n");
}

static int all_good(const capture_job *job)
{
    size_t good = 0;
    for (size_t i = 0; i < job->count; i++)
        good += job->parts[i].good;
    return good == job->count ? EXIT_OK : EXIT_NOT_ALL;
}

static int run(targets *t, const wish *w)
{
    complaint why = {""};
    capture_job job = {.wish = {.steps = w->steps,
                                .given_at = w->given_at,
                                .given_ahead = w->given_ahead,
                                .at = w->at,
                                .ahead = w->ahead,
                                .wait_seconds = w->wait},
                       .parts = calloc(t->count + 1, sizeof *job.parts),
                       .count = t->count};
    if (!job.parts)
        return complain("capture: no memory");
    for (size_t i = 0; i < t->count; i++)
        job.parts[i].t = &t->all[i];
    int status = EXIT_OK;
    if (capture_request(&job, &why)) {
        capture_wait(&job);
        (w->json ? print_json : print_text)(&job);
        status = all_good(&job);
    } else {
        status = complain("capture: %s", why.text);
    }
    free(job.parts);
    return status;
}

int command_capture(int argc, char **argv)
{
    wish w = {.steps = 1, .wait = 60};
    targets t;
    complaint why = {""};
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (!w.targets.count)
        return complain("capture needs a TARGET (pk capture --help)");
    if (w.given_at && w.given_ahead)
        return complain("capture: --at and --in exclude each other");
    bool open = targets_open(&t, w.targets.all, w.targets.count, &why);
    status = open ? run(&t, &w) : complain("capture: %s", why.text);
    targets_close(&t);
    return status;
}

/* ---- one step for all of them, and their answers ---- */

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

/* Asks all of them for the same step. False, and why: none could be asked. */
static bool capture_request(capture_job *job, complaint *why)
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

/* Until all have answered for good, or the time is up. */
static void capture_wait(capture_job *job)
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
