#include "core/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "core/overhead.h"
#include "core/registry.h"

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static bool read_running(uint64_t *ns, uint64_t *switches)
{
    struct rusage used;
    if (getrusage(RUSAGE_THREAD, &used) != 0)
        return false;
    *ns = ns_of(used.ru_utime) + ns_of(used.ru_stime);
    *switches = (uint64_t)used.ru_nvcsw + (uint64_t)used.ru_nivcsw;
    return true;
}

/* The second number of schedstat. By system calls themselves: these are the program's threads, and
 * open(), read() and close() are points at which a thread may be cancelled. */
static bool read_waited(uint64_t *ns)
{
    char text[128], *end;
    int before = errno;
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    long n = fd >= 0 ? syscall(SYS_read, fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        syscall(SYS_close, fd);
    text[n > 0 ? n : 0] = '\0';
    strtoull(text, &end, 10);
    *ns = strtoull(end, NULL, 10);
    errno = before;
    return n > 0;
}

static void begin(pki_ready *r, const pki_thread *t)
{
    r->own = r->mine = 0;
    r->border = r->looked = r->read = pki_ticks(t->monotonic);
    bool known = read_running(&r->running, &r->switches) && read_waited(&r->waited);
    r->of = known ? t : NULL;
}

static uint64_t since(const pki_thread *t, uint64_t then, uint64_t now)
{
    return pki_thread_ns(t, then, pki_not_negative(now - then));
}

/* Reads the account if it may have changed: how long the thread has waited since it was read. */
static uint64_t waited_since(pki_ready *r, const pki_thread *t, uint64_t now)
{
    uint64_t running = 0, switches = 0, waited, before = r->waited;
    if (!read_running(&running, &switches))
        return 0;
    bool off = since(t, r->read, now) >= running - r->running + PKI_READY_LEAST;
    if ((switches == r->switches && !off) || !read_waited(&waited))
        return 0;
    r->switches = switches;
    r->read = now;
    r->running = running;
    r->waited = waited;
    return waited > before ? waited - before : 0;
}

/* The stretch that ends here was the program's own time, or it waited. */
static void look(pki_ready *r, const pki_thread *t, bool own)
{
    uint64_t now = pki_ticks(t->monotonic);
    r->mine += own ? since(t, r->border, now) : 0;
    r->border = now;
    if (since(t, r->looked, now) < PKI_READY_LEAST)
        return;
    uint64_t waited = waited_since(r, t, now);
    r->own += PKI_MIN(waited, r->mine);
    r->looked = now;
    r->mine = 0;
}

void pki_ready_border(pki_ready *r, const pki_thread *t, bool to_wait)
{
    if (pki_exchange_acquire(&r->busy, 1u))
        return; /* a thread that makes steps is amid one */
    if (r->of == t)
        look(r, t, to_wait);
    else if (!r->of && pki_load(&t->steps))
        begin(r, t);
    pki_store_release(&r->busy, 0u);
}

uint64_t pki_ready_step(pki_ready *r, const pki_thread *t)
{
    uint64_t own = PKI_READY_NOT_TOLD;
    if (pki_exchange_acquire(&r->busy, 1u))
        return own;
    if (r->of == t) {
        look(r, t, true);
        own = r->own;
        r->own = 0;
    } else if (r->of) {
        r->of = NULL; /* another thread makes the steps: its next border begins anew */
    }
    pki_store_release(&r->busy, 0u);
    return own;
}
