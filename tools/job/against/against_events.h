/* tools/job/against/against_events.h - events of calls of a job beside those of another one: what
 * differs by more than the errors of both samples (measure/costs/events.h). What two runs differ by
 * anyway is not in these errors, so none of it makes a job slower. */
#pragma once

#include <stdio.h>

#include "job/figures/counted.h"

typedef struct against_event {
    const char *region; /* a rank's */
    pki_event_figure figure;
    double before, before_error, now, now_error; /* of errors -1: not known */
    bool differs;
} against_event;

typedef struct against_events {
    size_t count;
    against_event *rows; /* by region and figure; regions by their time now, most first */
} against_events;

against_events against_events_of(const job *now, const job *before);
void against_events_finish(against_events *events);

void against_events_text(const against_events *events, FILE *to);
void against_events_json(const against_events *events, size_t most, pki_json *j);
