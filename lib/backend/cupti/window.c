#include "backend/cupti/window.h"

#include "base/compiler.h"
#include "measure/fold/fold.h"
#include "measure/steps/watch.h"
#include "session/captures/arming.h"

#define LEAD_NS 500000000u /* what taking CUPTI may take, and some rounds of the collector */
#define LINGER_NS 1000000000u

static bool whole;
static uint64_t off_since; /* and one; 0: it is wanted, or never was */

void pki_cupti_window_start(const pki_config *config)
{
    whole = !config->cupti_window;
    off_since = 0;
    if (whole)
        return;
    pki_fold_lock();
    pki_step_watch_start(config->cupti_first, config->cupti_last);
    pki_fold_unlock();
}

/* Steps vary: a quarter of one earlier than expected, or when the step before begins. */
static bool is_near(const pki_step_watch *w, uint64_t now)
{
    uint64_t expected = pki_step_watch_expect(w), lead = PKI_MAX(LEAD_NS, w->usual_ns / 4);
    return w->first - PKI_MIN(w->next, w->first) <= 1 ||
           (expected != PKI_NOT_YET && expected <= now + lead);
}

pki_cupti_window pki_cupti_window_at(uint64_t now)
{
    if (whole)
        return (pki_cupti_window){PKI_CUPTI_WITHIN, 0, UINT64_MAX};
    pki_fold_lock();
    pki_step_watch w = pki_step_watch_now();
    pki_fold_unlock();
    pki_cupti_window window = {PKI_CUPTI_AHEAD, w.begin_ns, w.end_ns};
    if (w.end_ns != PKI_NOT_YET)
        window.phase = now >= w.end_ns + LINGER_NS ? PKI_CUPTI_PAST : PKI_CUPTI_BEHIND;
    else if (w.begin_ns != PKI_NOT_YET || is_near(&w, now))
        window.phase = PKI_CUPTI_WITHIN;
    return window;
}

pki_cupti_phase pki_cupti_armed_at(uint64_t now)
{
    if (pki_arming_now()) {
        off_since = 0;
        return PKI_CUPTI_WITHIN;
    }
    off_since = off_since ? off_since : now + 1;
    return now >= off_since + LINGER_NS ? PKI_CUPTI_PAST : PKI_CUPTI_BEHIND;
}
