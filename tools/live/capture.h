/* tools/live/capture.h - a request for a capture, to several processes, and what each answers. */
#pragma once

#include "live/target.h"

#define CAPTURE_WHY 1200

typedef struct capture_wish {
    uint32_t steps;
    bool given_at; /* else `ahead` steps from the furthest one, if given */
    bool given_ahead;
    uint64_t at, ahead;
    uint32_t wait_seconds;
} capture_wish;

/* One process's part. */
typedef struct capture_part {
    target *t;
    bool asked;
    uint32_t serial;       /* of the request in its arena */
    pki_answer answer;     /* the last one that was read */
    const char *verdict;   /* in a word: "captured", "late", "stopped", ... */
    char why[CAPTURE_WHY]; /* a sentence, or the file */
    bool done, good;
} capture_part;

typedef struct capture_job {
    capture_wish wish;
    capture_part *parts;
    size_t count;
    uint64_t first; /* the step that all were asked for */
} capture_job;

/* Asks all of them for the same step. False, and why: none could be asked. */
bool capture_request(capture_job *job, complaint *why);

/* Until all have answered for good, or the time is up. */
void capture_wait(capture_job *job);
