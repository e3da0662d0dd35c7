/* lib/session/captures/none.c - built without captures (-Dservices=): asked for, it is refused at
 * the start. */
#include <stdio.h>

#include <pk/private.h>

#include "base/log.h"
#include "history/history.h"
#include "session/captures/captures.h"

#define MISSING "this build of perfkit has no captures"

static pk_status open_none(pki_session *s)
{
    return s->config.history_steps ? pki_fail(PK_ENOTSUP, "history_steps: " MISSING) : PK_OK;
}

const pki_service pki_service_captures = {.name = "captures", .open = open_none};
const pki_service pki_service_states = {.name = "states"};
const pki_service pki_service_looks = {.name = "looks"};
const pki_service pki_service_stacks = {.name = "stacks"};

pk_status pki_requests_call(pki_capture_reason reason, const char *text, uint32_t steps)
{
    (void)reason, (void)text, (void)steps;
    return pki_fail(PK_ENOTSUP, MISSING);
}

/* ---- what options ask of captures ---- */

bool pki_clauses_parse(const char *text, pki_clauses *clauses, char *why, size_t size)
{
    (void)text, (void)clauses;
    snprintf(why, size, MISSING);
    return false;
}

bool pki_clauses_await_steps(const pki_clauses *clauses)
{
    (void)clauses;
    return false;
}

uint64_t pki_clauses_longest(const pki_clauses *clauses)
{
    (void)clauses;
    return 0;
}

bool pki_capture_path_prepare(const char *path, char out[PATH_MAX])
{
    (void)path;
    snprintf(out, PATH_MAX, "none");
    return true;
}

bool pki_capture_path_is_one(const char *pattern)
{
    (void)pattern;
    return true;
}

bool pki_capture_path_derive(const char *trace, char out[PATH_MAX])
{
    (void)trace;
    out[0] = 0;
    return true;
}

bool pki_capture_path_expand(const char *pattern, const char *step, char out[PATH_MAX])
{
    (void)pattern, (void)step;
    out[0] = 0;
    return true;
}

void pki_capture_path_anchor(char pattern[PATH_MAX])
{
    (void)pattern;
}

/* ---- a backend that waits for captures ---- */

void pki_arming_listen(bool yes)
{
    (void)yes;
}

bool pki_arming_now(void)
{
    return false;
}

uint64_t pki_arming_awaited(void)
{
    return 0;
}

/* ---- a history that is never opened ---- */

void pki_session_history_open(pki_session *s)
{
    (void)s;
}

void pki_session_history_close(pki_session *s)
{
    (void)s;
}

void pki_session_history_record(pki_session *s, uint32_t tid, const pki_record *record,
                                const pki_record *more)
{
    (void)s, (void)tid, (void)record, (void)more;
}

void pki_history_round(pki_history *history)
{
    (void)history;
}

void pki_history_thread(pki_history *history, const pki_thread *thread)
{
    (void)history, (void)thread;
}

void pki_history_record(pki_history *history, uint32_t tid, const pki_record *record,
                        const pki_record *more)
{
    (void)history, (void)tid, (void)record, (void)more;
}

void pki_history_regions(pki_history *history, uint32_t tid, const pki_record *records, uint32_t n)
{
    (void)history, (void)tid, (void)records, (void)n;
}

void pki_history_activity(pki_history *history, const pki_activity *activity,
                          const pki_track *track)
{
    (void)history, (void)activity, (void)track;
}

void pki_history_measures(pki_history *history, uint64_t ns, bool on)
{
    (void)history, (void)ns, (void)on;
}

uint64_t pki_history_end(const pki_history *history)
{
    (void)history;
    return 0;
}

void pk_looks_burst_(uint64_t ms)
{
    (void)ms;
}
