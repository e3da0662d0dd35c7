#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST 1.0
#define LATER 0.2

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

progress progress_start(const char *what, bool wanted)
{
    progress p = {0};
    if (wanted && isatty(STDERR_FILENO)) {
        p.what = what;
        p.next = now() + FIRST;
    }
    return p;
}

void progress_show(progress *p, double part)
{
    if (!p->what || now() < p->next)
        return;
    if (part >= 0)
        fprintf(stderr, "\r\033[Kpk: reading %s: %d %%", p->what, (int)(100 * part));
    else
        fprintf(stderr, "\r\033[Kpk: reading %s ...", p->what);
    p->said = true;
    p->next = now() + LATER;
}

void progress_end(progress *p)
{
    if (p->said)
        fputs("\r\033[K", stderr);
    p->said = false;
}
