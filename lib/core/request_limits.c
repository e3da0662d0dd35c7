/* lib/core/request_limits.c - what a request may take; reports ask, in programs without any, too.
 */
#include <pk/request.h>

#include "base/atomic.h"
#include "core/record.h"

static uint64_t ttft_limit, tpot_limit;

static uint64_t to_ns(double seconds)
{
    return seconds > 0 ? seconds < 1e9 ? (uint64_t)(seconds * 1e9) : UINT64_MAX : 0;
}

void pk_request_set_limits(double ttft_seconds, double tpot_seconds)
{
    pki_store(&ttft_limit, to_ns(ttft_seconds));
    pki_store(&tpot_limit, to_ns(tpot_seconds));
}

void pki_request_limits(uint64_t *ttft_ns, uint64_t *tpot_ns)
{
    *ttft_ns = pki_load(&ttft_limit);
    *tpot_ns = pki_load(&tpot_limit);
}
