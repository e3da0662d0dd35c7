#include "measure/verdict/verdict.h"

#include "base/compiler.h"
#include "measure/verdict/rules.h"

#include <stdlib.h>

static const struct {
    pki_rule *say;
    pki_yielding yielding;
} rules[] = {
    {pki_verdict_cpu_starved, PKI_STANDS},
    {pki_verdict_oversubscribed, PKI_STANDS},
    {pki_verdict_throttled, PKI_STANDS},
    {pki_verdict_memory_far, PKI_STANDS},
    {pki_verdict_clock_low, PKI_STANDS},
    {pki_verdict_requests_late, PKI_YIELDS},
    {pki_verdict_requests_queued, PKI_YIELDS},
    {pki_verdict_input_bound, PKI_YIELDS_SHARE},
    {pki_verdict_communication, PKI_YIELDS_SHARE},
    {pki_verdict_waiting, PKI_YIELDS_SHARE},
    {pki_verdict_io_bound, PKI_YIELDS_SHARE},
    {pki_verdict_comm_exposed, PKI_YIELDS_SHARE},
    {pki_verdict_launch_bound, PKI_YIELDS_SHARE},
    {pki_verdict_copy_bound, PKI_STANDS},
    {pki_verdict_sync_bound, PKI_YIELDS_SHARE},
    {pki_verdict_gpu_idle, PKI_YIELDS_SHARE},
    {pki_verdict_gpu_throttled, PKI_STANDS},
    {pki_verdict_unsteady, PKI_YIELDS},
    {pki_verdict_drifting, PKI_YIELDS},
    {pki_verdict_leak, PKI_STANDS},
    {pki_verdict_near_limit, PKI_STANDS},
    {pki_verdict_gpu_leak, PKI_STANDS},
    {pki_verdict_gpu_near_limit, PKI_STANDS},
    {pki_verdict_gpu_allocates, PKI_STANDS},
    {pki_verdict_page_faults, PKI_STANDS},
    {pki_verdict_allocates, PKI_STANDS},
    {pki_verdict_gpu_bound, PKI_STANDS},
    {pki_verdict_at_the_roof, PKI_STANDS},
    {pki_verdict_nothing_found, PKI_STANDS},
    {pki_verdict_incomplete, PKI_STANDS},
    {pki_verdict_dropped, PKI_STANDS},
    {pki_verdict_unwritten, PKI_STANDS},
    {pki_verdict_two_perfkits, PKI_STANDS},
    {pki_verdict_not_finite, PKI_STANDS},
    {pki_verdict_overhead, PKI_STANDS},
    {pki_verdict_clock_coarse, PKI_STANDS},
    {pki_verdict_untracked, PKI_STANDS},
    {pki_verdict_unbalanced, PKI_STANDS},
    {pki_verdict_warm_up, PKI_STANDS},
    {pki_verdict_few_steps, PKI_STANDS},
    {pki_verdict_no_breakdown, PKI_STANDS},
    {pki_verdict_no_steps, PKI_STANDS},
};

bool pki_verdicts_fill(pki_summary *summary)
{
    double starved = pki_starved_share(summary);
    pki_summary_clear_verdicts(summary);
    for (size_t i = 0; i < PKI_COUNT_OF(rules); i++) {
        pki_sentence words = {.starved = starved, .yielding = rules[i].yielding};
        bool fits = rules[i].say(summary, &words);
        free(words.text);
        if (!fits) {
            pki_summary_clear_verdicts(summary);
            return false;
        }
    }
    return true;
}
