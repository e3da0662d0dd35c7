#include "base/bell.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

enum { AT_REST, ASLEEP, RUNG };

void pki_bell_ring(pki_bell *bell)
{
    if (__atomic_load_n(&bell->state, __ATOMIC_RELAXED) == RUNG)
        return;
    /* Pairs with the exchange in pki_bell_sleep. */
    if (__atomic_exchange_n(&bell->state, RUNG, __ATOMIC_ACQ_REL) != ASLEEP)
        return;
    int saved = errno;
    syscall(SYS_futex, &bell->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

/* False if it was rung before. */
static bool lie_down(pki_bell *bell)
{
    uint32_t at_rest = AT_REST;
    return __atomic_compare_exchange_n(&bell->state, &at_rest, ASLEEP, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

bool pki_bell_sleep(pki_bell *bell, uint64_t until_ns)
{
    const struct timespec until = pki_moment(until_ns);
    bool asleep = lie_down(bell);
    /* A signal or a spurious wake-up is no reason to get up. */
    while (asleep && __atomic_load_n(&bell->state, __ATOMIC_ACQUIRE) == ASLEEP &&
           (syscall(SYS_futex, &bell->state, FUTEX_WAIT_BITSET_PRIVATE, ASLEEP, &until, NULL,
                    FUTEX_BITSET_MATCH_ANY) == 0 ||
            errno == EINTR))
        ;
    return __atomic_exchange_n(&bell->state, AT_REST, __ATOMIC_ACQ_REL) == RUNG;
}
