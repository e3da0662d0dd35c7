/* lib/session/captures/capture_queue.h - wishes for captures on their way: until their last step
 * has ended, the records of other threads have come and what devices did is known.
 *
 * Under the drain lock.
 */
#pragma once

#include "capture/capture.h"
#include "session/session.h"

#define PKI_CAPTURES_WAITING 64
#define PKI_CAPTURE_AROUND 64 /* steps whose figures are in the file */

/* What a wish means is written down while the steps are at hand: the history knows the last few
 * hundred, and of short ones a single round of the collector brings more. */
typedef struct pki_waiting_capture {
    pki_wish wish;
    bool begun;           /* one of its steps has ended: */
    uint64_t number, at;  /* the first of them, and its position in the history */
    uint64_t from, until; /* ticks: where that one began, and the last one so far ended */
    pki_history_step around[PKI_CAPTURE_AROUND]; /* up to its last step, in order */
    unsigned around_count;
    uint64_t pin; /* position from which it needs the history */
    uint64_t due; /* the round in which it may be written; 0: its last step has not ended */
    uint64_t end; /* of its last step, ns of the session; what devices did until then is awaited */
    uint64_t latest; /* but not longer than this, CLOCK_MONOTONIC */
} pki_waiting_capture;

typedef struct pki_capture_queue {
    unsigned count;
    pki_waiting_capture waiting[PKI_CAPTURES_WAITING];
} pki_capture_queue;

/* Merged with one that waits, if both are slow steps in a row; its steps are pinned. False: the
 * queue is full, and `refused` is the one of least worth, which is not in it any more. */
bool pki_capture_queue_add(pki_capture_queue *queue, const pki_history_view *view,
                           const pki_wish *wish, pki_wish *refused);

/* A step has ended: those that wait for it know it. */
void pki_capture_queue_step(pki_capture_queue *queue, const pki_history_view *view);
void pki_capture_queue_remove(pki_capture_queue *queue, unsigned i);

/* Its last step has ended: it may be written so many rounds of the collector later, or at once. */
void pki_capture_queue_due(const pki_session *session, pki_waiting_capture *waiting,
                           unsigned rounds_later);

bool pki_capture_queue_is_ready(const pki_session *session, const pki_waiting_capture *waiting);

/* The one of most worth of those that are ready. False: none is. */
bool pki_capture_queue_pop(pki_capture_queue *queue, const pki_session *session,
                           pki_waiting_capture *taken);

/* What of the history they need begins here; PKI_HISTORY_FREE: none of it. */
uint64_t pki_capture_queue_pin(const pki_capture_queue *queue);
