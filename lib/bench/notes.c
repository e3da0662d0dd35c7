/* Why a benchmark has no figures, and what else is to be known: bench/case.h. */
#include "bench/case.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

void pki_bench_case_abandon(pki_bench_case *c, pk_bench_outcome outcome, const char *reason)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (pki_bench_case_is_fine(c)) {
        c->result.outcome = outcome;
        snprintf(c->result.reason, sizeof c->result.reason, "%s",
                 reason && *reason ? reason : "no reason given");
    }
    pthread_mutex_unlock(&lock);
}

void pki_bench_case_note(pki_bench_case *c, const char *text)
{
    size_t used = strlen(c->result.note);
    if (*text && !strstr(c->result.note, text))
        snprintf(c->result.note + used, sizeof c->result.note - used, "%s%s", used ? "; " : "",
                 text);
}
