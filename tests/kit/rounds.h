/* rounds.h - a session whose collector makes no rounds but the test's. */
#ifndef TESTS_ROUNDS_H
#define TESTS_ROUNDS_H

#include "session/activity.h"
#include "session/backend.h"
#include "session/collector/collect.h"
#include "session/collector/drain.h"
#include "session/session.h"

/* Behind pk_start: its thread ends, as in pk_stop, and that which asks. What pk_flush does it does
 * still. */
static inline void kit_end_collector(void)
{
    pki_asker_stop(&pki_the_session);
    pki_collect_stop(&pki_the_session);
}

/* All that the threads would do in one. */
static inline void kit_round(void)
{
    pki_session *s = &pki_the_session;
    if (!s->open)
        return;
    pki_backends_ask(PKI_FLUSH_ROUND);
    pthread_mutex_lock(&pki_drain_lock);
    pki_collect_check_clock(s, false);
    pki_backends_collect();
    pki_drain_round(s, false);
    pki_services_each(round, (s));
    pki_services_each(behind, (s));
    pthread_mutex_unlock(&pki_drain_lock);
    pki_services_each(unlocked, ());
}

#endif
