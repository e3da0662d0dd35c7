#include "base/quiesce.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool expedited;

static long membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

void pki_quiesce_prepare(void)
{
    int saved = errno;
    expedited = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    errno = saved;
}

/* Without the expedited form: the global one waits for a grace period of the scheduler; without any, a
 * pause that no store buffer outlives. */
void pki_quiesce_fence(void)
{
    int saved = errno;
    if (!(expedited && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) &&
        membarrier(MEMBARRIER_CMD_GLOBAL) != 0) {
        struct timespec pause = {0, 5000000};
        nanosleep(&pause, NULL);
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    errno = saved;
}
