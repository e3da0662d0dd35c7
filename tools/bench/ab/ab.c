/* tools/bench/ab/ab.c - what both ways of an A/B share: order, time, progress. */
#include "bench/ab/ab.h"

#include "base/clock.h"
#include "bench/environment.h"
#include "bench/forms/document.h"

#include <pk/pk.h>

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

bool ab_new_first(size_t n)
{
    return n % 2 == 1;
}

double ab_now(void)
{
    return (double)pki_monotonic_ns() / 1e9;
}

bool ab_is_over(const ab_session *s)
{
    return s->runs > 0 && s->wish->budget > 0 && ab_now() - s->began > s->wish->budget;
}

/* The first process run says how long the others may take. */
void ab_show_progress(ab_session *s)
{
    if (s->wish->quiet || !isatty(STDERR_FILENO))
        return;
    double passed = ab_now() - s->began;
    fprintf(stderr, "\r\033[Kpk: process run %zu of %zu", s->runs + 1, s->wanted);
    if (s->runs)
        fprintf(stderr, ", %.0f s left", passed / (double)s->runs * (double)(s->wanted - s->runs));
    s->shows_progress = true;
}

void ab_describe(bench_file *build, const ab_wish *wish)
{
    pki_bench_environment machine;
    char fingerprint[17], options[128];
    pki_bench_environment_read(&machine, "");
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, pki_bench_fingerprint(&machine));
    snprintf(options, sizeof options, "{\"launches\":%u,\"time\":%.0f}", wish->runs,
             1e9 * wish->time);
    bench_text_set(&build->date, pki_bench_date((int64_t)time(NULL)).text);
    bench_text_set(&build->host, machine.host);
    bench_text_set(&build->cpu, machine.cpu);
    bench_text_set(&build->version, pk_version());
    bench_text_set(&build->fingerprint, fingerprint);
    bench_text_set(&build->configuration, options);
}
