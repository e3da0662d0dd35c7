#include "session/captures/requests.h"

#include <stdio.h>
#include <string.h>

#define CALLS (PKI_REQUESTS_MOST - 1)

/* What pk_capture and the watchdog leave. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_wish calls[CALLS];
static unsigned call_count;
static const pki_arena_header *listening; /* NULL: nobody */

static uint32_t seen; /* serial of the last request from outside; under the drain lock */

void pki_requests_listen(const pki_arena_header *header)
{
    pthread_mutex_lock(&lock);
    listening = header;
    call_count = 0;
    pthread_mutex_unlock(&lock);
    if (header)
        seen = 0;
}

pk_status pki_requests_call(pki_capture_reason reason, const char *text, uint32_t steps)
{
    pki_wish wish = {.reason = reason, .worth = PKI_WORTH_ASKED};
    pk_status status = PK_OK;
    snprintf(wish.text, sizeof wish.text, "%s", text ? text : "");
    pthread_mutex_lock(&lock);
    if (!listening) {
        status = PK_EOFF;
    } else if (call_count == CALLS) {
        status = PK_EBUSY;
    } else {
        uint64_t made = pki_load(&listening->steps);
        wish.last = steps ? made + steps - 1 : UINT64_MAX; /* all that is there */
        calls[call_count++] = wish;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static unsigned drain_calls(pki_wish *wishes)
{
    pthread_mutex_lock(&lock);
    unsigned n = call_count;
    memcpy(wishes, calls, n * sizeof *wishes);
    call_count = 0;
    pthread_mutex_unlock(&lock);
    return n;
}

/* ---- from outside ---- */

void pki_requests_answer(pki_session *s, const pki_wish *wish, pki_answer_state state,
                         const char *path)
{
    pki_answer *a = &s->arena->header->answer;
    if (!wish->serial || wish->serial != seen)
        return; /* a later request has taken its place */
    if (path)
        snprintf(a->path, sizeof a->path, "%s", path);
    a->cut = wish->cut;
    pki_store_release(&a->state, (uint32_t)state);
    pki_store_release(&a->serial, wish->serial); /* who looks for it finds the rest */
}

/* The step that runs is not over: it can still be had. One that has ended would be had only if the
 * history holds it yet, and on other ranks perhaps not. */
static bool read_request(pki_session *s, bool wanted, pki_wish *wish)
{
    pki_arena_header *h = s->arena->header;
    uint32_t serial = pki_load_acquire(&h->request.serial); /* written last, by another process */
    if (serial == seen)
        return false;
    seen = serial;
    uint64_t made = pki_load(&h->steps), steps = h->request.steps;
    *wish = (pki_wish){.reason = PKI_CAPTURE_REQUEST,
                       .worth = PKI_WORTH_ASKED,
                       .serial = serial,
                       .first = h->request.first,
                       .last = h->request.first + steps - 1};
    bool sound = steps > 0 && steps <= PKI_CAPTURE_STEPS_MOST && wish->last >= wish->first;
    bool late = wish->first < made;
    h->answer.next = made;
    pki_requests_answer(s, wish,
                        !wanted || !sound ? PKI_ANSWER_OFF
                        : late            ? PKI_ANSWER_LATE
                                          : PKI_ANSWER_ACCEPTED,
                        "");
    return wanted && sound && !late;
}

unsigned pki_requests_drain(pki_session *s, bool wanted, pki_wish wishes[PKI_REQUESTS_MOST])
{
    unsigned n = drain_calls(wishes);
    return n + read_request(s, wanted, &wishes[n]);
}

void pki_requests_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    listening = NULL;
    call_count = 0;
}
