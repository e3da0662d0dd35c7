/* tools/ab.c - what both ways of an A/B share: order, time, progress. */
#include "ab.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

bool ab_new_first(size_t n)
{
    return n % 2 == 1;
}

double ab_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool ab_is_over(const ab_session *s)
{
    return s->wish->budget > 0 && ab_now() - s->began > s->wish->budget;
}

/* The first launch says how long the others may take. */
void ab_tell(ab_session *s)
{
    if (s->wish->quiet || !isatty(STDERR_FILENO))
        return;
    double passed = ab_now() - s->began;
    fprintf(stderr, "\r\033[Kpk: launch %zu of %zu", s->launches + 1, s->wanted);
    if (s->launches)
        fprintf(stderr, ", %.0f s left",
                passed / (double)s->launches * (double)(s->wanted - s->launches));
    s->telling = true;
}
