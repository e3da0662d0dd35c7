#include "session/live/hang.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "comm/model/communicator.h"
#include "core/open_frames.h"
#include "core/names.h"

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
    return clock->origin_ns + pki_clock_ns(clock, ticks);
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

void pki_hang_observe(const pki_session *s, pki_watch_input *input)
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
    uint64_t first = pki_load_acquire(&s->arena->header->live.totals); /* pairs with the release in
                                                                         session/live/live.c */
    const pki_slot *slot = first ? pki_arena_at(s->arena, first) : NULL;
    while (slot && slot->id != id)
        slot = pki_table_next(slot);
    return slot ? p99_in(slot) : 0;
}

uint64_t pki_hang_usual(const pki_session *s)
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

void pki_hang_log(const pki_session *s, uint64_t quiet, uint64_t limit)
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

void pki_hang_log_end(const pki_session *s, uint64_t quiet)
{
    pki_store_release(&s->arena->header->hang.raised, 0u);
    pki_log(PK_LOG_WARNING, "the program goes on, after %.1f s in which nothing ended",
            (double)quiet / 1e9);
}
