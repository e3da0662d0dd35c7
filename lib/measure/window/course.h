/* lib/measure/window/course.h - how the steps went from window to window: the series of a report
 * that is made of windows, with a row for each of them, or for two, four, eight ... */
#pragma once

#include "measure/window/window.h"

/* All zero is empty. */
typedef struct pki_course {
    size_t used, room;
    uint64_t stride, count; /* windows in a row; windows with steps in all */
    pki_series_row *rows;
    pki_tally *times; /* of the steps of each row */
    size_t time_room;
} pki_course;

/* A window without steps has no row. False without memory. */
bool pki_course_add(pki_course *course, const pki_window *window);
void pki_course_finish(pki_course *course);

/* Replaces out->series, and with them both thirds and the drift. False without memory. */
bool pki_course_fill(const pki_course *course, pki_step_summary *out);
