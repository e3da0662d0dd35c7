/* lib/measure/steps/watch.h - where in time a range of steps lies, for those who record only then.
 *
 * Steps are seen when they are folded, some milliseconds after their ends; what is known of a range
 * that is still ahead is how far, going by how long the last steps took.
 *
 * Threads: under the fold lock (measure/fold/fold.h).
 */
#pragma once

#include <stdint.h>

#define PKI_NOT_YET UINT64_MAX

typedef struct pki_step_watch {
    uint64_t first, last;      /* the range */
    uint64_t begin_ns, end_ns; /* of the range, since the session started, or PKI_NOT_YET */
    uint64_t next, next_ns;    /* the step that runs, and when it began */
    uint64_t usual_ns;         /* what a step takes, lately; 0: none has been seen */
} pki_step_watch;

/* From here on. */
void pki_step_watch_start(uint64_t first, uint64_t last);

/* The fold has come by a step. */
void pki_step_watch_see(uint64_t index, uint64_t start_ns, uint64_t duration_ns);

/* The step that runs has begun later than the last one ended. */
void pki_step_watch_wait(uint64_t begin_ns);

pki_step_watch pki_step_watch_now(void);

/* When the range begins as far as can be told, or PKI_NOT_YET. */
uint64_t pki_step_watch_expect(const pki_step_watch *watch);
