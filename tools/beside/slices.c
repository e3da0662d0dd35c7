#include "beside/slices.h"

#include "base/compiler.h"
#include "beside/files.h"
#include "memory.h"
#include "trace/nest.h"

#include <pk/pk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MOST (1u << 24)
#define NAMES_MOST 65536u
#define NAME_MOST 1000
#define NAMED_MOST 4096 /* tracks whose processes are looked for */

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
    else if (e->type == EVENT_THREAD_NAME || e->type == EVENT_PROCESS_NAME)
        set_name(s, e);
    else
        add_slice(s, e);
}

static int inner_first(const void *a, const void *b)
{
    const slice *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    int order = nest_order(x->start, x->end, y->start, y->end);
    return order ? order : x->order < y->order ? -1 : 1;
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
    share_process_names(s);
    return true;
}

void slices_free(slices *s)
{
    for (uint32_t i = 0; i < s->track_room; i++) {
        free(s->about[i].process);
        free(s->about[i].thread);
    }
    free(s->about);
    free(s->readings);
    free(s->steps);
    free(s->all);
    table_finish(&s->tracks);
    table_finish(&s->names);
    table_finish(&s->kinds);
    *s = (slices){0};
}
