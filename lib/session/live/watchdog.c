/* lib/session/live/watchdog.c - says that the program hangs, and where (pk_options.hang_seconds).
 *
 * A thread of its own, since the collector may be what is stuck: in a driver's call, on a full
 * disk, in the program's log function. It wakes twice a second at most and reads the arena's words
 * alone, without a lock, so that nobody who hangs with a lock takes it along; one who asks for a
 * log message takes that lock, last of all.
 */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/process.h"
#include "base/log.h"
#include "core/inside.h"
#include "session/job/goodput_account.h"
#include "session/live/hang.h"
#include "session/captures/requests.h"
#include "session/service.h"

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
