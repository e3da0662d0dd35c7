#include "session/costs/gpu_load.h"
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/device/load.h"
#include "session/activity.h"

static pki_load load; /* under the fold lock */

/* ---- what they say of themselves ---- */

#define EVENTS 64                    /* of different device, kind, number and text */
#define EVENT_TRACK (UINT32_MAX - 1) /* tid beside those of streams and communicators */

typedef struct event {
    pki_gpu_event_row row; /* without strings */
    char what[8], text[104];
} event;

static struct {
    uint64_t count, beyond;
    size_t used;
    event rows[EVENTS];
} said; /* under the drain lock */

static void note(uint32_t device, const char *what, uint64_t number, const char *text,
                 uint64_t from, uint64_t to)
{
    size_t i = 0;
    said.count++;
    while (i < said.used &&
           (said.rows[i].row.device != device || said.rows[i].row.number != number ||
            strcmp(said.rows[i].what, what) != 0 ||
            strncmp(said.rows[i].text, text, sizeof said.rows[i].text - 1) != 0))
        i++;
    if (i == EVENTS) {
        said.beyond++;
        return;
    }
    event *e = &said.rows[i];
    if (i == said.used) {
        said.used++;
        e->row = (pki_gpu_event_row){.device = device, .number = number, .first = from};
        snprintf(e->what, sizeof e->what, "%s", what);
        snprintf(e->text, sizeof e->text, "%s", text);
    }
    e->row.count++;
    e->row.time += to - from;
}

void pki_gpu_event(uint32_t device, const char *what, uint64_t number, const char *text,
                   uint64_t from, uint64_t to)
{
    char process[32];
    snprintf(process, sizeof process, "GPU %u", device);
    note(device, what, number, text, from, to);
    uint32_t track = pki_track_add(&(pki_track){.pid = pki_track_device_pid(device),
                                                .tid = EVENT_TRACK,
                                                .process = process,
                                                .thread = "what it says (NVML)",
                                                .sort = UINT32_MAX});
    pki_activity_add(&(pki_activity){.kind = PKI_ACTIVITY_RANGE,
                                     .track = track,
                                     .name = text,
                                     .name_length = strlen(text),
                                     .start = from,
                                     .end = to,
                                     .level = 1,
                                     .device = PKI_NO_DEVICE});
}

static bool fill_events(pki_gpu_event_summary *out)
{
    bool done = true;
    out->count = said.count;
    out->beyond = said.beyond;
    out->rows = calloc(said.used + 1, sizeof *out->rows);
    for (size_t i = 0; i < said.used && out->rows; i++) {
        pki_gpu_event_row *row = &out->rows[out->row_count++];
        *row = said.rows[i].row;
        row->what = strdup(said.rows[i].what);
        row->text = strdup(said.rows[i].text);
        done = row->what && row->text && done;
    }
    return out->rows && done;
}

/* ---- what they were busy with ---- */

static void on_step(pki_fold *fold, const pki_step *step, uint64_t data)
{
    (void)fold, (void)data;
    pki_load_step(&load, step->kind, step->between, step->start, step->start + step->duration);
}

static pk_status open_load(pki_session *s)
{
    (void)s;
    memset(&said, 0, sizeof said);
    pki_fold_lock();
    pki_load_finish(&load);
    pki_fold_now()->on_account[PKI_FOLD_LOAD] = on_step;
    pki_fold_unlock();
    return PK_OK;
}

void pki_gpu_load_read(uint32_t device, uint64_t from, uint64_t to, const double values[PKI_LOADS])
{
    pki_load_interval interval = {.from = from, .to = to};
    memcpy(interval.values, values, sizeof interval.values);
    pki_fold_lock();
    pki_load_read(&load, device, &interval);
    pki_fold_unlock();
}

static void end_load(pki_session *s)
{
    (void)s;
    pki_fold_lock();
    pki_load_end(&load);
    pki_fold_unlock();
}

static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    return (!load.intervals || pki_load_fill(&load, &out->gpu_load)) &&
           (!said.count || fill_events(&out->gpu_events));
}

static void forget(void)
{
    pki_fold_lock();
    pki_load_finish(&load);
    pki_fold_unlock();
}

/* What its parent was in the middle of is left alone. */
static void after_fork(void)
{
    pki_load_begin(&load);
}

const pki_service pki_service_gpu_load = {
    .name = "gpu_load",
    .open = open_load,
    .end = end_load,
    .summarise = summarise,
    .forget = forget,
    .after_fork = after_fork,
};
