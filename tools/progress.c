#include "progress.h"

#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

#define FIRST 1000000000u /* ns */
#define LATER 200000000u

progress progress_start(const char *what, bool wanted)
{
    progress p = {0};
    if (wanted && isatty(STDERR_FILENO)) {
        p.what = what;
        p.next = pki_monotonic_ns() + FIRST;
    }
    return p;
}

void progress_show(progress *p, double part)
{
    if (!p->what || pki_monotonic_ns() < p->next)
        return;
    if (part >= 0)
        fprintf(stderr, "\r\033[Kpk: reading %s: %d %%", p->what, (int)(100 * part));
    else
        fprintf(stderr, "\r\033[Kpk: reading %s ...", p->what);
    p->said = true;
    p->next = pki_monotonic_ns() + LATER;
}

void progress_end(progress *p)
{
    if (p->said)
        fputs("\r\033[K", stderr);
    p->said = false;
}
