/* tools/job/follow.h - a job that runs: who is late now, from the windows of its ranks */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Windows (windows_path, PK_WINDOW_STEPS) are read as they come into a folder that all ranks write
 * to. Of each rank its last 32 are kept (lib/job/window.h), so memory is bounded by the number of
 * ranks, whatever the run's length. Ranks may come, end, fall silent, and start anew. */
typedef struct follow_wish {
    const char *folder;
    uint32_t every;      /* seconds between two looks */
    bool once;           /* one look at what there is */
    bool json;           /* a line of JSON for each verdict, not only for what changes */
    const char *html;    /* NULL, or a page that is written anew at each look... */
    const char *metrics; /* ...and Prometheus' text */
} follow_wish;

/* Until all ranks have ended, or SIGINT, SIGTERM or SIGHUP comes. The exit status. */
int job_follow(const follow_wish *wish);
