#include "session/captures/arming.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"

#define LEAD_NS 500000000u   /* what taking CUPTI may take, and some rounds of the collector */
#define LEAST_NS 1000000000u /* after a slow step, where steps are short */
#define AHEAD_MOST 100000u   /* steps */

/* Under the drain lock. */
static bool armed;
static uint64_t behind;          /* steps */
static uint64_t usual;           /* what a step takes, lately; ns */
static uint64_t until, until_ns; /* after a slow step: this step, this moment (CLOCK_MONOTONIC) */

/* For the backend, on any thread. */
static bool now_on, listened;
static uint64_t awaited;

void pki_arming_open(const pki_config *c)
{
    armed = c->cupti_armed;
    behind = c->capture.behind;
    usual = until = until_ns = 0;
    pki_store(&awaited, (uint64_t)0);
    pki_store(&now_on, false);
}

void pki_arming_close(void)
{
    armed = false;
    pki_store(&listened, false);
    pki_store(&now_on, false);
    pki_store(&awaited, (uint64_t)0);
}

void pki_arming_step(uint64_t number, uint64_t ns, pki_wish *wishes, unsigned count)
{
    usual = usual ? (3 * usual + ns) / 4 : ns;
    for (unsigned i = 0; armed && pki_load(&listened) && i < count; i++) {
        if (wishes[i].reason != PKI_CAPTURE_SLOW)
            continue;
        wishes[i].last += behind;
        until = number + 1 + behind;
        until_ns = pki_monotonic_ns() + LEAST_NS;
    }
}

uint64_t pki_arming_horizon(uint64_t next)
{
    uint64_t steps = usual ? LEAD_NS / usual : 0;
    return next + PKI_MIN(PKI_MAX(steps, 1u), AHEAD_MOST);
}

void pki_arming_round(uint64_t next, bool foreseen)
{
    bool slow = until && (next < until || pki_monotonic_ns() < until_ns);
    if (!slow)
        until = 0;
    pki_store(&now_on, armed && (slow || foreseen));
}

void pki_arming_await(uint64_t ns)
{
    pki_store(&awaited, ns);
}

void pki_arming_listen(bool yes)
{
    pki_store(&listened, yes);
}

bool pki_arming_now(void)
{
    return pki_load(&now_on);
}

uint64_t pki_arming_awaited(void)
{
    return pki_load(&awaited);
}

void pki_arming_after_fork(void)
{
    pki_arming_close();
}
