#include "session/costs/io_steps.h"

#include <stdio.h>
#include <string.h>

#include "core/counter.h"
#include "core/names.h"
#include "core/registry.h"
#include "measure/costs/io.h"
#include "measure/costs/io_steps.h"
#include "measure/fold/fold.h"
#include "session/costs/io.h"
#include "session/service.h"

#define TRIES 3

/* The first ones as a pki_io_reading has them. */
enum { READ = PKI_IO_READ, STEPS = PKI_IO_FIGURES, COUNTERS };

static pk_counter counters[COUNTERS] = {
    PK_COUNTER("io.read", "bytes"),        PK_COUNTER("io.written", "bytes"),
    PK_COUNTER("io.device_read", "bytes"), PK_COUNTER("io.device_written", "bytes"),
    PK_COUNTER("io.operations", "calls"),  PK_COUNTER("io.steps", "steps")};

/* A thread may be amid a step's end as its session ends. */
static struct {
    uint32_t serial; /* of the session's registry */
    uint32_t ids[COUNTERS];
    uint64_t last;               /* ticks of the last reading; 0: none */
    uint64_t least;              /* ns between two */
    uint64_t recorded[COUNTERS]; /* as of the last one that was recorded, since the process began */
    uint64_t looks;              /* of this session... */
    uint64_t each;               /* ...and what one takes, ns */
} x;

/* What is folded of it, under the fold lock. */
static struct {
    uint64_t at;  /* ticks of the reading that is being put together... */
    unsigned has; /* ...a bit for each that is there */
    pki_io_reading reading;
    pki_io_course course;
} folded;

static void sum_up(const pki_io_counts *c, uint64_t steps, uint64_t all[COUNTERS])
{
    const uint64_t sums[COUNTERS] = {c->read_chars,
                                     c->write_chars,
                                     c->read_device,
                                     c->write_device,
                                     c->read_calls + c->write_calls,
                                     steps};
    memcpy(all, sums, sizeof sums);
}

/* Less than before in anything: perfkit's thread was at work between the two files, or the kernel's
 * counts of one have not met yet. */
static bool falls(const uint64_t all[COUNTERS])
{
    for (int i = 0; i < COUNTERS; i++)
        if (all[i] < pki_load(&x.recorded[i]))
            return true;
    return false;
}

static bool look(uint64_t steps, uint64_t all[COUNTERS])
{
    pki_io_counts counts;
    for (int i = 0; i < TRIES; i++) {
        if (!pki_io_of_program(&counts))
            return false;
        sum_up(&counts, steps, all);
        if (!falls(all))
            break;
    }
    return true;
}

static void record(pki_thread *t, uint64_t now, const uint64_t all[COUNTERS])
{
    uint32_t ids[COUNTERS];
    double values[COUNTERS];
    for (int i = 0; i < COUNTERS; i++) {
        ids[i] = pki_load(&x.ids[i]);
        values[i] = (double)pki_saturating_sub(all[i], pki_load(&x.recorded[i]));
    }
    if (!pki_counters_record(t, ids, values, COUNTERS, now, all[STEPS]))
        return;
    for (int i = 0; i < COUNTERS; i++)
        pki_store(&x.recorded[i], PKI_MAX(all[i], pki_load(&x.recorded[i])));
}

/* One thread at a time: whoever ends a step. */
static void at_step(pki_thread *t, uint64_t now, bool between)
{
    uint64_t last = pki_load(&x.last), all[COUNTERS];
    (void)between;
    if (pki_thread_ns(t, last, pki_not_negative(now - last)) < pki_load(&x.least))
        return;
    pki_store(&x.last, now);
    pki_store(&x.looks, pki_load(&x.looks) + 1);
    if (look(pki_load(&t->registry->arena->header->steps), all) &&
        t->registry->serial == pki_load(&x.serial))
        record(t, now, all);
}

/* The first of the session is of all that comes behind its start. */
static bool measure(const pki_session *s)
{
    uint64_t least = UINT64_MAX, all[COUNTERS] = {0};
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = pki_monotonic_ns();
        if (!look(pki_load(&s->arena->header->steps), all))
            return false;
        least = PKI_MIN(least, pki_monotonic_ns() - before);
    }
    pki_store(&x.each, least);
    pki_store(&x.least, PKI_MAX(least * PKI_IO_STEP_SHARE, PKI_IO_STEP_LEAST));
    pki_store(&x.last, pki_ticks(s->config.monotonic));
    for (int i = 0; i < COUNTERS; i++)
        pki_store(&x.recorded[i], all[i]);
    return true;
}

/* A reading's records come in one piece, and that of its steps is the last. */
static void on_value(pki_fold *fold, const pki_record *r, double value)
{
    uint32_t id = pki_what_id(r->what);
    int i = 0;
    (void)fold;
    while (i < COUNTERS && id != pki_load(&x.ids[i]))
        i++;
    if (i == COUNTERS)
        return;
    if (i == READ) {
        folded.at = r->start;
        folded.has = 0;
    }
    folded.has |= r->start == folded.at ? 1u << i : 0;
    if (i < STEPS)
        folded.reading.values[i] = value;
    else if (folded.has == (1u << COUNTERS) - 1) {
        folded.reading.last = pki_saturating_sub(r->extra, 1);
        folded.reading.steps = (uint64_t)value;
        pki_io_course_add(&folded.course, &folded.reading);
    }
}

/* In the fold of this session. */
static void listen(void)
{
    pki_fold_lock();
    pki_fold_now()->on_value = on_value;
    pki_fold_unlock();
}

static void forget(void)
{
    pki_fold_lock();
    pki_io_course_finish(&folded.course);
    pki_fold_unlock();
    pki_store(&x.each, (uint64_t)0);
    pki_store(&x.looks, (uint64_t)0);
    for (int i = 0; i < COUNTERS; i++)
        pki_store(&x.recorded[i], (uint64_t)0);
}

static bool intern_names(void)
{
    bool all = true;
    for (int i = 0; i < COUNTERS; i++) {
        pki_store(&x.ids[i], pki_counter_id(&counters[i]));
        all &= pki_load(&x.ids[i]) > 0;
    }
    return all;
}

/* Does nothing but forget the session before where costs=io is not asked for. */
static void start_steps(pki_session *s)
{
    forget();
    pki_io_begin();
    pki_store(&x.serial, s->registry->serial);
    if (!s->config.costs_io || !intern_names() || !measure(s))
        return;
    listen();
    pki_registry_lock();
    pki_registry_on_step(s->registry, PKI_AT_STEP_IO, at_step);
    pki_registry_unlock();
}

/* What the parent's collector may have been amid is neither trusted nor freed in the child. Whoever
 * looks for leaks there finds it here. */
static pki_io_course left __attribute__((used));

static void after_fork(void)
{
    left = folded.course;
    memset(&folded, 0, sizeof folded);
}

uint64_t pki_io_steps_least(void)
{
    return pki_load(&x.least);
}

uint64_t pki_io_steps_spent(void)
{
    return pki_load(&x.looks) * pki_load(&x.each);
}

static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    out->io.steps = pki_io_course_summary(&folded.course);
    return true;
}

const pki_service pki_service_io_steps = {
    .name = "io_steps",
    .start = start_steps,
    .summarise = summarise,
    .after_fork = after_fork,
    .spent = pki_io_steps_spent,
};
