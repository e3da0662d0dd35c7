#include "session/collector/stepper.h"

#include "session/report/cpu_side.h"
#include "session/service.h"

#include <stdio.h>
#include <stdlib.h>

#define INTERVAL 100000000u /* ns: a look takes some microseconds of the collector */

bool pki_stepper_parse(const char *text, uint64_t *running, uint64_t *ready)
{
    char *end, *behind;
    *running = strtoull(text, &end, 10);
    *ready = strtoull(end, &behind, 10);
    return end != text && behind != end && *end == ' ';
}

void pki_stepper_add(pki_processor *sum, const pki_processor *more)
{
    uint64_t room = sum->observed + more->observed - sum->running - sum->ready;
    uint64_t running = PKI_MIN(more->running, room);
    sum->observed += more->observed;
    sum->running += running;
    sum->ready += PKI_MIN(more->ready, room - running);
}

static bool read_now(uint32_t tid, pki_processor *total)
{
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", tid);
    total->observed = pki_monotonic_ns();
    return pki_read_line(path, line, sizeof line) &&
           pki_stepper_parse(line, &total->running, &total->ready);
}

static void poll(pki_session *s, bool now)
{
    const pki_thread *t = pki_load(&s->registry->stepper);
    /* NULL: its last step found no room. Its block may be another thread's by now. */
    uint32_t tid = t ? pki_load(&t->tid) : s->stepper_tid;
    pki_processor total, *sum = &s->toll.stepper;
    pki_cpu_side_poll(tid, false);
    if (!tid || (!now && pki_monotonic_ns() - s->stepper_before.observed < INTERVAL))
        return;
    if (!read_now(tid, &total))
        return;
    if (tid == s->stepper_tid) {
        const pki_processor *before = &s->stepper_before;
        pki_processor more = {total.observed - before->observed,
                              pki_saturating_sub(total.running, before->running),
                              pki_saturating_sub(total.ready, before->ready)};
        pki_stepper_add(sum, &more);
    }
    s->stepper_tid = tid;
    s->stepper_before = total;
}

static pk_status begin(pki_session *s)
{
    (void)s;
    pki_cpu_side_begin("");
    return PK_OK;
}

/* If it is time to. */
static void look_in_time(pki_session *s)
{
    poll(s, false);
}

static void look_now(pki_session *s)
{
    poll(s, true);
}

static void look_last(pki_session *s)
{
    poll(s, true);
    pki_cpu_side_poll(s->stepper_tid, true);
}

static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    out->cpu_side = pki_cpu_side_end();
    return true;
}

const pki_service pki_service_processors = {
    .name = "processors",
    .open = begin,
    .round = look_in_time,
    .look = look_now,
    .close = look_last,
    .summarise = summarise,
};
