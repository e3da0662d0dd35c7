/* tools/beside/slices.c - what a trace has of some of its steps: slices, and their timeline */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "beside/beside.h"
#include "beside/stacks.h"
#include "memory.h"
#include "out/chrome/events.h"

/* ---- what a trace has of some of its steps ---- */

static inline uint32_t slices_kind(const slices *s, uint32_t name)
{
    char kind = s->names.texts[name][0];
    return kind == SLICES_MADE ? PK_WAIT : (uint32_t)(kind - '0');
}

#define STEPS_MOST (1u << 24)
#define NAMES_MOST 65536u
#define NAME_MOST 1000
#define FIT_LOOKS 64u
#define LOOKS_MOST 1024u /* of a late step there are some dozens */
#define STATES_MOST (1u << 18)
#define BRIEF_NEAR 1000000000u /* ns */
#define BRIEF_MOST 5000000u    /* the time between two looks */
#define NAMED_MOST 4096        /* tracks whose processes are looked for */

/* ---- steps ---- */

static bool wants_step(void *user, line l)
{
    static const char mark[] = "\"ProfilerStep#";
    (void)user;
    return memmem(l.text, l.length, mark, sizeof mark - 1) != NULL;
}

static uint32_t kind_of(slices *s, const event *e)
{
    bool usual = !e->step_kind || !e->step_kind[0] || s->kinds.count >= NAMES_MOST;
    return usual ? 0 : table_add(&s->kinds, e->step_kind) + 1;
}

static void add_step(void *user, const event *e)
{
    slices *s = user;
    if (e->type != EVENT_STEP || s->step_count == STEPS_MOST)
        return;
    if (s->tracks.count == 0)
        table_add(&s->tracks, e->stepper);
    if (strcmp(s->tracks.texts[SLICES_STEP_THREAD], e->stepper) != 0)
        return;
    memory_fit(&s->steps, &s->step_room, s->step_count + 1, sizeof *s->steps);
    s->steps[s->step_count++] =
        (step_seen){e->index, e->start, e->end, e->items, kind_of(s, e), false};
}

static int earlier_first(const void *a, const void *b)
{
    const step_seen *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

bool slices_find_steps(slices *s, trace *t)
{
    *s = (slices){0};
    if (!trace_read(t, &(trace_visitor){s, wants_step, add_step}))
        return false;
    if (s->step_count)
        qsort(s->steps, s->step_count, sizeof *s->steps, earlier_first);
    return true;
}

/* ---- slices ---- */

/* Steps follow each other, so the first that ends after this moment is the first to overlap. */
static bool is_wanted(const slices *s, uint64_t start, uint64_t end)
{
    size_t low = 0, high = s->step_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->steps[middle].end > start)
            high = middle;
        else
            low = middle + 1;
    }
    for (; low < s->step_count && s->steps[low].start < end; low++)
        if (s->steps[low].wanted)
            return true;
    return false;
}

static uint32_t track_of(slices *s, const char *key)
{
    if (s->tracks.count >= NAMES_MOST && table_find(&s->tracks, key) == TABLE_NONE)
        key = "others";
    uint32_t id = table_add(&s->tracks, key);
    memory_fit(&s->about, &s->track_room, id + (size_t)1, sizeof *s->about);
    return id;
}

static uint32_t name_of(slices *s, const event *e)
{
    char key[1 + NAME_MOST + 1];
    snprintf(key, sizeof key, "%c%.*s", (char)('0' + e->kind), NAME_MOST,
             e->name[0] ? e->name : "(unnamed)");
    if (s->names.count >= NAMES_MOST && table_find(&s->names, key) == TABLE_NONE)
        snprintf(key, sizeof key, "0(too many names)");
    return table_add(&s->names, key);
}

static size_t pid_length(const char *track)
{
    return strcspn(track, "/");
}

/* Other processes of the file are not what the steps are of. */
static bool is_of_process(const slices *s, const char *track)
{
    const char *mine = s->tracks.texts[SLICES_STEP_THREAD];
    size_t n = pid_length(mine);
    return pid_length(track) == n && strncmp(track, mine, n) == 0;
}

static bool is_on_device(const event *e)
{
    static const bool runs[PKI_ACTIVITY_KINDS] = {
        [PKI_ACTIVITY_SPAN] = true,   [PKI_ACTIVITY_KERNEL] = true,
        [PKI_ACTIVITY_GRAPH] = true,  [PKI_ACTIVITY_MEMCPY] = true,
        [PKI_ACTIVITY_MEMSET] = true, [PKI_ACTIVITY_OPERATION] = true};
    bool recorded = e->type == EVENT_ACTIVITY || e->type == EVENT_COMM;
    return recorded && e->activity.device != PKI_NO_DEVICE && runs[e->activity.kind];
}

static bool is_beside(const event *e)
{
    return (e->type == EVENT_ACTIVITY &&
            (e->activity.kind == PKI_ACTIVITY_RUNTIME || e->activity.kind == PKI_ACTIVITY_DRIVER ||
             e->activity.kind == PKI_ACTIVITY_RANGE)) ||
           e->type == EVENT_COMM;
}

static void add_slice(slices *s, const event *e)
{
    bool device = is_on_device(e), beside = !device && is_beside(e);
    uint64_t start = e->start - e->lacks;
    bool shown = device || ((e->type == EVENT_REGION || beside) && is_of_process(s, e->track));
    if (!shown || !is_wanted(s, start, e->end) || s->count == UINT32_MAX)
        return;
    uint32_t track = track_of(s, e->track);
    s->about[track].device |= device;
    s->about[track].beside |= beside;
    s->about[track].slices++;
    memory_fit(&s->all, &s->room, s->count + 1, sizeof *s->all);
    s->all[s->count] = (slice){start, e->end, track, name_of(s, e), (uint32_t)s->count};
    s->count++;
}

static int inner_first(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    int order = nest_order(x->start, x->end, y->start, y->end);
    return order ? order : x->order < y->order ? -1 : 1;
}

/* ---- when it had no processor ---- */

static uint32_t name_of_state(slices *s, const char *state)
{
    char key[64];
    snprintf(key, sizeof key, "%c%s", SLICES_MADE, state);
    return table_add(&s->names, key);
}

/* NULL: of no state that there is. */
static const char *state_of(const event *e)
{
    return strcmp(e->name, PKI_STATE_READY) == 0       ? SLICES_READY
           : strcmp(e->name, PKI_STATE_STOPPED) == 0   ? SLICES_STOPPED
           : strcmp(e->name, PKI_STATE_SUSPENDED) == 0 ? SLICES_SUSPENDED
           : strcmp(e->name, PKI_STATE_BLOCKED) == 0   ? SLICES_BLOCKED
                                                       : NULL;
}

static char *text_of(const event *e, const char *key)
{
    const char *text = object_text(e->args, key);
    return memory_copy(text ? text : "");
}

static uint64_t amount_of(const event *e, const char *key)
{
    int64_t number = object_integer(e->args, key);
    return number > 0 ? (uint64_t)number : 0;
}

static bool is_of_waiting(const look_seen *l)
{
    static const char *const others[] = {
        PKI_STATE_NEIGHBOUR, PKI_STATE_QUOTA,     PKI_STATE_FAULTS, PKI_STATE_MAJOR_FAULTS,
        PKI_STATE_PRESSURE,  PKI_STATE_READY,     PKI_STATE_TIME,   PKI_STATE_UNTOLD,
        PKI_STATE_NUMA,      PKI_STATE_COMPACTED, PKI_STATE_SPLIT,  PKI_STATE_CLOCK};
    for (size_t i = 0; i < PKI_COUNT_OF(others); i++)
        if (strcmp(l->what, others[i]) == 0)
            return false;
    return true;
}

static void add_look(slices *s, const event *e)
{
    if (s->look_count >= LOOKS_MOST)
        return;
    memory_fit(&s->looks, &s->look_room, s->look_count + 1, sizeof *s->looks);
    look_seen *l = &s->looks[s->look_count++];
    *l = (look_seen){.start = e->start,
                     .end = e->end,
                     .off = amount_of(e, "off_ns"),
                     .ran = amount_of(e, "ran_ns"),
                     .ready = amount_of(e, "ready_ns"),
                     .kernel = amount_of(e, "kernel_ns"),
                     .count = amount_of(e, "count"),
                     .rate = (double)amount_of(e, "khz"),
                     .usual_rate = (double)amount_of(e, "usual_khz"),
                     .name = SLICES_NO_NAME,
                     .what = memory_copy(e->name),
                     .call = text_of(e, "call"),
                     .object = text_of(e, "object"),
                     .by = text_of(e, "by"),
                     .by_region = text_of(e, "by_region")};
    l->waits = is_of_waiting(l);
}

/* No step ends while the machine sleeps: it was in the one that has room for it. */
static void leave_other_steps(const slices *s, state_seen *at)
{
    uint64_t from = at->start, until = at->end;
    for (size_t i = 0; i < s->step_count; i++) {
        const step_seen *step = &s->steps[i];
        uint64_t first = PKI_MAX(step->start, from), last = PKI_MIN(step->end, until);
        if (last <= first || last - first < at->off)
            continue;
        at->start = first;
        at->end = last;
    }
}

/* Its thread had no processor, for another reason than most. */
static bool is_of_host(const event *e)
{
    const char *by = object_text(e->args, "by");
    return by && strcmp(by, PKI_BY_HOST) == 0;
}

static void add_state(slices *s, const event *e)
{
    const char *mine =
        s->tracks.texts[SLICES_STEP_THREAD] + pid_length(s->tracks.texts[SLICES_STEP_THREAD]);
    const char *state = state_of(e);
    int64_t thread = object_integer(e->args, "thread"), off = object_integer(e->args, "off_ns");
    if (is_of_process(s, e->track) && stacks_is_file(e)) {
        stacks_add_file(s, e);
        return;
    }
    if (!is_of_process(s, e->track) || mine[0] != '/' || strtoll(mine + 1, NULL, 10) != thread ||
        !is_wanted(s, e->start, e->end))
        return;
    if (!state && stacks_is_sample(e))
        stacks_add(s, e);
    else if (!state || is_of_host(e))
        add_look(s, e);
    if (!state || s->state_count == STATES_MOST)
        return;
    memory_fit(&s->states, &s->state_room, s->state_count + 1, sizeof *s->states);
    uint64_t length = e->end - e->start;
    bool part = off > 0 && (uint64_t)off < length;
    state_seen at = {e->start, e->end, part ? (uint64_t)off : length, name_of_state(s, state),
                     false};
    if (strcmp(state, SLICES_SUSPENDED) == 0)
        leave_other_steps(s, &at);
    s->states[s->state_count++] = at;
}

/* Nothing begins or ends on a thread that is off: the clocks of perfkit and of the kernel are a
 * microsecond apart, at most, so what reaches beyond the innermost region is cut. False: nothing is
 * left. last: the first of the thread's slices that ends behind the middle, of `count`. */
static bool fit_state(const slice *all, size_t count, size_t last, state_seen *state)
{
    uint64_t middle = state->start + (state->end - state->start) / 2;
    if (last)
        state->start = PKI_MAX(state->start, PKI_MIN(all[last - 1].end, middle));
    for (size_t i = last; i < count && i < last + FIT_LOOKS; i++) {
        uint64_t border = all[i].start > middle ? all[i].start : all[i].end;
        state->end = PKI_MIN(state->end, border);
        if (all[i].start > middle)
            continue;
        state->start = PKI_MAX(state->start, all[i].start);
        break;
    }
    return state->start < state->end;
}

static size_t first_behind(const slice *all, size_t count, uint64_t at)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The one that was made longest while it lasted; NULL. */
static look_seen *look_at(const slices *s, const state_seen *state)
{
    look_seen *found = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < s->look_count; i++) {
        look_seen *l = &s->looks[i];
        uint64_t from = PKI_MAX(l->start, state->start), until = PKI_MIN(l->end, state->end);
        if (l->waits && from < until && until - from > most) {
            most = until - from;
            found = l;
        }
    }
    return found;
}

/* "(blocked: lock janitor)", so that what it waited for is one name. */
static void name_blocked(slices *s, state_seen *state, look_seen *l)
{
    char key[NAME_MOST];
    const char *about[] = {l->object, l->by, l->by_region};
    int n = snprintf(key, sizeof key, "%c%s%.200s", SLICES_MADE, SLICES_BLOCKED_AT, l->what);
    for (size_t i = 0; i < PKI_COUNT_OF(about); i++)
        if (about[i][0])
            n += snprintf(key + n, sizeof key - (size_t)n, " %.200s", about[i]);
    snprintf(key + n, sizeof key - (size_t)n, ")");
    uint32_t known = s->names.count;
    if (known >= NAMES_MOST)
        return;
    l->name = state->name = table_add(&s->names, key);
    l->first |= state->name == known;
}

static bool is_brief(const slices *s, const state_seen *state)
{
    uint64_t length = state->end - state->start;
    return (state->off < length || length < BRIEF_MOST) &&
           strcmp(slices_name(s, state->name), SLICES_BLOCKED) == 0;
}

/* Of those that were made amid short waits; NULL. */
static look_seen *nearest_brief(const slices *s, const state_seen *state)
{
    look_seen *found = NULL;
    uint64_t least = BRIEF_NEAR;
    for (size_t i = 0; i < s->look_count; i++) {
        look_seen *l = &s->looks[i];
        uint64_t before = l->start > state->end ? l->start - state->end : 0;
        uint64_t behind = state->start > l->end ? state->start - l->end : 0;
        if (l->brief && before + behind < least) {
            least = before + behind;
            found = l;
        }
    }
    return found;
}

/* Of switches: an account does not say when. */
static bool has_records(const slices *s)
{
    for (size_t i = 0; i < s->state_count; i++) {
        const state_seen *at = &s->states[i];
        const char *name = slices_name(s, at->name);
        bool whole = at->off == at->end - at->start;
        if (strcmp(name, SLICES_BLOCKED) == 0 || (whole && strcmp(name, SLICES_READY) == 0))
            return true;
    }
    return false;
}

/* Of what was seen the longer part before or behind each stop. */
static void leave_stops(const slices *s, state_seen *seen)
{
    for (size_t i = 0; i < s->state_count; i++) {
        const state_seen *at = &s->states[i];
        if (strcmp(slices_name(s, at->name), SLICES_STOPPED) != 0 || at->start >= seen->end ||
            at->end <= seen->start)
            continue;
        uint64_t before = at->start > seen->start ? at->start - seen->start : 0;
        uint64_t behind = seen->end > at->end ? seen->end - at->end : 0;
        seen->end = before >= behind ? seen->start + before : seen->end;
        seen->start = before >= behind ? seen->start : seen->end - behind;
    }
    seen->off = PKI_MIN(seen->off, seen->end - seen->start);
}

/* Without records of it the thread was blocked for as long as its account says, behind each other
 * where it was seen so. */
static void add_seen(slices *s)
{
    uint32_t blocked = name_of_state(s, SLICES_BLOCKED);
    for (size_t i = 0; i < s->look_count; i++) {
        const look_seen *l = &s->looks[i];
        state_seen seen = {l->start, l->end, l->off, blocked, false};
        leave_stops(s, &seen);
        if (!l->waits || !seen.off)
            continue;
        memory_fit(&s->states, &s->state_room, s->state_count + 1, sizeof *s->states);
        s->states[s->state_count++] = seen;
    }
}

/* Each by what was seen while it lasted. Of short waits few are seen, so those that nobody saw are
 * as the nearest that somebody did. */
static void name_states(slices *s)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < s->state_count; i++) {
            state_seen *state = &s->states[i];
            bool brief = is_brief(s, state);
            if (strcmp(slices_name(s, state->name), SLICES_BLOCKED) != 0 || (pass && !brief))
                continue;
            look_seen *l = pass ? nearest_brief(s, state) : look_at(s, state);
            if (!l)
                continue;
            l->brief |= brief;
            state->brief = brief;
            name_blocked(s, state, l);
        }
}

/* Of a part of it that is not known, and may be in other regions. Short waits behind each other are
 * one where they lie. */
static bool is_anywhere(const slices *s, state_seen *state)
{
    uint64_t length = state->end - state->start;
    if (state->off >= length)
        return false;
    if (!state->brief && !is_brief(s, state))
        return true;
    state->start += (length - state->off) / 2;
    state->end = state->start + state->off;
    return false;
}

/* Into the innermost region, which then did not last as long. */
static void place_states(slices *s)
{
    size_t own = 0, known = s->count;
    while (own < known && s->all[own].track == SLICES_STEP_THREAD)
        own++;
    s->records = has_records(s);
    if (!s->records)
        add_seen(s);
    name_states(s);
    for (size_t i = 0; i < s->state_count; i++) {
        state_seen at = s->states[i];
        uint64_t middle = at.start + (at.end - at.start) / 2;
        bool suspended = strcmp(slices_name(s, at.name), SLICES_SUSPENDED) == 0;
        if ((!suspended && is_anywhere(s, &at)) || s->count == UINT32_MAX ||
            !fit_state(s->all, own, first_behind(s->all, own, middle), &at))
            continue;
        if (suspended && at.end - at.start > at.off) /* as late as it can have been */
            at.start = at.end - at.off;
        memory_fit(&s->all, &s->room, s->count + 1, sizeof *s->all);
        s->all[s->count] =
            (slice){at.start, at.end, SLICES_STEP_THREAD, at.name, (uint32_t)s->count};
        s->about[SLICES_STEP_THREAD].slices++;
        s->count++;
    }
    if (s->count > known)
        qsort(s->all, s->count, sizeof *s->all, inner_first);
}

/* Behind the states, which are cut where slices end. */
static void place_samples(slices *s)
{
    size_t n = PKI_MIN(s->sample_count, UINT32_MAX - s->count);
    memory_fit(&s->all, &s->room, s->count + n, sizeof *s->all);
    for (size_t i = 0; i < n; i++) {
        uint64_t at = s->samples[i].at;
        uint32_t order = (uint32_t)s->count;
        s->all[s->count++] =
            (slice){at, at, SLICES_STEP_THREAD, SLICES_SAMPLE | (uint32_t)i, order};
    }
    if (n)
        qsort(s->all, s->count, sizeof *s->all, inner_first);
    stacks_name(s, s->tracks.texts[SLICES_STEP_THREAD]);
}

static void rename_to(char **name, const char *text)
{
    free(*name);
    *name = memory_copy(text);
}

/* A process is named on any of its tracks, so the name is kept until the others are known. */
static void set_name(slices *s, const event *e)
{
    uint32_t track = track_of(s, e->track); /* may move them */
    slice_track *about = &s->about[track];
    rename_to(e->type == EVENT_THREAD_NAME ? &about->thread : &about->process, e->name);
}

static void add_event(void *user, const event *e)
{
    slices *s = user;
    if (e->type == EVENT_COUNTER && is_of_process(s, e->track))
        files_add(s, e);
    else if (e->type == EVENT_STATE)
        add_state(s, e);
    else if (e->type == EVENT_THREAD_NAME || e->type == EVENT_PROCESS_NAME)
        set_name(s, e);
    else
        add_slice(s, e);
}

/* Of each track the name of its process, which may stand at another one's. */
static void share_process_names(slices *s)
{
    for (uint32_t i = 0; i < s->tracks.count && s->tracks.count <= NAMED_MOST; i++) {
        const char *name = s->about[i].process, *key = s->tracks.texts[i];
        size_t n = pid_length(key);
        for (uint32_t k = 0; name && k < s->tracks.count; k++)
            if (!s->about[k].process && pid_length(s->tracks.texts[k]) == n &&
                strncmp(s->tracks.texts[k], key, n) == 0)
                s->about[k].process = memory_copy(name);
    }
}

bool slices_read(slices *s, trace *t)
{
    if (s->step_count == 0)
        return true;
    track_of(s, s->tracks.texts[SLICES_STEP_THREAD]);
    if (!trace_read(t, &(trace_visitor){s, NULL, add_event}))
        return false;
    if (s->count)
        qsort(s->all, s->count, sizeof *s->all, inner_first);
    place_states(s);
    place_samples(s);
    share_process_names(s);
    return true;
}

void slices_free(slices *s)
{
    for (uint32_t i = 0; i < s->track_room; i++) {
        free(s->about[i].process);
        free(s->about[i].thread);
    }
    for (size_t i = 0; i < s->look_count; i++) {
        look_seen *l = &s->looks[i];
        char *texts[] = {l->what, l->call, l->object, l->by, l->by_region};
        for (size_t k = 0; k < PKI_COUNT_OF(texts); k++)
            free(texts[k]);
    }
    free(s->looks);
    symbols_finish(&s->symbols);
    free(s->about);
    free(s->readings);
    free(s->states);
    stacks_free(s);
    free(s->steps);
    free(s->all);
    table_finish(&s->tracks);
    table_finish(&s->names);
    table_finish(&s->kinds);
    *s = (slices){0};
}

/* ---- two steps slice by slice, for the page ---- */

#define TIMELINE_SLICES_MOST 20000 /* of both steps */
#define TIMELINE_ROWS_MOST 64      /* of a lane: what is deeper is left out, and counted */

#define SHARES 4096 /* of the longer step: the first try at what is short */
#define VARIOUS UINT32_MAX
#define LANES_MOST 128

typedef struct block {
    uint64_t start, end; /* from the step's start */
    uint32_t step, lane, row, name, count;
} block;

typedef struct timeline {
    const slices *in;
    uint64_t shortest, merged, left_out;
    uint32_t *lanes; /* by track, from 1 on; 0: not shown */
    uint32_t lane_count;
    size_t count, room;
    block *blocks;
    size_t last[TIMELINE_ROWS_MOST]; /* of the lane: each row's last block + 1 */
    size_t depth, depth_room;
    uint64_t *ends; /* of the slices around */
} timeline;

/* ---- slices to blocks ---- */

/* Short ones become part of a short neighbour that is no further away than they are short. */
static bool join(timeline *t, const block *b)
{
    size_t last = t->last[b->row];
    block *to = last ? &t->blocks[last - 1] : NULL;
    bool near = to && b->start < to->end + t->shortest;
    if (!near || b->end - b->start >= t->shortest ||
        (to->count == 1 && to->end - to->start >= t->shortest))
        return false;
    t->merged += to->count == 1 ? 2 : 1;
    to->end = PKI_MAX(to->end, b->end);
    to->name = to->name == b->name ? b->name : VARIOUS;
    to->count++;
    return true;
}

static void add_block(timeline *t, const block *b)
{
    if (b->row >= TIMELINE_ROWS_MOST) {
        t->left_out++;
        return;
    }
    if (join(t, b))
        return;
    memory_fit(&t->blocks, &t->room, t->count + 1, sizeof *t->blocks);
    t->blocks[t->count++] = *b;
    t->last[b->row] = t->count;
}

static int outer_first(const void *a, const void *b)
{
    const slice *x = *(const slice *const *)a, *y = *(const slice *const *)b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->order > y->order ? -1 : 1;
}

static void place_slice(timeline *t, const slice *s, const step_seen *step, uint32_t which)
{
    while (t->depth && t->ends[t->depth - 1] <= s->start)
        t->depth--;
    block b = {.start = PKI_MAX(s->start, step->start) - step->start,
               .end = PKI_MIN(s->end, step->end) - step->start,
               .step = which,
               .lane = t->lanes[s->track] - 1,
               .row = (uint32_t)t->depth,
               .name = s->name,
               .count = 1};
    add_block(t, &b);
    memory_fit(&t->ends, &t->depth_room, t->depth + 1, sizeof *t->ends);
    t->ends[t->depth++] = s->end;
}

static bool is_shown(const slice *s, const step_seen *step)
{
    return !(s->name & SLICES_SAMPLE) && s->start < step->end && s->end > step->start;
}

/* The slices of one track, from `first` on; the answer is where the next one's begin. */
static size_t place_track(timeline *t, size_t first, const step_seen *step, uint32_t which)
{
    const slices *s = t->in;
    size_t end = first, count = 0;
    while (end < s->count && s->all[end].track == s->all[first].track)
        end++;
    const slice **order = memory_zeroed(end - first, sizeof *order);
    for (size_t i = first; i < end; i++)
        if (is_shown(&s->all[i], step))
            order[count++] = &s->all[i];
    uint32_t *lane = &t->lanes[s->all[first].track];
    if (count && !*lane && t->lane_count < LANES_MOST)
        *lane = ++t->lane_count;
    if (!*lane) {
        t->left_out += count;
        count = 0;
    }
    if (count)
        qsort(order, count, sizeof *order, outer_first);
    t->depth = 0;
    for (size_t i = 0; i < TIMELINE_ROWS_MOST; i++)
        t->last[i] = 0;
    for (size_t i = 0; i < count; i++)
        place_slice(t, order[i], step, which);
    free(order);
    return end;
}

static void make(timeline *t, const step_seen *const steps[2])
{
    t->count = 0;
    t->merged = t->left_out = 0;
    for (uint32_t which = 0; which < 2 && steps[which]; which++)
        for (size_t i = 0; i < t->in->count;)
            i = place_track(t, i, steps[which], which);
}

/* ---- as JSON ---- */

static void put_step(const step_seen *s, pki_json *j)
{
    pki_json_open(j, NULL, '{');
    pki_json_uint(j, "index", s->index);
    pki_json_uint(j, "took", s->end - s->start);
    pki_json_close(j, '}');
}

static void put_lane(const timeline *t, uint32_t track, pki_json *j)
{
    const slice_track *about = &t->in->about[track];
    bool device = about->device;
    const char *name = about->thread ? about->thread : t->in->tracks.texts[track];
    char both[400];
    snprintf(both, sizeof both, "%.190s%s%.190s", device && about->process ? about->process : "",
             device && about->process ? ", " : "", name);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", both);
    pki_json_text(j, "sort",
                  track == SLICES_STEP_THREAD ? "steps"
                  : device                    ? "device"
                  : about->beside             ? "library"
                                              : "thread");
    pki_json_close(j, '}');
}

static void put_lanes(const timeline *t, pki_json *j)
{
    pki_json_open(j, "lanes", '[');
    for (uint32_t lane = 1; lane <= t->lane_count; lane++)
        for (uint32_t track = 0; track < t->in->tracks.count; track++)
            if (t->lanes[track] == lane)
                put_lane(t, track, j);
    pki_json_close(j, ']');
}

/* Only names that occur, numbered anew. */
static void put_names(timeline *t, pki_json *j)
{
    uint32_t *numbers = memory_zeroed(t->in->names.count, sizeof *numbers), used = 0;
    pki_json_open(j, "names", '[');
    for (size_t i = 0; i < t->count; i++) {
        block *b = &t->blocks[i];
        if (b->name == VARIOUS)
            continue;
        if (!numbers[b->name]) {
            numbers[b->name] = ++used;
            pki_json_open(j, NULL, '[');
            pki_json_text(j, NULL, pki_kind_names[slices_kind(t->in, b->name)]);
            pki_json_text(j, NULL, slices_name(t->in, b->name));
            pki_json_close(j, ']');
        }
        b->name = numbers[b->name] - 1;
    }
    pki_json_close(j, ']');
    free(numbers);
}

static void put_block(const block *b, pki_json *j)
{
    pki_json_open(j, NULL, '[');
    pki_json_uint(j, NULL, b->step);
    pki_json_uint(j, NULL, b->lane);
    pki_json_uint(j, NULL, b->row);
    pki_json_uint(j, NULL, b->start);
    pki_json_uint(j, NULL, b->end - b->start);
    pki_json_int(j, NULL, b->name == VARIOUS ? -1 : (int64_t)b->name);
    pki_json_uint(j, NULL, b->count);
    pki_json_close(j, ']');
}

static void put(timeline *t, const step_seen *const steps[2], const pki_beside *beside, pki_json *j)
{
    pki_json_open(j, NULL, '{');
    pki_json_open(j, "steps", '[');
    for (int i = 0; i < 2 && steps[i]; i++)
        put_step(steps[i], j);
    pki_json_close(j, ']');
    put_lanes(t, j);
    put_names(t, j);
    pki_json_open(j, "slices", '[');
    for (size_t i = 0; i < t->count; i++)
        put_block(&t->blocks[i], j);
    pki_json_close(j, ']');
    pki_json_uint(j, "shortest", t->merged ? t->shortest : 0);
    pki_json_uint(j, "merged", t->merged);
    pki_json_uint(j, "left_out", t->left_out);
    stacks_put(t->in, beside, j);
    pki_json_close(j, '}');
}

static const step_seen *find(const slices *s, uint64_t index)
{
    for (size_t i = 0; i < s->step_count; i++)
        if (s->steps[i].wanted && s->steps[i].index == index)
            return &s->steps[i];
    return NULL;
}

void timeline_put(const slices *s, const pki_beside *beside, pki_json *json)
{
    const step_seen *steps[2] = {find(s, beside->step),
                                 beside->usual_count ? find(s, beside->usual_step) : NULL};
    timeline t = {.in = s, .lanes = memory_zeroed(s->tracks.count, sizeof *t.lanes)};
    uint64_t longest = beside->took;
    if (steps[1])
        longest = PKI_MAX(longest, steps[1]->end - steps[1]->start);
    t.shortest = longest / SHARES;
    do
        make(&t, steps);
    while (t.count > TIMELINE_SLICES_MOST && (t.shortest = 2 * t.shortest + 1) < longest);
    put(&t, steps, beside, json);
    free(t.lanes);
    free(t.blocks);
    free(t.ends);
}
